// SPDX-License-Identifier: Apache-2.0
// One case of a probe, backend x problem x experiment, as plain data: the parent plans it, a child
// runs it, and the report prints the command that runs it alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/experiment.h"
#include "core/gemm_problem.h"
#include "core/scale_layout.h"
#include "core/verdict.h"

namespace nibble {

inline constexpr double kDefaultLimitS = 120;

struct Case {
  std::string backend;
  GemmProblem problem;  // with a source: n and k are those of the tensor
  Experiment experiment = Experiment::random;
  std::uint64_t seed = 0;
  AccumulationClass accept = AccumulationClass::fp32;  // the worst class that is still correct
  double limit_s = kDefaultLimitS;
  std::int64_t memory_limit_bytes =
      0;                             // of the child's address space beyond its start; 0: all memory
  std::string weights_file, tensor;  // both empty: generated operands
  std::optional<ScaleOrder> declared_scales;  // of the tensor, where its file does not say
  int threads = 0;                            // 0: all that the process may use

  bool operator==(const Case&) const = default;
};

// "cpu/random/nvfp4xnvfp4/128x256x256/bf16"; scale layouts other than row_major and the source of B
// follow. Unique among the cases of one plan; filters match it.
std::string case_name(const Case& the_case);

// One line without a newline. Nothing in `text` is trusted: errors (corrupt) name the key.
std::string case_to_json(const Case& the_case);
Result<Case> case_from_json(std::string_view text);

// "nibble probe --backend cpu --experiment pads --shape 128x256x256 ... --seed 7", quoted for a
// POSIX shell.
std::string rerun_command(const Case& the_case);

}  // namespace nibble
