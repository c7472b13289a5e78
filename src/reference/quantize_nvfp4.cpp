// SPDX-License-Identifier: Apache-2.0
// The NVFP4 rules of docs/formats.md, section 6.
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
using quantize_detail::Ties;

constexpr float kAmaxPerMultiplier = 2688.0f;  // 6 * 448

// bm / (6 g) is a quotient of 24-bit by 26-bit integers and a tie of E4M3 has 5 bits: a quotient
// that is no tie is at least 2^-32 of itself away from one, and a double keeps it there. So e4m3 of
// the double quotient is e4m3 of the real one; and s * g is exact in a double.
BlockScale quantize_block_rn(std::span<const float> x, float g, std::uint8_t* codes) {
  const double bm = largest_magnitude(x);
  const std::uint8_t byte = e4m3_encode(bm / (6.0 * static_cast<double>(g)));
  if (byte == 0) {
    std::fill_n(codes, x.size(), std::uint8_t{0});
    return {.byte = 0, .rounded_to_zero = bm > 0};
  }
  const CodeBounds bounds(static_cast<double>(e4m3_scale(byte)) * static_cast<double>(g),
                          Ties::to_even);
  for (std::size_t i = 0; i < x.size(); ++i) codes[i] = bounds.code(x[i]);
  return {.byte = byte};
}

float multiplier_of(float amax) {
  if (amax == 0) return 1.0f;
  const float g = amax / kAmaxPerMultiplier;
  return std::max(g, exp2_float(-126));
}

}  // namespace

Result<Quantized> quantize_nvfp4(std::span<const float> x, std::int64_t rows, std::int64_t columns,
                                 Nvfp4Rule rule, const QuantizeOptions& options) {
  const std::string asked = fmt::format("quantize nvfp4 {}", name(rule));
  if (rule != Nvfp4Rule::rn) return fail(ErrorKind::unsupported, asked + ": not here yet");
  if (auto ok = quantize_detail::check_source(x, rows, columns, Format::nvfp4, options, asked); !ok)
    return tl::unexpected(ok.error());
  const auto live = static_cast<std::size_t>(quantize_detail::live_rows(rows, options) * columns);
  const float amax = options.tensor_amax ? *options.tensor_amax : largest_magnitude(x.first(live));
  const float g = options.tensor_scale ? options.tensor_scale->multiplier : multiplier_of(amax);
  auto result =
      quantize_detail::quantize_blocks(x, rows, columns, Format::nvfp4, options,
                                       [g](std::span<const float> block, std::uint8_t* codes) {
                                         return quantize_block_rn(block, g, codes);
                                       });
  if (result) result->tensor.tensor_scale.multiplier = g;
  return result;
}

}  // namespace nibble
