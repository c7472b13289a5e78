// SPDX-License-Identifier: Apache-2.0
// Operands of the experiments `random` and `wide`.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/small_floats.h"
#include "probe/make_operands.h"
#include "reference/quantize.h"

namespace nibble {
namespace {

constexpr float kWeightDeviation = 0.02f;  // as the weights of a large model; activations have 1

std::vector<float> normal_data(std::int64_t rows, std::int64_t columns, float deviation,
                               RandomBits& random) {
  std::vector<float> data(static_cast<std::size_t>(rows * columns));
  for (float& x : data) x = deviation * random.normal();
  return data;
}

// In (1, 2), never a power of two.
float plain_factor(RandomBits& random) {
  const auto mantissa = static_cast<std::uint32_t>((random.next() >> 41) | 1);
  return std::bit_cast<float>(0x3F800000u | mantissa);
}

Result<BlockTensor> quantized(Format format, std::int64_t rows, std::int64_t columns,
                              ScaleOrder order, float deviation, RandomBits& random) {
  const auto data = normal_data(rows, columns, deviation, random);
  auto result = format == Format::nvfp4 ? quantize_nvfp4(data, rows, columns, Nvfp4Rule::rn)
                                        : quantize_mxfp4(data, rows, columns, Mxfp4Rule::floor);
  if (!result) return tl::unexpected(result.error());
  if (order == ScaleOrder::row_major) return std::move(result->tensor);
  return relayout(result->tensor.view(), order);
}

// llama.cpp's rule: d = amax / 127 in f16, q = x / d to nearest.
void quantize_q8(Q8Tensor& tensor, std::span<const float> data) {
  for (std::int64_t row = 0; row < tensor.rows; ++row) {
    for (std::int64_t block = 0; block < tensor.columns / 32; ++block) {
      const auto x = data.subspan(static_cast<std::size_t>(row * tensor.columns + block * 32), 32);
      float amax = 0;
      for (const float value : x) amax = std::max(amax, std::fabs(value));
      const std::uint16_t bits = f16_encode(amax / 127.0f);
      const float inverse = f16_value(bits) > 0 ? 1.0f / f16_value(bits) : 0.0f;
      tensor.set_scale(row, block, bits);
      for (std::int64_t i = 0; i < 32; ++i) {
        const float code = std::round(x[static_cast<std::size_t>(i)] * inverse);
        tensor.set_code(row, block * 32 + i,
                        static_cast<std::int8_t>(std::clamp(code, -127.0f, 127.0f)));
      }
    }
  }
}

// Its tensor scale, or a factor that takes its place.
Result<float> fill_random_activation(const GemmProblem& problem, ActivationTensor& a,
                                     RandomBits& random) {
  const auto& [m, n, k] = problem.shape;
  if (auto* blocks = std::get_if<BlockTensor>(&a)) {
    auto made = quantized(blocks->format, m, k, problem.a_scales, 1.0f, random);
    if (!made) return tl::unexpected(made.error());
    *blocks = std::move(*made);
    if (blocks->format == Format::nvfp4) return blocks->tensor_scale.multiplier;
    return plain_factor(random);
  }
  const auto data = normal_data(m, k, 1.0f, random);
  if (auto* dense = std::get_if<DenseTensor>(&a)) {
    for (std::int64_t i = 0; i < m * k; ++i)
      dense->set(i / k, i % k, data[static_cast<std::size_t>(i)]);
  } else {
    quantize_q8(std::get<Q8Tensor>(a), data);
  }
  return plain_factor(random);
}

// ---- wide

// A binary order that most elements of an operand stay below.
constexpr int kTypicalExponentNvfp4 = 9, kTypicalExponentOther = 21;
constexpr int kWideSpan = 20;
constexpr std::int64_t kWidestRow = 15;  // of sixteen
// Two of these and a long k stay below 2^128: where a sum of both signs overflows, fp32 may answer
// with NaN, and nothing could be judged. `extremes` has the bytes above.
constexpr int kWidestExponent = 52;

int typical_exponent(Activation a) {
  return a == Activation::nvfp4 ? kTypicalExponentNvfp4 : kTypicalExponentOther;
}

void fill_wide(BlockTensor& tensor, RandomBits& random) {
  for (auto& byte : tensor.codes) byte = static_cast<std::uint8_t>(random.next() >> 56);
  for (std::int64_t row = 0; row < tensor.rows; ++row) {
    for (std::int64_t block = 0; block < tensor.layout.blocks; ++block) {
      std::int64_t byte = 1 + random.below(126);
      if (tensor.format == Format::mxfp4) {
        byte = row % 16 == kWidestRow ? random.below(127 + kWidestExponent + 1)
                                      : 127 - kWideSpan + random.below(2 * kWideSpan + 1);
      }
      set_scale(tensor, row, block, static_cast<std::uint8_t>(byte));
    }
  }
}

void fill_wide(DenseTensor& tensor, RandomBits& random) {
  const bool bf16 = tensor.type == DenseType::bf16;
  for (std::int64_t i = 0; i < tensor.rows * tensor.columns; ++i) {
    const int exponent = static_cast<int>(bf16 ? random.below(2 * kWideSpan + 1) - kWideSpan
                                               : random.below(30) - 14);
    const float sign = (random.next() >> 63) ? -1.0f : 1.0f;
    tensor.set(i / tensor.columns, i % tensor.columns,
               sign * plain_factor(random) * exp2_float(exponent));
  }
}

void fill_wide(Q8Tensor& tensor, RandomBits& random) {
  for (std::int64_t row = 0; row < tensor.rows; ++row) {
    for (std::int64_t block = 0; block < tensor.columns / 32; ++block) {
      // Any positive finite f16 from its smallest normal on.
      tensor.set_scale(row, block, static_cast<std::uint16_t>(0x0400 + random.below(0x7800)));
    }
    for (std::int64_t column = 0; column < tensor.columns; ++column)
      tensor.set_code(row, column, static_cast<std::int8_t>(random.below(255) - 127));
  }
}

// Outputs spread over what the type holds: f16 within 2^-6..2^12, the others within 2^+-40.
float wide_alpha(const GemmProblem& problem, RandomBits& random) {
  const int wanted =
      static_cast<int>(problem.out == OutType::f16 ? random.below(19) - 6 : random.below(81) - 40);
  int typical = typical_exponent(problem.a) + typical_exponent(activation_of(problem.b));
  for (std::int64_t k = problem.shape.k; k > 1; k /= 4) ++typical;
  return plain_factor(random) * exp2_float(wanted - typical);
}

}  // namespace

Result<Operands> make_random_operands(const GemmProblem& problem, std::uint64_t seed) {
  auto operands = make_zero_operands(problem);
  if (!operands) return operands;
  RandomBits random(seed);
  const auto a_factor = fill_random_activation(problem, operands->a, random);
  if (!a_factor) return tl::unexpected(a_factor.error());
  auto b = quantized(problem.b, problem.shape.n, problem.shape.k, problem.b_scales,
                     kWeightDeviation, random);
  if (!b) return tl::unexpected(b.error());
  operands->b = std::move(*b);
  const float b_factor =
      problem.b == Format::nvfp4 ? operands->b.tensor_scale.multiplier : plain_factor(random);
  operands->alpha = *a_factor * b_factor;
  return operands;
}

Result<Operands> make_random_operands_for(const GemmProblem& problem, const BlockTensorView& b,
                                          std::uint64_t seed) {
  if (b.rows != problem.shape.n || b.columns != problem.shape.k || b.format != problem.b) {
    return fail(ErrorKind::invalid_argument, "B is " + std::to_string(b.rows) + "x" +
                                                 std::to_string(b.columns) +
                                                 ", not what the problem asks for");
  }
  GemmProblem empty_b = problem;
  empty_b.shape.n = 0;
  auto operands = make_zero_operands(empty_b);
  if (!operands) return operands;
  RandomBits random(seed);
  const auto a_factor = fill_random_activation(problem, operands->a, random);
  if (!a_factor) return tl::unexpected(a_factor.error());
  auto same_b = relayout(b, problem.b_scales);
  if (!same_b) return tl::unexpected(same_b.error());
  operands->b = std::move(*same_b);
  operands->alpha = *a_factor * b.tensor_scale.multiplier;
  return operands;
}

Result<Operands> make_wide_operands(const GemmProblem& problem, std::uint64_t seed) {
  auto operands = make_zero_operands(problem);
  if (!operands) return operands;
  RandomBits random(seed);
  std::visit([&](auto& a) { fill_wide(a, random); }, operands->a);
  fill_wide(operands->b, random);
  operands->alpha = wide_alpha(problem, random);
  return operands;
}

}  // namespace nibble
