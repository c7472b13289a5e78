// SPDX-License-Identifier: Apache-2.0
// One rounding of integer * alpha * 2^-20 in double arithmetic: the integer path's fast ending.
// Compiled for the default floating-point environment.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "core/format.h"

namespace nibble {

// A product p * (1 + tiny) as its nearest double and the same rounded to odd: one more rounding of
// `odd` to at most 51 bits gives what a single rounding of the exact product gives.
struct RoundedProduct {
  double nearest, odd;
};

inline constexpr std::int64_t kMaxExactFactor = std::int64_t{1} << 54;

// factor * alpha; |factor| < kMaxExactFactor, alpha finite.
inline RoundedProduct multiply_once(std::int64_t factor, float alpha) {
  // Each half times 24 bits is exact; |high| > |low| or high is 0, so `error` is exact too.
  const double high = static_cast<double>(factor >> 26) * 0x1p26 * static_cast<double>(alpha);
  const double low = static_cast<double>(factor & 0x3FFFFFF) * static_cast<double>(alpha);
  const double nearest = high + low + 0.0;  // no -0
  const double error = low - (nearest - high);
  // An even last bit of an inexact product moves towards the error. Without branches: which way it
  // goes is a coin toss.
  const auto bits = std::bit_cast<std::uint64_t>(nearest);
  const std::uint64_t moves = static_cast<std::uint64_t>(error != 0) & ~bits & 1;
  const std::uint64_t towards_zero = (std::bit_cast<std::uint64_t>(error) ^ bits) >> 63;
  const std::uint64_t odd = bits + moves - 2 * (moves & towards_zero);
  return {nearest, std::bit_cast<double>(odd)};
}

// x to nearest even of a type of `precision` bits whose least normal is 2^least_normal, overflow
// aside. |x| < 2^200.
inline double round_to_precision(double x, int precision, int least_normal) {
  const auto exponent = static_cast<int>((std::bit_cast<std::uint64_t>(x) >> 52) & 0x7FF);
  const int kept = std::max(exponent, least_normal + 1023);
  // In the binade of 1.5 * 2^e doubles are 2^(e - 52) apart: adding rounds x to that multiple.
  const auto anchor_bits =
      (static_cast<std::uint64_t>(kept + 53 - precision) << 52) | (std::uint64_t{1} << 51);
  const double anchor = std::bit_cast<double>(anchor_bits);
  return std::copysign((x + anchor) - anchor, x);
}

// The bits of x, which was rounded to odd, in a type: one rounding, overflow to inf.
template <OutType kType>
inline std::uint32_t round_odd_to(double x) {
  if constexpr (kType == OutType::f32)
    return std::bit_cast<std::uint32_t>(static_cast<float>(round_to_precision(x, 24, -126)));
  if constexpr (kType == OutType::bf16)
    return std::bit_cast<std::uint32_t>(static_cast<float>(round_to_precision(x, 8, -126))) >> 16;
  const double rounded = round_to_precision(x, 11, -14);
  const double magnitude = std::fabs(rounded);
  const std::uint32_t sign = std::signbit(rounded) ? 0x8000 : 0;
  if (magnitude >= 0x1p16) return sign | 0x7C00;
  if (magnitude < 0x1p-14) return sign | static_cast<std::uint32_t>(magnitude * 0x1p24);
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(magnitude));
  return sign | ((bits >> 13) - (112u << 10));
}

}  // namespace nibble
