// SPDX-License-Identifier: Apache-2.0
#include "core/small_floats.h"

#include <cmath>

namespace nibble {
namespace {

// x (finite, >= 0) rounded to nearest even at `mantissa_bits` behind the leading bit, with the
// subnormal floor.
double round_to_precision(double x, int mantissa_bits, int least_exponent) {
  if (x == 0) return 0;
  const int exponent = std::max(std::ilogb(x), least_exponent);
  const int shift = mantissa_bits - exponent;
  return std::ldexp(std::nearbyint(std::ldexp(x, shift)), -shift);
}

std::uint8_t e4m3_magnitude(double x) {
  const double rounded = x >= 464 ? 448 : std::fmin(round_to_precision(x, 3, -6), 448);
  if (rounded < exp2_float(-6)) return static_cast<std::uint8_t>(rounded * 512);
  const int exponent = std::ilogb(rounded);
  const int mantissa = static_cast<int>(std::ldexp(rounded, 3 - exponent)) - 8;
  return static_cast<std::uint8_t>(((exponent + 7) << 3) | mantissa);
}

}  // namespace

std::uint8_t e4m3_encode(double x) {
  if (std::isnan(x)) return 0x7F;
  const std::uint8_t magnitude = e4m3_magnitude(std::fabs(x));
  return std::signbit(x) ? static_cast<std::uint8_t>(magnitude | 0x80) : magnitude;
}

std::uint8_t e4m3_encode(float x) { return e4m3_encode(static_cast<double>(x)); }

std::uint16_t f16_encode(float x) {
  const std::uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  if (std::isnan(x)) return static_cast<std::uint16_t>(sign | 0x7E00);
  const double magnitude = std::fabs(static_cast<double>(x));
  if (magnitude >= 65520) return static_cast<std::uint16_t>(sign | 0x7C00);
  const double rounded = round_to_precision(magnitude, 10, -14);
  if (rounded < exp2_float(-14))
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::ldexp(rounded, 24)));
  const int exponent = std::ilogb(rounded);
  const int mantissa = static_cast<int>(std::ldexp(rounded, 10 - exponent)) - 1024;
  return static_cast<std::uint16_t>(sign | ((exponent + 15) << 10) | mantissa);
}

}  // namespace nibble
