// SPDX-License-Identifier: Apache-2.0
// E2M1, the 4-bit code of NVFP4 and MXFP4: sign in bit 3, magnitudes 0 .5 1 1.5 2 3 4 6; no inf, no
// NaN. Two codes a byte, the low nibble is the even index (OCP Microscaling Formats v1.0; PTX ISA,
// e2m1x2).
#pragma once

#include <cstdint>

namespace nibble {

inline constexpr float kE2m1Max = 6.0f;
inline constexpr std::uint8_t kE2m1Doubled[8] = {0, 1, 2, 3, 4, 6, 8, 12};

// Twice the value, an integer in [-12, 12]. Code 8 (-0) gives 0. Bits above the low four are
// ignored.
constexpr int e2m1_doubled(std::uint8_t code) {
  const int magnitude = kE2m1Doubled[code & 7];
  return (code & 8) ? -magnitude : magnitude;
}

// The value; code 8 gives -0.
constexpr float e2m1_value(std::uint8_t code) {
  const float magnitude = 0.5f * static_cast<float>(kE2m1Doubled[code & 7]);
  return (code & 8) ? -magnitude : magnitude;
}

// To nearest, ties to the even code, clamped to +-6; a value that rounds to zero keeps its sign
// (code 8). NaN gives 7, as CUDA's conversion does: a quantizer refuses NaN before it gets here.
constexpr std::uint8_t e2m1_encode(float x) {
  const bool negative = x < 0 || (x == 0 && 1.0f / x < 0);
  const float magnitude = negative ? -x : x;
  std::uint8_t code = 7;
  if (magnitude <= 0.25f)
    code = 0;
  else if (magnitude < 0.75f)
    code = 1;
  else if (magnitude <= 1.25f)
    code = 2;
  else if (magnitude < 1.75f)
    code = 3;
  else if (magnitude <= 2.5f)
    code = 4;
  else if (magnitude < 3.5f)
    code = 5;
  else if (magnitude <= 5.0f)
    code = 6;
  return negative ? static_cast<std::uint8_t>(code | 8) : code;
}

constexpr std::uint8_t pack_codes(std::uint8_t even, std::uint8_t odd) {
  return static_cast<std::uint8_t>((even & 15) | (odd << 4));
}

constexpr std::uint8_t unpack_code(std::uint8_t byte, bool odd) {
  return odd ? static_cast<std::uint8_t>(byte >> 4) : static_cast<std::uint8_t>(byte & 15);
}

}  // namespace nibble
