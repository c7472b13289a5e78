// SPDX-License-Identifier: Apache-2.0
#include "unit/probe/faulty_backend.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

#include "backends/arguments.h"
#include "core/e2m1.h"

namespace nibble {
namespace {

float block_scale(const BlockTensorView& tensor, std::uint8_t byte, Mistake mistake) {
  const bool nvfp4 = tensor.format == Format::nvfp4;
  const float scale = nvfp4 ? e4m3_scale(byte) : e8m0_value(byte);
  if (mistake == Mistake::rounds_nan_scale_away && std::isnan(scale)) return 0;
  if (mistake == Mistake::flushes_small_scales && scale < (nvfp4 ? 0x1p-6f : 0x1p-100f)) return 0;
  return scale;
}

std::vector<double> decoded(const BlockTensorView& tensor, Mistake mistake, bool is_a) {
  BlockTensorView view = tensor;
  if (mistake == Mistake::reads_other_layout && !is_a) {
    view.layout.order = view.layout.order == ScaleOrder::row_major ? ScaleOrder::tiled_128x4
                                                                   : ScaleOrder::row_major;
  }
  std::vector<double> values(static_cast<std::size_t>(view.rows * view.columns));
  for (std::int64_t row = 0; row < view.rows; ++row) {
    for (std::int64_t column = 0; column < view.columns; ++column) {
      std::int64_t scale_row = row;
      if (mistake == Mistake::swaps_rows_of_scales && is_a && (row ^ 1) < view.rows)
        scale_row = row ^ 1;
      const auto at =
          static_cast<std::size_t>(view.layout.offset(scale_row, column / block_size(view.format)));
      const std::uint8_t byte = view.scales[at % view.scales.size()];
      values[static_cast<std::size_t>(row * view.columns + column)] =
          static_cast<double>(e2m1_value(view.code(row, column))) *
          static_cast<double>(block_scale(view, byte, mistake));
    }
  }
  return values;
}

template <class Dense>
std::vector<double> decoded(const Dense& tensor, Mistake, bool) {
  std::vector<double> values;
  for (std::int64_t row = 0; row < tensor.rows; ++row) {
    for (std::int64_t column = 0; column < tensor.columns; ++column)
      values.push_back(static_cast<double>(tensor.value(row, column)));
  }
  return values;
}

void store(const GemmArguments& arguments, std::int64_t row, std::int64_t column, float value) {
  std::byte* at = arguments.output.data() + row * arguments.out_row_stride_bytes +
                  column * out_bytes(arguments.out);
  if (arguments.out == OutType::f32) {
    std::memcpy(at, &value, 4);
    return;
  }
  const std::uint16_t bits =
      arguments.out == OutType::bf16 ? bf16_encode(value) : f16_encode(value);
  std::memcpy(at, &bits, 2);
}

std::byte* mutable_bytes(const void* data) {
  return const_cast<std::byte*>(static_cast<const std::byte*>(data));
}

class FaultyGemm final : public PreparedGemm {
 public:
  FaultyGemm(Mistake mistake, GemmProblem problem)
      : mistake_(mistake), problem_(std::move(problem)) {}

  std::string kernel_name() const override { return "double loops"; }
  std::int64_t workspace_bytes() const override { return 64; }

  Status prepack(const BlockTensorView& b) override {
    if (mistake_ == Mistake::accepts_any_b) {
      auto sound = make_block_tensor(problem_.b, problem_.shape.n, problem_.shape.k);
      if (!check_weights(problem_, b)) {
        b_ = decoded(sound->view(), mistake_, false);
        return {};
      }
    }
    if (auto ok = check_weights(problem_, b); !ok) return ok;
    if (mistake_ == Mistake::changes_b) *mutable_bytes(b.codes.data()) ^= std::byte{1};
    if (mistake_ == Mistake::changes_memory_round_b)
      *(mutable_bytes(b.codes.data()) - 1) = std::byte{0};
    b_ = decoded(b, mistake_, false);
    view_ = b;
    if (mistake_ == Mistake::reads_pads) pad_is_nan_ = has_nan_pad(b);
    return {};
  }

  Status launch(const GemmArguments& arguments) const override {
    const auto& [m, n, k] = problem_.shape;
    if (mistake_ == Mistake::throws) throw std::runtime_error("no plan for this shape");
    if (mistake_ == Mistake::fails_at_m_0 && m == 0) return fail(ErrorKind::failed, "empty grid");
    if (auto ok = check_arguments(problem_, arguments, workspace_bytes()); !ok) {
      if (mistake_ == Mistake::writes_before_refusing && !arguments.output.empty())
        arguments.output[0] = std::byte{0};
      if (mistake_ == Mistake::refuses_silently) return fail(ErrorKind::failed, "");
      if (!looks_away(arguments)) return ok;
      return {};
    }
    const auto a = std::visit(
        [this](const auto& tensor) { return decoded(tensor, mistake_, true); }, arguments.a);
    const auto b =
        mistake_ == Mistake::reads_b_after_prepack ? decoded(view_, mistake_, false) : b_;
    const float alpha = alpha_of(arguments);
    ++calls_;
    for (std::int64_t row = 0; row < m; ++row) {
      for (std::int64_t column = 0; column < n; ++column) {
        if (mistake_ == Mistake::misses_last_column && column == n - 1) continue;
        const double sum = dot(a.data() + row * k, b.data() + column * k);
        store(
            arguments, row, column,
            element(static_cast<float>(static_cast<double>(alpha) * sum), row, column, arguments));
      }
    }
    if (m > 0 && n > 0) stray_writes(arguments);
    return {};
  }

 private:
  static bool has_nan_pad(const BlockTensorView& b) {
    std::vector<bool> real(b.scales.size());
    for (std::int64_t row = 0; row < b.rows; ++row) {
      for (std::int64_t block = 0; block < b.blocks(); ++block)
        real[static_cast<std::size_t>(b.layout.offset(row, block))] = true;
    }
    for (std::size_t i = 0; i < real.size(); ++i) {
      if (!real[i] && e4m3_is_nan(b.scales[i])) return true;
    }
    return false;
  }

  bool looks_away(const GemmArguments& arguments) const {
    GemmArguments sound = arguments;
    if (mistake_ == Mistake::ignores_out_type) sound.out = problem_.out;
    if (mistake_ == Mistake::ignores_output_size) {
      static std::vector<std::byte> enough(1 << 20);
      sound.output = enough;
    }
    if (mistake_ == Mistake::ignores_kind_of_a)
      return std::holds_alternative<DenseTensorView>(arguments.a);
    if (mistake_ == Mistake::ignores_shape_of_a)
      return !std::holds_alternative<DenseTensorView>(arguments.a) &&
             std::visit([this](const auto& a) { return a.rows < problem_.shape.m; }, arguments.a);
    return check_arguments(problem_, sound, workspace_bytes()).has_value();
  }

  float alpha_of(const GemmArguments& arguments) const {
    if (mistake_ == Mistake::ignores_alpha) return 1;
    if (arguments.alpha == nullptr) return mistake_ == Mistake::needs_alpha ? 0.0f : 1.0f;
    if (mistake_ != Mistake::alpha_as_bf16) return *arguments.alpha;
    std::uint16_t low = 0;
    std::memcpy(&low, arguments.alpha, 2);
    return bf16_value(low);
  }

  double dot(const double* a, const double* b) const {
    const std::int64_t k = problem_.shape.k;
    std::int64_t end = k;
    if (mistake_ == Mistake::drops_k_tail) end = k / 128 * 128;
    if (mistake_ == Mistake::drops_last_block) end = std::max<std::int64_t>(0, k - 16);
    double sum = 0;
    for (std::int64_t i = 0; i < end; ++i) {
      if (mistake_ == Mistake::drops_one_product && i == k / 2) continue;
      sum += a[i] * b[i];
      if (mistake_ == Mistake::accumulates_in_f16)
        sum = static_cast<double>(f16_value(f16_encode(static_cast<float>(sum))));
    }
    return sum;
  }

  float element(float value, std::int64_t row, std::int64_t column,
                const GemmArguments& arguments) const {
    const bool first = row == 0 && column == 0;
    const auto& [m, n, k] = problem_.shape;
    if (mistake_ == Mistake::wrong_on_odd_k && k / block_size(problem_.b) % 2) return -value;
    if (mistake_ == Mistake::wrong_at_m_65 && row >= 64) return value * 2;
    if (mistake_ == Mistake::wrong_third_time && calls_ == 3 && first) return value + 1;
    if (!first) return value;
    if (mistake_ == Mistake::reads_pads && pad_is_nan_)
      return std::numeric_limits<float>::quiet_NaN();
    if (mistake_ == Mistake::reads_row_pads) return value + row_pad(arguments);
    if (mistake_ == Mistake::keeps_stale_workspace && arguments.workspace[0] != std::byte{0xFF})
      return value + 1;
    if (mistake_ == Mistake::depends_on_last_call) {
      const float last = last_;
      last_ = value;
      return value + last;
    }
    return value;
  }

  static float row_pad(const GemmArguments& arguments) {
    if (const auto* blocks = std::get_if<BlockTensorView>(&arguments.a)) {
      if (blocks->code_stride_bytes == blocks->columns / 2) return 0;
      return blocks->codes[static_cast<std::size_t>(blocks->columns / 2)];
    }
    const auto* dense = std::get_if<DenseTensorView>(&arguments.a);
    if (dense == nullptr || dense->row_stride_bytes == dense->columns * 2) return 0;
    return static_cast<float>(dense->data[static_cast<std::size_t>(dense->columns * 2)]);
  }

  void stray_writes(const GemmArguments& arguments) const {
    const auto output = arguments.output;
    const std::int64_t row_bytes = problem_.shape.n * out_bytes(problem_.out);
    if (mistake_ == Mistake::writes_past_output) *(output.data() + output.size()) = std::byte{0};
    if (mistake_ == Mistake::writes_before_output) *(output.data() - 1) = std::byte{0};
    if (mistake_ == Mistake::writes_between_rows && arguments.out_row_stride_bytes > row_bytes)
      output[static_cast<std::size_t>(row_bytes)] = std::byte{0};
    if (mistake_ == Mistake::writes_past_workspace)
      *(arguments.workspace.data() + arguments.workspace.size()) = std::byte{0};
    if (mistake_ == Mistake::changes_a) {
      std::visit(
          [](const auto& a) {
            if constexpr (requires { a.codes; })
              *mutable_bytes(a.codes.data()) ^= std::byte{1};
            else
              *mutable_bytes(a.data.data()) ^= std::byte{1};
          },
          arguments.a);
    }
  }

  Mistake mistake_;
  GemmProblem problem_;
  std::vector<double> b_;
  BlockTensorView view_;
  bool pad_is_nan_ = false;
  mutable int calls_ = 0;
  mutable float last_ = 0;
};

class FaultyBackend final : public Backend {
 public:
  FaultyBackend(Mistake mistake, std::string_view name) : mistake_(mistake), name_(name) {}
  std::string_view name() const override { return name_; }
  std::string_view summary() const override { return "double loops with one mistake"; }
  Result<std::string> version() const override { return "1"; }

  Contract contract() const override {
    Contract contract;
    contract.alpha_optional = true;
    contract.activations = {Activation::nvfp4, Activation::mxfp4, Activation::bf16, Activation::f16,
                            Activation::q8_0};
    contract.formats = {Format::nvfp4, Format::mxfp4};
    contract.outs = {OutType::bf16, OutType::f16, OutType::f32};
    contract.a_scales = {ScaleOrder::row_major, ScaleOrder::tiled_128x4, ScaleOrder::tiled_8x4};
    contract.b_scales = contract.a_scales;
    return contract;
  }

  Support supports(const GemmProblem& problem, const CpuInfo&) const override {
    if (mistake_ == Mistake::accepts_broken_k) return Supported{};
    return check_contract(contract(), problem);
  }

  Result<std::unique_ptr<PreparedGemm>> prepare(const GemmProblem& problem) const override {
    if (mistake_ == Mistake::fails_in_prepare)
      return fail(ErrorKind::failed, "status 15: no algorithm");
    return std::make_unique<FaultyGemm>(mistake_, problem);
  }

 private:
  Mistake mistake_;
  std::string name_;
};

}  // namespace

std::unique_ptr<Backend> make_faulty_backend(Mistake mistake, std::string_view name) {
  return std::make_unique<FaultyBackend>(mistake, name);
}

}  // namespace nibble
