// SPDX-License-Identifier: Apache-2.0
// Operands as integers times powers of two, in groups of 16 along k (half an MXFP4 block).
#pragma once

#include <cstdint>
#include <vector>

#include "core/gemm_operands.h"

namespace nibble {

inline constexpr int kGroup = 16;

// A plane holds some of a group's elements as integers of at most this many bits; the rest are 0.
// A group whose exponents lie further apart is the sum of several planes. With codes (doubled, at
// most 12), 16 of them and a scale significand (at most 15) a term stays below 2^62.
inline constexpr int kPlaneBits = 50;

struct Plane {
  std::int64_t group = 0;
  int exponent = 0;  // of the integers' unit
};

struct SpecialElement {
  std::int64_t column = 0;
  bool negative = false;
};

// One row of A. Planes of zeros are left out.
struct RowPlanes {
  std::vector<Plane> planes;
  std::vector<std::int64_t> integers;  // kGroup a plane
  int least_exponent = 0;              // over planes; both are 0 where there is none
  int top_exponent = 0;                // every |element| < 2^top_exponent
  bool has_nan = false;
  std::vector<SpecialElement> infinities;
};

RowPlanes decode_activation_row(const ActivationView& a, std::int64_t row);

// One row of B: element = doubled code * significand * 2^exponent of its group.
struct WeightRow {
  std::vector<std::int8_t> doubled_codes;
  std::vector<std::uint8_t> significands;  // a group; 0: the scale is zero
  std::vector<std::int16_t> exponents;
  int least_exponent = 0, top_exponent = 0;  // over groups with a scale: unit, and bound of a scale
  bool has_nan = false;
};

void decode_weight_row(const BlockTensorView& b, std::int64_t row, WeightRow& into);

}  // namespace nibble
