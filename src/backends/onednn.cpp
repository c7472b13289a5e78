// SPDX-License-Identifier: Apache-2.0
#include "backends/onednn.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "backends/arguments.h"
#include "backends/dequantized_operands.h"
#include "backends/onednn_matmul.h"

namespace nibble {
namespace {

// T is what both operands are dequantized to: float, or std::uint16_t holding bf16.
template <class T>
class PreparedOnednn final : public PreparedGemm {
 public:
  PreparedOnednn(std::unique_ptr<OnednnMatmul> matmul, GemmProblem problem)
      : matmul_(std::move(matmul)), problem_(std::move(problem)) {}

  std::string kernel_name() const override {
    return fmt::format("dequantize {}, dnnl matmul {}", kBf16 ? "bf16" : "f32",
                       matmul_ ? matmul_->implementation() : "of nothing");
  }

  std::int64_t workspace_bytes() const override {
    const auto& [m, n, k] = problem_.shape;
    return WorkspaceCutter::bytes<T>(m * k) + WorkspaceCutter::bytes<float>(m * n);
  }

  Status prepack(const BlockTensorView& b) override {
    if (auto ok = check_weights(problem_, b); !ok) return ok;
    weights_.resize(static_cast<std::size_t>(b.rows * b.columns));
    dequantize(b, weights_);
    return {};
  }

  Status launch(const GemmArguments& arguments) const override {
    if (auto ok = check_arguments(problem_, arguments, workspace_bytes()); !ok) return ok;
    const auto& [m, n, k] = problem_.shape;
    if (m == 0 || n == 0) return {};
    if (weights_.size() != static_cast<std::size_t>(n * k)) {
      return fail(ErrorKind::invalid_argument, "launch before prepack");
    }
    WorkspaceCutter workspace(arguments.workspace);
    const auto a = workspace.cut<T>(m * k);
    const auto sums = workspace.cut<float>(m * n);
    dequantize(arguments.a, a);
    if (!matmul_) {
      std::fill(sums.begin(), sums.end(), 0.0f);
    } else if (auto ok = matmul_->run(a.data(), weights_.data(), sums.data(), arguments.threads);
               !ok) {
      return ok;
    }
    store_scaled(sums, problem_.shape, arguments);
    return {};
  }

 private:
  static constexpr bool kBf16 = std::is_same_v<T, std::uint16_t>;

  template <class Operand>
  static void dequantize(const Operand& operand, std::span<T> out) {
    if constexpr (kBf16) {
      dequantize_bf16(operand, out);
    } else {
      dequantize_f32(operand, out);
    }
  }

  std::unique_ptr<OnednnMatmul> matmul_;  // none for an empty problem: oneDNN refuses sizes of zero
  GemmProblem problem_;
  std::vector<T> weights_;
};

class OnednnBackend final : public Backend {
 public:
  std::string_view name() const override { return "onednn"; }
  std::string_view summary() const override {
    return "oneDNN matmul on operands dequantized to bf16 or f32";
  }
  Result<std::string> version() const override { return onednn_version(); }

  Contract contract() const override {
    Contract contract;
    contract.alpha_optional = true;
    // The bf16 dot products of x86 (VDPBF16PS, TDPBF16PS) take subnormal elements and results for
    // zero (Intel SDM); MXFP4 elements reach down to 2^-128.
    contract.flushes_subnormals = true;
    contract.activations = {Activation::nvfp4, Activation::mxfp4, Activation::bf16,
                            Activation::f16};
    contract.formats = {Format::nvfp4, Format::mxfp4};
    contract.outs = {OutType::bf16, OutType::f16, OutType::f32};
    contract.a_scales =
        contract.b_scales = {ScaleOrder::row_major, ScaleOrder::tiled_128x4, ScaleOrder::tiled_8x4};
    contract.note =
        "operands dequantized first, to bf16 where that is exact and the CPU has it (its units "
        "flush "
        "subnormals), else to f32";
    return contract;
  }

  Support supports(const GemmProblem& problem, const CpuInfo&) const override {
    return check_contract(contract(), problem);
  }

  Result<std::unique_ptr<PreparedGemm>> prepare(const GemmProblem& problem) const override {
    if (auto here = onednn_version(); !here) return tl::unexpected(here.error());
    const auto& [m, n, k] = problem.shape;
    if (m == 0 || n == 0 || k == 0)
      return std::make_unique<PreparedOnednn<float>>(nullptr, problem);
    // f16 has eleven significant bits, bf16 eight: only an f16 A would be rounded.
    if (problem.a != Activation::f16) {
      auto matmul = OnednnMatmul::create(problem.shape, true);
      if (matmul)
        return std::make_unique<PreparedOnednn<std::uint16_t>>(std::move(*matmul), problem);
      if (matmul.error().kind != ErrorKind::unsupported) return tl::unexpected(matmul.error());
    }
    auto matmul = OnednnMatmul::create(problem.shape, false);
    if (!matmul) return tl::unexpected(matmul.error());
    return std::make_unique<PreparedOnednn<float>>(std::move(*matmul), problem);
  }
};

}  // namespace

std::unique_ptr<Backend> make_onednn_backend() { return std::make_unique<OnednnBackend>(); }

}  // namespace nibble
