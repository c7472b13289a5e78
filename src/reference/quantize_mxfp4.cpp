// SPDX-License-Identifier: Apache-2.0
// The MXFP4 rules of docs/formats.md, section 6.
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

int clamped(int exponent) { return std::clamp(exponent, -127, 127); }

// floor(log2 bm) - 2. Zero gives -127.
int floor_exponent(float bm) { return bm == 0 ? -127 : clamped(std::ilogb(bm) - 2); }

}  // namespace

Result<Quantized> quantize_mxfp4(std::span<const float> x, std::int64_t rows, std::int64_t columns,
                                 Mxfp4Rule rule, const QuantizeOptions& options) {
  const std::string asked = fmt::format("quantize mxfp4 {}", name(rule));
  if (rule != Mxfp4Rule::floor) return fail(ErrorKind::unsupported, asked + ": not here yet");
  if (auto ok = quantize_detail::check_source(x, rows, columns, Format::mxfp4, options, asked); !ok)
    return tl::unexpected(ok.error());
  return quantize_detail::quantize_blocks(
      x, rows, columns, Format::mxfp4, options,
      [](std::span<const float> block, std::uint8_t* codes) -> BlockScale {
        const int exponent = floor_exponent(largest_magnitude(block));
        const CodeBounds bounds(static_cast<double>(exp2_float(exponent)), Ties::to_even);
        for (std::size_t i = 0; i < block.size(); ++i) codes[i] = bounds.code(block[i]);
        return {.byte = static_cast<std::uint8_t>(exponent + 127)};
      });
}

}  // namespace nibble
