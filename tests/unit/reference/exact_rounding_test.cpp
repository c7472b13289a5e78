// SPDX-License-Identifier: Apache-2.0
// The one rounding, by long integers and by doubles, against the processor's own conversions and
// against each other; sums that never round against 128-bit integers.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>

#include "exact_operands.h"
#include "reference/exact_element.h"
#include "reference/exact_integer_rounding.h"
#include "reference/superaccumulator.h"

namespace nibble {
namespace {

using test::between, test::Random;

Magnitude magnitude_of(std::uint64_t integer, int exponent) {
  Magnitude value;
  value.limbs[0] = integer;
  value.count = 1;
  value.exponent = exponent;
  return value;
}

std::uint32_t round_odd(OutType type, double x) {
  switch (type) {
    case OutType::bf16:
      return round_odd_to<OutType::bf16>(x);
    case OutType::f16:
      return round_odd_to<OutType::f16>(x);
    case OutType::f32:
      return round_odd_to<OutType::f32>(x);
  }
  return 0;
}

// IEEE conversion of the processor; bf16 is the upper half of a float that was rounded to odd.
std::uint32_t converted(OutType type, double x) {
  if (type == OutType::f32) return std::bit_cast<std::uint32_t>(static_cast<float>(x));
  auto narrowed = static_cast<float>(x);
  auto bits = std::bit_cast<std::uint32_t>(narrowed);
  if (static_cast<double>(narrowed) != x && (bits & 1) == 0 && std::isfinite(narrowed)) {
    bits += std::fabs(narrowed) < std::fabs(x) ? 1 : -1;
  }
  return type == OutType::bf16 ? bf16_encode(std::bit_cast<float>(bits))
                               : f16_encode(std::bit_cast<float>(bits));
}

TEST(ExactRounding, AgreesWithTheProcessor) {
  Random random(31);
  for (int i = 0; i < 200000; ++i) {
    // Few significant bits in front and few behind, so that ties are common.
    const std::uint64_t integer =
        (static_cast<std::uint64_t>(between(random, 0, 0x1FFFFFF)) << between(random, 0, 27)) +
        static_cast<std::uint64_t>(between(random, 0, 1));
    const auto exponent = static_cast<int>(between(random, -190, 100));
    const double x = std::ldexp(static_cast<double>(integer), exponent);
    for (const OutType type : {OutType::bf16, OutType::f16, OutType::f32}) {
      const std::uint32_t expected = converted(type, -x);
      if (integer == 0) continue;
      ASSERT_EQ(round_to(type, true, magnitude_of(integer, exponent)), expected)
          << integer << " 2^" << exponent;
      ASSERT_EQ(round_odd(type, -x), expected) << integer << " 2^" << exponent;
    }
  }
}

TEST(ExactRounding, ToDoubleInEveryMode) {
  const Magnitude just_above_tie = [] {
    Magnitude value = magnitude_of(1, -100);
    value.count = 3;
    value.limbs[1] = 0;
    value.limbs[2] = (std::uint64_t{1} << 53) + 1;
    return value;
  }();
  EXPECT_EQ(to_double(just_above_tie, RoundingMode::nearest_even), std::ldexp(0x1p53 + 2, 28));
  EXPECT_EQ(to_double(just_above_tie, RoundingMode::up), std::ldexp(0x1p53 + 2, 28));
  EXPECT_EQ(to_double(just_above_tie, RoundingMode::down), std::ldexp(0x1p53, 28));
  const Magnitude tie = magnitude_of((std::uint64_t{1} << 53) + 1, 7);
  EXPECT_EQ(to_double(tie, RoundingMode::nearest_even), 0x1p60);
  EXPECT_EQ(to_double(tie, RoundingMode::up), 0x1p60 + 256);
  EXPECT_EQ(to_double(magnitude_of(0, 0), RoundingMode::up), 0.0);
  EXPECT_EQ(to_double(magnitude_of(~std::uint64_t{0}, 0), RoundingMode::nearest_even), 0x1p64);
}

TEST(ExactRounding, DoubleEndingAgreesWithLongIntegers) {
  Random random(32);
  for (int i = 0; i < 200000; ++i) {
    const auto width = static_cast<int>(between(random, 1, 53));
    std::int64_t factor = between(random, 1, (std::int64_t{1} << width) - 1);
    if (i % 3 == 0) factor = factor >> (width / 2) << (width / 2) | (i & 1);
    factor = std::min(factor, kMaxExactFactor - 1) * (i % 2 ? 1 : -1);
    const auto alpha = std::ldexp(static_cast<float>(between(random, 1, i % 5 ? 0xFFFFFF : 3)),
                                  static_cast<int>(between(random, -149, 104)));
    const RoundedProduct product = multiply_once(factor, alpha);
    for (const OutType type : {OutType::bf16, OutType::f16, OutType::f32}) {
      const ExactElement expected =
          finish_value(factor < 0, magnitude_of(static_cast<std::uint64_t>(std::abs(factor)), -20),
                       decode_alpha(alpha), type);
      ASSERT_EQ(product.nearest * 0x1p-20, expected.value) << factor << " * " << alpha;
      ASSERT_EQ(round_odd(type, product.odd * 0x1p-20), expected.rounded)
          << factor << " * " << alpha;
    }
  }
}

// 54 bits times 24: a tie of every output type in front, a lone bit far behind.
TEST(ExactRounding, DoubleEndingSeesTheLastBit) {
  for (const int precision : {8, 11, 24}) {
    const std::int64_t tie = ((std::int64_t{1} << precision) + 1) << (53 - precision);
    const OutType type = precision == 8    ? OutType::bf16
                         : precision == 11 ? OutType::f16
                                           : OutType::f32;
    const float alpha = precision == 11 ? 0x1p-30f : 1.0f;
    std::array<std::uint32_t, 3> rounded{};
    for (const int beside : {-1, 0, 1}) {
      rounded[static_cast<std::size_t>(beside + 1)] =
          round_odd(type, multiply_once(tie + beside, alpha).odd * 0x1p-20);
    }
    EXPECT_EQ(rounded[0], rounded[1]) << "a tie goes to even, here down";
    EXPECT_EQ(rounded[2], rounded[1] + 1);
  }
}

template <class Sum>
void expect_integer(const Sum& sum, __int128 expected, int exponent) {
  EXPECT_EQ(sum.negative(), expected < 0);
  const auto size = expected < 0 ? -static_cast<unsigned __int128>(expected)
                                 : static_cast<unsigned __int128>(expected);
  // Both sides times 2^-exponent, compared limb by limb through double in both directions.
  Magnitude reference = magnitude_of(static_cast<std::uint64_t>(size), exponent);
  reference.count = 2;
  reference.limbs[1] = static_cast<std::uint64_t>(size >> 64);
  for (const RoundingMode mode :
       {RoundingMode::down, RoundingMode::up, RoundingMode::nearest_even}) {
    EXPECT_EQ(to_double(sum.magnitude(), mode), to_double(reference, mode));
  }
  EXPECT_EQ(is_zero(sum.magnitude()), expected == 0);
}

TEST(Superaccumulator, AgreesWith128BitIntegers) {
  Random random(33);
  for (int round = 0; round < 2000; ++round) {
    const auto least =
        static_cast<int>(between(random, kLeastTermExponent, kGreatestSumExponent - 140));
    NarrowSum narrow(least);
    WideSum wide;
    __int128 expected = 0;
    for (std::int64_t i = between(random, 0, 30); i >= 0; --i) {
      const std::int64_t term = static_cast<std::int64_t>(random()) >> between(random, 1, 62);
      const auto shift = static_cast<int>(between(random, 0, 50));
      narrow.add(term, least + shift);
      wide.add(term, least + shift);
      expected += static_cast<__int128>(term) << shift;
      if (i == 0 && round % 4 == 0) {  // ends at zero or beside it
        const int off = round % 3 - 1;
        while (expected != off) {
          const auto part = static_cast<std::int64_t>(std::clamp<__int128>(
              off - expected, -(std::int64_t{1} << 61), std::int64_t{1} << 61));
          narrow.add(part, least);
          wide.add(part, least);
          expected += part;
          if (expected > (__int128{1} << 70) || expected < -(__int128{1} << 70)) break;
        }
      }
    }
    expect_integer(narrow, expected, least);
    expect_integer(wide, expected, least);
    if (HasFailure()) return;
  }
}

// Carries are taken every 2^20 terms; the largest terms, at the worst position in a digit.
TEST(Superaccumulator, ManyLargeTerms) {
  constexpr std::int64_t kTerms = 3 * (std::int64_t{1} << 20) + 5;
  constexpr std::int64_t kTerm = (std::int64_t{1} << 62) - 1;
  for (const std::int64_t sign : {1, -1}) {
    WideSum sum;
    const int exponent = kLeastTermExponent + 31;
    for (std::int64_t i = 0; i < kTerms; ++i) sum.add(sign * kTerm, exponent);
    expect_integer(sum, static_cast<__int128>(sign) * kTerm * kTerms, exponent);
  }
}

}  // namespace
}  // namespace nibble
