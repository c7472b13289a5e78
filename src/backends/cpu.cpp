// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu.h"

#include <fmt/format.h>

#include <limits>
#include <optional>

#include "backends/arguments.h"
#include "cpu/gemm.h"
#include "cpu/gemm_kernel.h"

namespace nibble {
namespace {

class PreparedCpu final : public PreparedGemm {
 public:
  explicit PreparedCpu(GemmProblem problem) : problem_(std::move(problem)) {}

  std::string kernel_name() const override {
    return fmt::format("{} int8 dots of 16, {}",
                       is_block_format(problem_.a) ? "one-digit" : "three-digit",
                       gemm_kernels().target);
  }

  std::int64_t workspace_bytes() const override {
    return cpu_gemm_workspace_bytes(problem_.shape, problem_.a);
  }

  Status prepack(const BlockTensorView& b) override {
    if (auto ok = check_weights(problem_, b); !ok) return ok;
    auto packed = pack_weights(b);
    if (!packed) return tl::unexpected(packed.error());
    weights_ = std::move(*packed);
    return {};
  }

  Status launch(const GemmArguments& arguments) const override {
    if (auto ok = check_arguments(problem_, arguments, workspace_bytes()); !ok) return ok;
    if (problem_.shape.m == 0 || problem_.shape.n == 0) return {};
    if (!weights_) return fail(ErrorKind::invalid_argument, "launch before prepack");
    const CpuGemm gemm{arguments.a,
                       arguments.alpha ? *arguments.alpha : 1.0f,
                       arguments.out,
                       arguments.out_row_stride_bytes,
                       arguments.output.data(),
                       arguments.threads};
    cpu_gemm(gemm, *weights_, arguments.workspace);
    return {};
  }

 private:
  GemmProblem problem_;
  std::optional<PackedWeights> weights_;
};

class CpuBackend final : public Backend {
 public:
  std::string_view name() const override { return "cpu"; }
  std::string_view summary() const override {
    return "nibble's own kernels: exact integer dot products of 16, fp32 sums";
  }

  Result<std::string> version() const override {
    return fmt::format("built-in {}", gemm_kernels().target);
  }

  Contract contract() const override {
    Contract contract;
    contract.alpha_optional = true;
    contract.activations = {Activation::nvfp4, Activation::mxfp4, Activation::bf16,
                            Activation::f16};
    contract.formats = {Format::nvfp4, Format::mxfp4};
    contract.outs = {OutType::bf16, OutType::f16, OutType::f32};
    contract.a_scales =
        contract.b_scales = {ScaleOrder::row_major, ScaleOrder::tiled_128x4, ScaleOrder::tiled_8x4};
    return contract;
  }

  Support supports(const GemmProblem& problem, const CpuInfo&) const override {
    return check_contract(contract(), problem);
  }

  Result<std::unique_ptr<PreparedGemm>> prepare(const GemmProblem& problem) const override {
    return std::make_unique<PreparedCpu>(problem);
  }
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend() { return std::make_unique<CpuBackend>(); }

}  // namespace nibble
