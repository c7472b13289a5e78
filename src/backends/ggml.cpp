// SPDX-License-Identifier: Apache-2.0
#include "backends/ggml.h"

#include <fmt/format.h>

#include <limits>
#include <thread>

#include "backends/arguments.h"
#include "backends/dequantized_operands.h"
#include "backends/ggml_blocks.h"
#include "device/find_ggml_library.h"
#include "device/shared_library.h"

namespace nibble {
namespace {

// ggml's vec_dot: n elements of x (weight blocks) with y (Q8_0 blocks) into s[0]; strides and count
// serve matrices only.
using VectorDot = void(int n, float* s, std::size_t bs, const void* x, std::size_t bx,
                       const void* y, std::size_t by, int count);

struct Ggml {
  VectorDot* dot_nvfp4 = nullptr;
  VectorDot* dot_mxfp4 = nullptr;
  std::string version;
};

Result<Ggml> load_ggml() {
  const auto library = find_ggml_library();
  if (!library) return tl::unexpected(library.error());
  const auto init = library->function<void()>("ggml_cpu_init");
  const auto version = library->function<const char*()>("ggml_version");
  const auto nvfp4 = library->function<VectorDot>("ggml_vec_dot_nvfp4_q8_0");
  const auto mxfp4 = library->function<VectorDot>("ggml_vec_dot_mxfp4_q8_0");
  if (!init) return tl::unexpected(init.error());
  if (!version) return tl::unexpected(version.error());
  if (!nvfp4) return tl::unexpected(nvfp4.error());
  if (!mxfp4) return tl::unexpected(mxfp4.error());
  (*init)();
  return Ggml{*nvfp4, *mxfp4, (*version)()};
}

const Result<Ggml>& ggml() {
  static const auto loaded = load_ggml();
  return loaded;
}

class PreparedGgml final : public PreparedGemm {
 public:
  PreparedGgml(const Ggml& ggml, GemmProblem problem) : ggml_(ggml), problem_(std::move(problem)) {}

  std::string kernel_name() const override {
    return fmt::format("ggml_vec_dot_{}_q8_0", name(problem_.b));
  }

  std::int64_t workspace_bytes() const override {
    return WorkspaceCutter::bytes<float>(problem_.shape.m * problem_.shape.n);
  }

  Status prepack(const BlockTensorView& b) override {
    if (auto ok = check_weights(problem_, b); !ok) return ok;
    weights_ = to_ggml_blocks(b);
    return {};
  }

  Status launch(const GemmArguments& arguments) const override {
    if (auto ok = check_arguments(problem_, arguments, workspace_bytes()); !ok) return ok;
    const auto& [m, n, k] = problem_.shape;
    if (m == 0 || n == 0) return {};
    if (static_cast<std::int64_t>(weights_.size()) != n * ggml_row_bytes(problem_.b, k)) {
      return fail(ErrorKind::invalid_argument, "launch before prepack");
    }
    WorkspaceCutter workspace(arguments.workspace);
    const auto sums = workspace.cut<float>(m * n);
    const int available = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    const std::int64_t threads =
        std::min<std::int64_t>(arguments.threads > 0 ? arguments.threads : available, n);
    std::vector<std::jthread> others;
    for (std::int64_t t = 1; t < threads; ++t) {
      others.emplace_back(
          [&, t] { dot_columns(arguments, n * t / threads, n * (t + 1) / threads, sums); });
    }
    dot_columns(arguments, 0, n / threads, sums);
    others.clear();
    store_scaled(sums, problem_.shape, arguments);
    return {};
  }

 private:
  void dot_columns(const GemmArguments& arguments, std::int64_t begin, std::int64_t end,
                   std::span<float> sums) const {
    const auto& [m, n, k] = problem_.shape;
    const auto& a = std::get<Q8TensorView>(arguments.a);
    const std::int64_t a_row_bytes = k / 32 * 34, b_row_bytes = ggml_row_bytes(problem_.b, k);
    VectorDot* const dot = problem_.b == Format::nvfp4 ? ggml_.dot_nvfp4 : ggml_.dot_mxfp4;
    for (std::int64_t column = begin; column < end; ++column) {
      for (std::int64_t row = 0; row < m; ++row) {
        dot(static_cast<int>(k), &sums[static_cast<std::size_t>(row * n + column)], 0,
            weights_.data() + column * b_row_bytes, 0, a.data.data() + row * a_row_bytes, 0, 1);
      }
    }
  }

  const Ggml& ggml_;
  GemmProblem problem_;
  std::vector<std::uint8_t> weights_;
};

class GgmlBackend final : public Backend {
 public:
  std::string_view name() const override { return "ggml"; }
  std::string_view summary() const override {
    return "llama.cpp's dot products on Q8_0 activations";
  }

  Result<std::string> version() const override {
    if (!ggml()) return tl::unexpected(ggml().error());
    return ggml()->version;
  }

  Contract contract() const override {
    Contract contract;
    contract.alpha_optional = true;
    contract.nan_block_scales = false;
    contract.activations = {Activation::q8_0};
    contract.formats = {Format::nvfp4, Format::mxfp4};
    contract.outs = {OutType::bf16, OutType::f16, OutType::f32};
    contract.a_scales = {ScaleOrder::row_major};
    contract.b_scales = {ScaleOrder::row_major, ScaleOrder::tiled_128x4, ScaleOrder::tiled_8x4};
    contract.note = "activations are Q8_0";
    return contract;
  }

  Support supports(const GemmProblem& problem, const CpuInfo&) const override {
    if (problem.shape.k > std::numeric_limits<int>::max()) {
      return Unsupported{fmt::format("k={}: ggml counts in 32 bits", problem.shape.k)};
    }
    if (problem.b == Format::nvfp4 && problem.shape.k % kGgmlNvfp4Elements != 0) {
      return Unsupported{fmt::format("k={} is not a multiple of {}, ggml's NVFP4 block",
                                     problem.shape.k, kGgmlNvfp4Elements)};
    }
    return check_contract(contract(), problem);
  }

  Result<std::unique_ptr<PreparedGemm>> prepare(const GemmProblem& problem) const override {
    if (!ggml()) return tl::unexpected(ggml().error());
    return std::make_unique<PreparedGgml>(*ggml(), problem);
  }
};

}  // namespace

std::unique_ptr<Backend> make_ggml_backend() { return std::make_unique<GgmlBackend>(); }

}  // namespace nibble
