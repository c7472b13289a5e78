// SPDX-License-Identifier: Apache-2.0
// What every quantizer rule shares: the walk over blocks, and codes decided without a rounded
// quotient. For quantize_nvfp4.cpp and quantize_mxfp4.cpp only.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include "core/e2m1.h"
#include "reference/quantize.h"

namespace nibble::quantize_detail {

struct BlockScale {
  std::uint8_t byte = 0;
  bool rounded_to_zero = false;  // its non-zero elements, if any, are lost
};

constexpr std::uint32_t magnitude_bits(float x) {
  return std::bit_cast<std::uint32_t>(x) & 0x7FFFFFFF;
}
constexpr std::uint8_t sign_of_code(float x) {
  return static_cast<std::uint8_t>((std::bit_cast<std::uint32_t>(x) >> 28) & 8);
}

inline float largest_magnitude(std::span<const float> x) {
  std::uint32_t largest = 0;
  for (const float value : x) largest = std::max(largest, magnitude_bits(value));
  return std::bit_cast<float>(largest);
}

enum class Ties : std::uint8_t { to_even, toward_zero };

// The codes of x / unit, for an exact unit: the seven bounds between neighbouring codes times the
// unit have at most 24 + 4 + 3 significant bits, exact in a double, so that no quotient is rounded.
// Magnitudes compare as their bit patterns.
class CodeBounds {
 public:
  constexpr CodeBounds(double unit, Ties ties) {
    constexpr double kBounds[7] = {0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5};
    for (int i = 0; i < 7; ++i) {
      const bool tie_goes_up = ties == Ties::to_even && (i & 1);
      least_[static_cast<std::size_t>(i)] = least_float(kBounds[i] * unit, tie_goes_up);
    }
  }

  // Sign in bit 3, also of a value that rounds to zero.
  constexpr std::uint8_t code(float x) const {
    const std::uint32_t magnitude = magnitude_bits(x);
    int code = 0;
    for (const std::uint32_t least : least_) code += magnitude >= least;
    return static_cast<std::uint8_t>(code | sign_of_code(x));
  }

 private:
  // The smallest float >= bound, or > bound.
  static constexpr std::uint32_t least_float(double bound, bool equal_too) {
    if (bound > static_cast<double>(std::numeric_limits<float>::max())) return 0x7F800000;
    const float near = static_cast<float>(bound);
    const double back = static_cast<double>(near);
    const bool step = equal_too ? back < bound : back <= bound;
    return std::bit_cast<std::uint32_t>(near) + step;
  }

  std::array<std::uint32_t, 7> least_{};
};

// Sizes, live_rows, NaN and inf. `asked` starts the messages: "quantize nvfp4 rn".
Status check_source(std::span<const float> x, std::int64_t rows, std::int64_t columns,
                    Format format, const QuantizeOptions& options, std::string_view asked);

inline std::int64_t live_rows(std::int64_t rows, const QuantizeOptions& options) {
  return options.live_rows.value_or(rows);
}

// quantize_block(span of one block, codes) -> BlockScale, for each block of the live rows; packs
// and counts. The source was checked.
template <class QuantizeBlock>
Result<Quantized> quantize_blocks(std::span<const float> x, std::int64_t rows, std::int64_t columns,
                                  Format format, const QuantizeOptions& options,
                                  QuantizeBlock quantize_block) {
  auto tensor = make_block_tensor(format, rows, columns);
  if (!tensor) return tl::unexpected(tensor.error());
  Quantized result{.tensor = std::move(*tensor)};
  const auto block = static_cast<std::size_t>(block_size(format));
  const auto blocks =
      static_cast<std::size_t>(live_rows(rows, options) * result.tensor.layout.blocks);
  std::array<std::uint8_t, 32> codes{};
  for (std::size_t i = 0; i < blocks; ++i) {
    const std::span<const float> values = x.subspan(i * block, block);
    const BlockScale scale = quantize_block(values, codes.data());
    result.tensor.scales[i] = scale.byte;
    if (scale.rounded_to_zero) {
      for (const float value : values) result.lost_to_zero_scale += value != 0;
    }
    std::uint8_t* packed = result.tensor.codes.data() + i * block / 2;
    for (std::size_t j = 0; j < block / 2; ++j)
      packed[j] = pack_codes(codes[2 * j], codes[2 * j + 1]);
  }
  return result;
}

}  // namespace nibble::quantize_detail
