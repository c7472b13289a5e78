// SPDX-License-Identifier: Apache-2.0
#include "backends/fake.h"

#include <optional>

#include "backends/arguments.h"
#include "backends/dequantized_operands.h"
#include "backends/fake_misdeeds.h"

namespace nibble {
namespace {

// How often launch() ran in this process, whatever the case.
int launches = 0;
// The first problem that was prepared in this process.
std::optional<GemmProblem> first_problem;

class PreparedFake final : public PreparedGemm {
 public:
  PreparedFake(Misdeed misdeed, GemmProblem problem)
      : misdeed_(misdeed), problem_(std::move(problem)) {}

  std::string kernel_name() const override { return "naive double sums"; }
  std::int64_t workspace_bytes() const override { return 0; }

  Status prepack(const BlockTensorView& b) override {
    if (auto ok = check_weights(problem_, b); !ok) return ok;
    weights_.resize(static_cast<std::size_t>(b.rows * b.columns));
    dequantize_f32(b, weights_);
    return {};
  }

  Status launch(const GemmArguments& arguments) const override {
    if (auto ok = check_arguments(problem_, arguments, 0); !ok) return ok;
    ++launches;
    if (misdeed_ == Misdeed::errs)
      return fail(ErrorKind::failed, "fake-error: launch fails on purpose (status 7)");
    commit_misdeed(misdeed_);
    const auto sums = multiply(arguments.a);
    store_scaled(sums, problem_.shape, arguments);
    if (!arguments.output.empty()) spoil(arguments);
    return {};
  }

 private:
  std::vector<float> multiply(const ActivationView& view) const {
    const auto& [m, n, k] = problem_.shape;
    std::vector<float> a(static_cast<std::size_t>(m * k)), sums(static_cast<std::size_t>(m * n));
    dequantize_f32(view, a);
    for (std::int64_t row = 0; row < m; ++row) {
      for (std::int64_t column = 0; column < n; ++column) {
        double sum = 0;
        for (std::int64_t i = 0; i < k; ++i) {
          sum += static_cast<double>(a[static_cast<std::size_t>(row * k + i)]) *
                 weights_[static_cast<std::size_t>(column * k + i)];
        }
        sums[static_cast<std::size_t>(row * n + column)] = static_cast<float>(sum);
      }
    }
    return sums;
  }

  // The misdeeds that are done to memory. Flipping the exponent's low bit makes twice or half of a
  // value.
  void spoil(const GemmArguments& arguments) const {
    const auto flip = [&] {
      arguments.output[static_cast<std::size_t>(out_bytes(problem_.out) - 2)] ^= std::byte{0x80};
    };
    switch (misdeed_) {
      case Misdeed::lies:
        return flip();
      case Misdeed::writes_before:
        arguments.output.data()[-1] = std::byte{0x5A};
        return;
      case Misdeed::writes_after:
        arguments.output.data()[arguments.output.size()] = std::byte{0x5A};
        return;
      case Misdeed::writes_inputs:
        if (const auto* blocks = std::get_if<BlockTensorView>(&arguments.a))
          const_cast<std::uint8_t&>(blocks->codes[0]) ^= 0x11;
        return;
      case Misdeed::third_time:
        if (launches == 3) flip();
        return;
      case Misdeed::after_other:
        if (*first_problem != problem_) flip();
        return;
      default:
        return;
    }
  }

  Misdeed misdeed_;
  GemmProblem problem_;
  std::vector<float> weights_;
};

class FakeBackend final : public Backend {
 public:
  explicit FakeBackend(Misdeed misdeed) : misdeed_(misdeed) {}

  std::string_view name() const override { return nibble::name(misdeed_); }
  std::string_view summary() const override {
    return "misbehaves on purpose, for tests of the probe";
  }
  Result<std::string> version() const override { return "1"; }

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
    if (misdeed_ == Misdeed::refuses) return Unsupported{"fake-refuses: refuses on purpose"};
    return check_contract(contract(), problem);
  }

  Result<std::unique_ptr<PreparedGemm>> prepare(const GemmProblem& problem) const override {
    if (!first_problem) first_problem = problem;
    return std::make_unique<PreparedFake>(misdeed_, problem);
  }

 private:
  Misdeed misdeed_;
};

}  // namespace

std::vector<std::unique_ptr<Backend>> make_fake_backends() {
  std::vector<std::unique_ptr<Backend>> fakes;
  for (const auto& [misdeed, unused] : EnumNames<Misdeed>::table)
    fakes.push_back(std::make_unique<FakeBackend>(misdeed));
  return fakes;
}

}  // namespace nibble
