// SPDX-License-Identifier: Apache-2.0
// A non-negative number held exactly, and its one rounding to an output type or to double. The
// superaccumulator path ends here.
#pragma once

#include <array>
#include <cstdint>

#include "core/format.h"

namespace nibble {

// sum of limbs[i] * 2^(64 i + exponent), i < count; limbs from count on are not read.
struct Magnitude {
  static constexpr int kMaxLimbs = 14;
  std::array<std::uint64_t, kMaxLimbs> limbs;
  int count = 0;
  int exponent = 0;
};

// Position of the leading bit: 2^result <= value < 2^(result + 1). The value is not zero.
int leading_exponent(const Magnitude& value);
bool is_zero(const Magnitude& value);

// value *= factor * 2^exponent, exactly. `factor` is below 2^32.
void multiply(Magnitude& value, std::uint32_t factor, int exponent);

enum class RoundingMode : std::uint8_t { nearest_even, up, down };

// To double; the value must lie in double's normal range.
double to_double(const Magnitude& value, RoundingMode mode);

// The bits of (-1)^negative * value in `type`, rounded once to nearest even; overflows to inf,
// subnormals are kept.
std::uint32_t round_to(OutType type, bool negative, const Magnitude& value);

// The bits of an infinity or of the quiet NaN that exact products hold.
std::uint32_t infinity_bits(OutType type, bool negative);
std::uint32_t nan_bits(OutType type);

}  // namespace nibble
