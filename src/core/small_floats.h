// SPDX-License-Identifier: Apache-2.0
// E4M3 and E8M0 block scales, and bf16 and f16 elements: every code decodes exactly, encoding
// rounds to nearest even. Sources: OCP 8-bit Floating Point Specification v1.0 (E4M3), OCP
// Microscaling Formats v1.0 (E8M0), IEEE 754 (f16).
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace nibble {

// 2^exponent as a float, exact from 2^-149 to 2^127.
constexpr float exp2_float(int exponent) {
  if (exponent < -126) return std::bit_cast<float>(std::uint32_t{1} << (exponent + 149));
  return std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127) << 23);
}

// ---- E4M3: bias 7, no inf, 0x7F and 0xFF are NaN, largest 448, smallest 2^-9.

constexpr bool e4m3_is_nan(std::uint8_t byte) { return (byte & 0x7F) == 0x7F; }

// Magnitude in units of 2^-9, at most 229376. The sign bit is ignored, as FP4 tensor cores do with
// a scale ("UE4M3"). NaN bytes give 0: ask e4m3_is_nan first.
constexpr std::uint32_t e4m3_units(std::uint8_t byte) {
  if (e4m3_is_nan(byte)) return 0;
  const std::uint32_t exponent = (byte >> 3) & 15, mantissa = byte & 7;
  return exponent == 0 ? mantissa : (8 + mantissa) << (exponent - 1);
}

// The value as a signed number. As a block scale use e4m3_scale.
constexpr float e4m3_value(std::uint8_t byte) {
  if (e4m3_is_nan(byte)) return std::numeric_limits<float>::quiet_NaN();
  const float magnitude = static_cast<float>(e4m3_units(byte)) * exp2_float(-9);
  return (byte & 0x80) ? -magnitude : magnitude;
}

// The value as a block scale: sign ignored, NaN for 0x7F and 0xFF.
constexpr float e4m3_scale(std::uint8_t byte) {
  return e4m3_value(static_cast<std::uint8_t>(byte & 0x7F));
}

// To nearest even, clamped to +-448. NaN gives 0x7F.
std::uint8_t e4m3_encode(float x);
// Of a double: one rounding only.
std::uint8_t e4m3_encode(double x);

// ---- E8M0: 2^(byte - 127); byte 0 is 2^-127, not zero; 0xFF is NaN.

constexpr bool e8m0_is_nan(std::uint8_t byte) { return byte == 0xFF; }

constexpr float e8m0_value(std::uint8_t byte) {
  if (e8m0_is_nan(byte)) return std::numeric_limits<float>::quiet_NaN();
  return exp2_float(static_cast<int>(byte) - 127);
}

// ---- bf16 and f16.

constexpr float bf16_value(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// To nearest even; overflows to inf; NaN stays a quiet NaN.
constexpr std::uint16_t bf16_encode(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return static_cast<std::uint16_t>((bits >> 16) | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

constexpr float f16_value(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  const std::uint32_t exponent = (bits >> 10) & 31, mantissa = bits & 0x3FF;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000 | (mantissa << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * exp2_float(-24);
  return sign ? -magnitude : magnitude;
}

// To nearest even; overflows to inf; NaN stays a quiet NaN.
std::uint16_t f16_encode(float x);

}  // namespace nibble
