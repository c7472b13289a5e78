// SPDX-License-Identifier: Apache-2.0
// The NVFP4 rules of docs/formats.md, section 6. Every float expression below is one rounding; no
// product is added to anything, so that nothing can be contracted to a fused multiply-add.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/small_floats.h"
#include "reference/quantize_blocks.h"

namespace nibble {
namespace {

using quantize_detail::BlockScale;
using quantize_detail::CodeBounds;
using quantize_detail::largest_magnitude;
using quantize_detail::Ties;

constexpr float kRange = 2688.0f;  // 6 * 448: amax over the multiplier
constexpr float kFloatMax = std::numeric_limits<float>::max();
constexpr float kLeastNormal = exp2_float(-126);
constexpr CodeBounds kUnitBounds(1.0, Ties::to_even);

struct Factor {
  float g = 1, divisor = 1;  // the rules that divide have only `divisor`
  bool bf16 = false;
};

// torch.sign makes +0 of both zeros before the sign is taken.
std::uint8_t code_with_positive_zero(float quotient) {
  return quotient == 0 ? std::uint8_t{0} : kUnitBounds.code(quotient);
}

float rounded_to_bf16(float x) { return bf16_value(bf16_encode(x)); }

// bm / (6 g) is a quotient of a 24-bit by a 26-bit integer and a tie of E4M3 has 5 bits: a quotient
// that is no tie is at least 2^-32 of itself away from one, and a double keeps it on its side. So
// e4m3 of the double quotient is e4m3 of the real one; s * g is exact in a double.
BlockScale quantize_rn(std::span<const float> x, const Factor& factor, std::uint8_t* codes) {
  const double g = factor.g, bm = largest_magnitude(x);
  const std::uint8_t byte = e4m3_encode(bm / (6.0 * g));
  if (byte == 0) {
    std::fill_n(codes, x.size(), std::uint8_t{0});
    return {.byte = 0, .rounded_to_zero = true};
  }
  const CodeBounds bounds(static_cast<double>(e4m3_scale(byte)) * g, Ties::to_even);
  for (std::size_t i = 0; i < x.size(); ++i) codes[i] = bounds.code(x[i]);
  return {.byte = byte};
}

BlockScale quantize_modelopt(std::span<const float> x, const Factor& factor, std::uint8_t* codes) {
  const float bm = largest_magnitude(x);
  const float six_g = 6.0f * factor.g;
  const float wanted = bm / six_g;
  const std::uint8_t byte =
      e4m3_encode(wanted == 0 ? 1.0f : std::clamp(wanted, exp2_float(-9), 448.0f));
  const float unit = e4m3_scale(byte) * factor.g;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float quotient = x[i] / unit;
    codes[i] = code_with_positive_zero(quotient);
  }
  return {.byte = byte, .rounded_to_zero = wanted == 0};
}

BlockScale quantize_torchao(std::span<const float> x, const Factor& factor, std::uint8_t* codes) {
  const float one_level = largest_magnitude(x) / 6.0f;
  const float wanted = one_level / factor.g;
  const std::uint8_t byte = e4m3_encode(std::clamp(wanted, exp2_float(-6), 448.0f));
  const float inverse_g = 1.0f / factor.g;
  const float quotient = inverse_g / e4m3_scale(byte);
  const float reciprocal = std::min(quotient, kFloatMax);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float scaled = x[i] * reciprocal;
    codes[i] = kUnitBounds.code(scaled);
  }
  return {.byte = byte};
}

BlockScale quantize_compressed_tensors(std::span<const float> x, const Factor& factor,
                                       std::uint8_t* codes) {
  const float bm = largest_magnitude(x);
  const float sixth = bm / 6.0f;
  const float one_level = factor.bf16 ? rounded_to_bf16(sixth) : sixth;
  const float wanted = factor.divisor * one_level;
  std::uint8_t byte = e4m3_encode(wanted);
  const bool zero = byte == 0;
  if (zero) byte = 0x20;  // 0.125
  const float unit = e4m3_scale(byte) / factor.divisor;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float quotient = x[i] / unit;
    codes[i] = code_with_positive_zero(quotient);
  }
  return {.byte = byte, .rounded_to_zero = zero};
}

// A block whose scale rounds to zero keeps codes of +-6 under that zero, as FlashInfer does.
BlockScale quantize_flashinfer(std::span<const float> x, const Factor& factor,
                               std::uint8_t* codes) {
  const float bm = largest_magnitude(x);
  const float sixth = 1.0f / 6.0f;
  const float per_magnitude = factor.divisor * sixth;
  const float wanted = bm * per_magnitude;
  const std::uint8_t byte = e4m3_encode(wanted);
  const float inverse_divisor = 1.0f / factor.divisor;
  const float unit = e4m3_scale(byte) * inverse_divisor;
  const float quotient = 1.0f / unit;
  const float reciprocal = std::min(quotient, kFloatMax);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float scaled = x[i] * reciprocal;
    codes[i] = kUnitBounds.code(scaled);
  }
  return {.byte = byte, .rounded_to_zero = byte == 0};
}

bool divides(Nvfp4Rule rule) {
  return rule == Nvfp4Rule::compressed_tensors || rule == Nvfp4Rule::flashinfer;
}

// torch divides a number by a tensor as reciprocal() * number, each rounded to the tensor's type.
float divisor_of_compressed_tensors(float amax, bool bf16) {
  const float reciprocal = 1.0f / std::max(amax, kLeastNormal);
  const float divisor =
      bf16 ? rounded_to_bf16(rounded_to_bf16(reciprocal) * kRange) : reciprocal * kRange;
  return std::isinf(divisor) ? 1.0f : divisor;
}

float divisor_of_flashinfer(float amax) {
  if (amax == 0) return 1;
  const float divisor = kRange / amax;
  return std::min(divisor, kFloatMax);
}

float multiplier_of(float amax) {
  if (amax == 0) return 1;
  const float g = amax / kRange;
  return std::max(g, kLeastNormal);
}

float factor_from(float amax, Nvfp4Rule rule, bool bf16) {
  if (rule == Nvfp4Rule::flashinfer) return divisor_of_flashinfer(amax);
  if (rule == Nvfp4Rule::compressed_tensors) return divisor_of_compressed_tensors(amax, bf16);
  return multiplier_of(amax);
}

Result<Factor> factor_of(std::span<const float> live, Nvfp4Rule rule,
                         const QuantizeOptions& options, std::string_view asked) {
  Factor factor{.bf16 = options.source_is_bf16};
  float& wanted = divides(rule) ? factor.divisor : factor.g;
  if (options.tensor_scale) {
    const TensorScale& given = *options.tensor_scale;
    if (options.tensor_amax) {
      return fail(ErrorKind::invalid_argument,
                  fmt::format("{}: both tensor_scale and tensor_amax are given", asked));
    }
    if (divides(rule) && !given.divisor) {
      return fail(ErrorKind::invalid_argument,
                  fmt::format("{}: the rule divides; give tensor_scale.divisor", asked));
    }
    wanted = divides(rule) ? *given.divisor : given.multiplier;
    if (!(wanted >= kLeastNormal && wanted <= kFloatMax)) {
      return fail(
          ErrorKind::invalid_argument,
          fmt::format("{}: tensor scale {} is not a finite float from 2^-126 up", asked, wanted));
    }
  } else {
    const float amax = options.tensor_amax.value_or(largest_magnitude(live));
    if (!(amax >= 0 && amax <= kFloatMax)) {
      return fail(ErrorKind::invalid_argument,
                  fmt::format("{}: tensor_amax {} is not finite and >= 0", asked, amax));
    }
    wanted = factor_from(amax, rule, factor.bf16);
  }
  return factor;
}

using QuantizeBlock = BlockScale (*)(std::span<const float>, const Factor&, std::uint8_t*);

QuantizeBlock block_function(Nvfp4Rule rule) {
  switch (rule) {
    case Nvfp4Rule::rn:
      return quantize_rn;
    case Nvfp4Rule::modelopt:
      return quantize_modelopt;
    case Nvfp4Rule::torchao:
      return quantize_torchao;
    case Nvfp4Rule::compressed_tensors:
      return quantize_compressed_tensors;
    case Nvfp4Rule::flashinfer:
      return quantize_flashinfer;
  }
  return nullptr;
}

}  // namespace

Result<Quantized> quantize_nvfp4(std::span<const float> x, std::int64_t rows, std::int64_t columns,
                                 Nvfp4Rule rule, const QuantizeOptions& options) {
  const std::string asked = fmt::format("quantize nvfp4 {}", name(rule));
  const QuantizeBlock quantize_block = block_function(rule);
  NIBBLE_CHECK(quantize_block != nullptr, "no such NVFP4 rule");
  const Status sound =
      quantize_detail::check_source(x, rows, columns, Format::nvfp4, options, asked);
  if (!sound) return tl::unexpected(sound.error());
  const auto live = static_cast<std::size_t>(quantize_detail::live_rows(rows, options) * columns);
  const Result<Factor> factor = factor_of(x.first(live), rule, options, asked);
  if (!factor) return tl::unexpected(factor.error());
  auto result =
      quantize_detail::quantize_blocks(x, rows, columns, Format::nvfp4, options,
                                       [&](std::span<const float> block, std::uint8_t* codes) {
                                         return quantize_block(block, *factor, codes);
                                       });
  if (!result) return result;
  result->tensor.tensor_scale = divides(rule) ? TensorScale{1.0f / factor->divisor, factor->divisor}
                                              : TensorScale{factor->g, std::nullopt};
  return result;
}

}  // namespace nibble
