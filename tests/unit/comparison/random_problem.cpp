// SPDX-License-Identifier: Apache-2.0
#include "random_problem.h"

#include <cmath>
#include <cstring>
#include <random>

#include "core/e2m1.h"
#include "reference/quantize.h"

namespace nibble {
namespace {

std::vector<float> normal(std::int64_t count, float deviation, std::mt19937_64& random) {
  std::normal_distribution<float> distribution(0, deviation);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (auto& value : values) value = distribution(random);
  return values;
}

std::vector<double> values_of(const BlockTensor& tensor) {
  std::vector<double> values;
  for (std::int64_t row = 0; row < tensor.rows; ++row) {
    for (std::int64_t column = 0; column < tensor.columns; ++column) {
      values.push_back(static_cast<double>(e2m1_value(tensor.view().code(row, column))) *
                       static_cast<double>(e4m3_scale(tensor.view().scale(row, column / 16))));
    }
  }
  return values;
}

}  // namespace

void store(std::vector<std::byte>& output, OutType out, std::int64_t index, float value) {
  const std::uint32_t bits = out == OutType::f32    ? std::bit_cast<std::uint32_t>(value)
                             : out == OutType::bf16 ? bf16_encode(value)
                                                    : f16_encode(value);
  std::memcpy(output.data() + index * out_bytes(out), &bits,
              static_cast<std::size_t>(out_bytes(out)));
}

RandomProblem::RandomProblem(Activation a_kind, std::int64_t m_, std::int64_t n_, std::int64_t k_,
                             std::uint64_t seed)
    : m(m_), n(n_), k(k_), kind_(a_kind) {
  std::mt19937_64 random(seed);
  const auto x = normal(m * k, 1.0f, random), w = normal(n * k, 0.02f, random);
  b_blocks_ = quantize_nvfp4(w, n, k, Nvfp4Rule::rn).value().tensor;
  b = values_of(b_blocks_);
  g_b = b_blocks_.tensor_scale.multiplier;
  float g_a = 1.37f;
  if (a_kind == Activation::nvfp4) {
    a_blocks_ = quantize_nvfp4(x, m, k, Nvfp4Rule::rn).value().tensor;
    a = values_of(a_blocks_);
    g_a = a_blocks_.tensor_scale.multiplier;
  } else {
    for (const float value : x) {
      a_dense_.push_back(a_kind == Activation::bf16 ? bf16_encode(value) : f16_encode(value));
      a.push_back(static_cast<double>(a_kind == Activation::bf16 ? bf16_value(a_dense_.back())
                                                                 : f16_value(a_dense_.back())));
    }
  }
  // Large enough for f16 outputs to be normal.
  alpha = 1000.0f * g_a * g_b;
}

GemmInputs RandomProblem::inputs() const {
  if (kind_ == Activation::nvfp4) return {a_blocks_.view(), b_blocks_.view(), alpha};
  return {DenseTensorView{kind_ == Activation::bf16 ? DenseType::bf16 : DenseType::f16, m, k, k * 2,
                          std::as_bytes(std::span(a_dense_))},
          b_blocks_.view(), alpha};
}

std::vector<double> RandomProblem::products(std::int64_t row, std::int64_t column) const {
  std::vector<double> products;
  products.reserve(static_cast<std::size_t>(k));
  for (std::int64_t i = 0; i < k; ++i)
    products.push_back(a[static_cast<std::size_t>(row * k + i)] *
                       b[static_cast<std::size_t>(column * k + i)]);
  return products;
}

std::vector<std::byte> RandomProblem::run(const accumulate::Order& order, OutType out) const {
  return run(order, out, [](std::vector<double>&) {});
}

std::vector<std::byte> RandomProblem::run(
    const accumulate::Order& order, OutType out,
    const std::function<void(std::vector<double>&)>& change) const {
  std::vector<std::byte> output(static_cast<std::size_t>(m * n * out_bytes(out)));
  for (std::int64_t i = 0; i < m * n; ++i) {
    auto each = products(i / n, i % n);
    change(each);
    store(output, out, i, alpha * order(each));
  }
  return output;
}

OutputView RandomProblem::view(const std::vector<std::byte>& output, OutType out) const {
  return {out, m, n, n * out_bytes(out), output};
}

Accuracy RandomProblem::judge(const std::vector<std::byte>& output, OutType out,
                              AccumulationClass accept, bool noise) const {
  return compare(inputs(), view(output, out), {accept, noise, false}).value();
}

}  // namespace nibble
