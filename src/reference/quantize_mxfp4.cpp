// SPDX-License-Identifier: Apache-2.0
// The MXFP4 rules of docs/formats.md, section 6. Scales are powers of two: a division by one is
// exact save for underflow, and that is where the producers' signs of zero come from.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/small_floats.h"
#include "reference/quantize_blocks.h"

namespace nibble {
namespace {

using quantize_detail::BlockScale;
using quantize_detail::CodeBounds;
using quantize_detail::largest_magnitude;
using quantize_detail::magnitude_bits;
using quantize_detail::Ties;

constexpr int kLeastExponent = -127;

std::uint8_t byte_of(int exponent) {
  return static_cast<std::uint8_t>(std::clamp(exponent, kLeastExponent, 127) + 127);
}

// log2 in fp32, as the producers take it: a value within about 2^-18 of a power of two can count as
// that power. Correctly rounded here; their libraries are within one unit in the last place.
float log2_fp32(float x) { return static_cast<float>(std::log2(static_cast<double>(x))); }

std::uint8_t floor_byte(float bm) {
  return bm == 0 ? std::uint8_t{0} : byte_of(std::ilogb(bm) - 2);
}

// The smallest power of two >= bm / 6: 6 * 2^(k-2) = 1.5 * 2^k.
std::uint8_t ceil_byte(float bm) {
  if (bm == 0) return 0;
  const int k = std::ilogb(bm);
  const bool fits = static_cast<double>(bm) <= std::ldexp(1.5, k);
  return byte_of(fits ? k - 2 : k - 1);
}

// Half of a unit of the second significant bit carries into the exponent from 1.75 on. A carry out
// of the largest exponent is 2^128; subnormals end below the least exponent either way.
std::uint8_t even_byte(float bm) {
  const int exponent_field = static_cast<int>((magnitude_bits(bm) + (1u << 21)) >> 23);
  return exponent_field == 0 ? std::uint8_t{0} : byte_of(exponent_field - 127 - 2);
}

// ceil(log2(bm / 6)), each step rounded to fp32.
std::uint8_t ceil_log2_byte(float bm) {
  const float sixth = bm / 6.0f;
  if (sixth == 0) return 0;
  return byte_of(static_cast<int>(std::ceil(log2_fp32(sixth))));
}

std::uint8_t floor_log2_byte(float bm) {
  return bm == 0 ? std::uint8_t{0} : byte_of(static_cast<int>(std::floor(log2_fp32(bm))) - 2);
}

void encode_exact(std::span<const float> x, std::uint8_t byte, std::uint8_t* codes) {
  const CodeBounds bounds(static_cast<double>(e8m0_value(byte)), Ties::to_even);
  for (std::size_t i = 0; i < x.size(); ++i) codes[i] = bounds.code(x[i]);
}

BlockScale quantize_floor(std::span<const float> x, std::uint8_t* codes) {
  const std::uint8_t byte = floor_byte(largest_magnitude(x));
  encode_exact(x, byte, codes);
  return {.byte = byte};
}

BlockScale quantize_ceil(std::span<const float> x, std::uint8_t* codes) {
  const std::uint8_t byte = ceil_byte(largest_magnitude(x));
  encode_exact(x, byte, codes);
  return {.byte = byte};
}

BlockScale quantize_even(std::span<const float> x, std::uint8_t* codes) {
  const std::uint8_t byte = even_byte(largest_magnitude(x));
  encode_exact(x, byte, codes);
  return {.byte = byte};
}

// Code 8 for every quotient that is zero, whatever its sign.
BlockScale quantize_modelopt(std::span<const float> x, std::uint8_t* codes) {
  constexpr CodeBounds bounds(1.0, Ties::toward_zero);
  const std::uint8_t byte = ceil_log2_byte(largest_magnitude(x));
  const float scale = e8m0_value(byte);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float quotient = x[i] / scale;
    codes[i] = quotient == 0 ? std::uint8_t{8} : bounds.code(quotient);
  }
  return {.byte = byte};
}

// Code 0 for every quotient that is zero. Of bf16 weights the quotient is bf16: exact, but for
// underflow.
template <bool kBf16>
BlockScale quantize_compressed_tensors(std::span<const float> x, std::uint8_t* codes) {
  constexpr CodeBounds bounds(1.0, Ties::to_even);
  const std::uint8_t byte = even_byte(largest_magnitude(x));
  const float scale = e8m0_value(byte);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float exact = x[i] / scale;
    const float quotient = kBf16 ? bf16_value(bf16_encode(exact)) : exact;
    codes[i] = quotient == 0 ? std::uint8_t{0} : bounds.code(quotient);
  }
  return {.byte = byte};
}

// Under byte 0 torchao divides by 2^-126, not by the 2^-127 that the byte stands for.
BlockScale quantize_torchao_floor(std::span<const float> x, std::uint8_t* codes) {
  const std::uint8_t byte = floor_byte(largest_magnitude(x));
  const CodeBounds bounds(static_cast<double>(std::max(e8m0_value(byte), exp2_float(-126))),
                          Ties::to_even);
  for (std::size_t i = 0; i < x.size(); ++i) codes[i] = bounds.code(x[i]);
  return {.byte = byte};
}

// Under byte 0 torchao multiplies by 1: codes of zero.
BlockScale quantize_torchao_rceil(std::span<const float> x, std::uint8_t* codes) {
  const std::uint8_t byte = ceil_log2_byte(largest_magnitude(x));
  const CodeBounds bounds(byte == 0 ? 1.0 : static_cast<double>(e8m0_value(byte)), Ties::to_even);
  for (std::size_t i = 0; i < x.size(); ++i) codes[i] = bounds.code(x[i]);
  return {.byte = byte};
}

// The nearest of the values in the order 0, .5, .. 6, 0, -.5, .. -6, the first of equals: never
// code 8, and a tie goes toward zero.
BlockScale quantize_gguf(std::span<const float> x, std::uint8_t* codes) {
  const std::uint8_t byte = floor_log2_byte(largest_magnitude(x));
  const CodeBounds bounds(static_cast<double>(e8m0_value(byte)), Ties::toward_zero);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::uint8_t code = bounds.code(x[i]);
    codes[i] = code == 8 ? std::uint8_t{0} : code;
  }
  return {.byte = byte};
}

using QuantizeBlock = BlockScale (*)(std::span<const float>, std::uint8_t*);

QuantizeBlock block_function(Mxfp4Rule rule, bool bf16) {
  switch (rule) {
    case Mxfp4Rule::floor:
      return quantize_floor;
    case Mxfp4Rule::ceil:
      return quantize_ceil;
    case Mxfp4Rule::even:
      return quantize_even;
    case Mxfp4Rule::modelopt:
      return quantize_modelopt;
    case Mxfp4Rule::compressed_tensors:
      return bf16 ? quantize_compressed_tensors<true> : quantize_compressed_tensors<false>;
    case Mxfp4Rule::torchao_floor:
      return quantize_torchao_floor;
    case Mxfp4Rule::torchao_rceil:
      return quantize_torchao_rceil;
    case Mxfp4Rule::gguf:
      return quantize_gguf;
  }
  return nullptr;
}

}  // namespace

Result<Quantized> quantize_mxfp4(std::span<const float> x, std::int64_t rows, std::int64_t columns,
                                 Mxfp4Rule rule, const QuantizeOptions& options) {
  const std::string asked = fmt::format("quantize mxfp4 {}", name(rule));
  const QuantizeBlock quantize_block = block_function(rule, options.source_is_bf16);
  NIBBLE_CHECK(quantize_block != nullptr, "no such MXFP4 rule");
  if (options.tensor_amax || options.tensor_scale) {
    return fail(ErrorKind::invalid_argument, fmt::format("{}: mxfp4 has no tensor scale", asked));
  }
  const Status sound =
      quantize_detail::check_source(x, rows, columns, Format::mxfp4, options, asked);
  if (!sound) return tl::unexpected(sound.error());
  return quantize_detail::quantize_blocks(x, rows, columns, Format::mxfp4, options, quantize_block);
}

}  // namespace nibble
