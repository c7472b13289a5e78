// SPDX-License-Identifier: Apache-2.0
// An implementation of FP4 GEMM as nibble sees it: what it supports, what its contract says, how it
// runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/error.h"
#include "core/gemm_operands.h"
#include "core/gemm_problem.h"
#include "core/report.h"

namespace nibble {

// Where a backend's operands must lie. Device memory becomes one more kind.
enum class MemoryKind : std::uint8_t { host };

struct Supported {};
// (core/verdict.h has Unsupported{why}.)
using Support = std::variant<Supported, Unsupported>;

// Data that tests, docs and the planner query. A multiple of 1 means any size.
struct Contract {
  MemoryKind memory = MemoryKind::host;
  bool alpha_optional = false;      // left out, it means 1
  bool flushes_subnormals = false;  // of operands and outputs
  bool nan_block_scales =
      true;  // false: it reads a format in which a NaN block scale is some number
  std::vector<Activation> activations;
  std::vector<Format> formats;
  std::vector<OutType> outs;
  std::vector<ScaleOrder> a_scales, b_scales;
  std::int64_t m_multiple = 1, n_multiple = 1, k_multiple = 1;
  std::string note;  // what every row of this backend must say ("activations are Q8_0")
};

struct GemmArguments {
  ActivationView a;
  const float* alpha = nullptr;  // nullptr: left out
  OutType out = OutType::bf16;
  std::int64_t out_row_stride_bytes = 0;
  std::span<std::byte> output;
  std::span<std::byte> workspace;  // at least workspace_bytes()
  int threads = 0;                 // 0: all that this process may use
};

class PreparedGemm {  // a chosen kernel, or a library's plan, for one problem
 public:
  virtual ~PreparedGemm() = default;
  virtual std::string kernel_name() const = 0;
  virtual std::int64_t workspace_bytes() const = 0;  // the caller owns it
  virtual Status prepack(
      const BlockTensorView& b) = 0;  // once a weight, before launch; b may go away afterwards
  virtual Status launch(const GemmArguments& arguments) const = 0;  // writes the whole output
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  virtual std::string_view summary() const = 0;  // one line for `nibble list`
  virtual Result<std::string> version()
      const = 0;  // loads the library; not_found says how to get it
  virtual Contract contract() const = 0;
  virtual Support supports(const GemmProblem& problem, const CpuInfo& cpu) const = 0;  // pure
  virtual Result<std::unique_ptr<PreparedGemm>> prepare(const GemmProblem& problem) const = 0;
};

// Supported, or the first clause of the contract that the problem breaks, in words.
Support check_contract(const Contract& contract, const GemmProblem& problem);

}  // namespace nibble
