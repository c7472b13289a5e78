// SPDX-License-Identifier: Apache-2.0
// The exact rules on random tensors, each code and scale judged in 128-bit integers: no other
// representable value is nearer, and of two equally near ones the even code was taken.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/e2m1.h"
#include "core/small_floats.h"
#include "unit/quantize/quantize_support.h"

namespace nibble::test {
namespace {

using Wide = __int128;

// mantissa * 2^exponent, exactly.
struct Exact {
  Wide mantissa = 0;
  int exponent = 0;
};

Exact exact(float x) {
  int exponent = 0;
  const float fraction = std::frexp(std::fabs(x), &exponent);
  return {static_cast<Wide>(std::ldexp(fraction, 24)), exponent - 24};
}

Exact times(const Exact& a, std::int64_t factor) { return {a.mantissa * factor, a.exponent}; }

int bits(Wide value) {
  int count = 0;
  for (; value > 0; value >>= 1) ++count;
  return count;
}

// -1, 0, 1 as a < b, a == b, a > b; both at least 0, mantissas below 2^60.
int compare(Exact a, Exact b) {
  if (a.mantissa == 0 || b.mantissa == 0) return (a.mantissa > 0) - (b.mantissa > 0);
  const int lead = a.exponent + bits(a.mantissa) - b.exponent - bits(b.mantissa);
  if (lead != 0) return lead < 0 ? -1 : 1;
  if (a.exponent > b.exponent) a.mantissa <<= a.exponent - b.exponent;
  if (b.exponent > a.exponent) b.mantissa <<= b.exponent - a.exponent;
  return (a.mantissa > b.mantissa) - (a.mantissa < b.mantissa);
}

// Whether `index` is the nearest-even choice for x among values[i] * unit / 2, x beyond the last
// included. `values` in whole numbers.
bool is_nearest(const Exact& x, int index, const std::vector<std::int64_t>& values,
                const Exact& unit) {
  // The bounds are (values[i] + values[i + 1]) / 2; everything is doubled.
  const Exact doubled = times(x, 4);
  const auto at = static_cast<std::size_t>(index);
  if (index > 0) {
    const int below = compare(doubled, times(unit, values[at - 1] + values[at]));
    if (below < 0 || (below == 0 && index % 2 != 0)) return false;
  }
  if (at + 1 < values.size()) {
    const int above = compare(doubled, times(unit, values[at] + values[at + 1]));
    if (above > 0 || (above == 0 && index % 2 != 0)) return false;
  }
  return true;
}

Source random_source(unsigned seed, int spread) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> value;
  std::uniform_int_distribution<int> exponent(-spread, spread);
  Source source{.rows = 64, .columns = 256};
  source.x.resize(64 * 256);
  for (float& x : source.x) x = std::ldexp(value(random), exponent(random));
  return source;
}

// Blocks of the tensor against `units`, the exact unit of each; true for every code.
void expect_nearest_codes(const Source& source, const BlockTensor& tensor,
                          const std::vector<Exact>& units) {
  const std::vector<std::int64_t> doubled(std::begin(kE2m1Doubled), std::end(kE2m1Doubled));
  const int block = block_size(tensor.format);
  int wrong = 0;
  for (std::size_t i = 0; i < source.x.size(); ++i) {
    const Exact& unit = units[i / static_cast<std::size_t>(block)];
    const auto index = static_cast<std::int64_t>(i);
    const std::uint8_t code = tensor.view().code(index / source.columns, index % source.columns);
    if (unit.mantissa == 0) {
      wrong += code != 0;
    } else {
      wrong += !is_nearest(exact(source.x[i]), code & 7, doubled, unit) ||
               (code >= 8) != std::signbit(source.x[i]);
    }
  }
  EXPECT_EQ(wrong, 0);
}

TEST(QuantizeProperty, RnIsNearestEvenInIntegers) {
  std::vector<std::int64_t> scales;
  for (int byte = 0; byte < 127; ++byte)
    scales.push_back(e4m3_units(static_cast<std::uint8_t>(byte)));
  for (unsigned seed = 0; seed < 40; ++seed) {
    const Source source = random_source(seed, static_cast<int>(seed % 8) * 2);
    const auto got = quantize("nvfp4 rn", source);
    ASSERT_TRUE(got.has_value());
    const float g = got->tensor.tensor_scale.multiplier;
    std::vector<Exact> units;
    int wrong = 0;
    for (std::size_t block = 0; block < got->tensor.scales.size(); ++block) {
      float bm = 0;
      for (std::size_t i = 0; i < 16; ++i) bm = std::max(bm, std::fabs(source.x[block * 16 + i]));
      const std::uint8_t byte = got->tensor.scales[block];
      // bm against units of 2^-9 * 6 g, doubled as is_nearest wants it.
      Exact six_g = times(exact(g), 12);
      six_g.exponent -= 9;
      wrong += !is_nearest(exact(bm), byte, scales, six_g);
      Exact unit = times(exact(g), scales[byte]);
      unit.exponent -= 9;
      units.push_back(unit);
    }
    EXPECT_EQ(wrong, 0) << "scales, seed " << seed;
    expect_nearest_codes(source, got->tensor, units);
  }
}

TEST(QuantizeProperty, OwnMxfp4CodesAreNearestEvenInIntegers) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    const Source source = random_source(100 + seed, static_cast<int>(seed) * 8);
    for (const std::string rule : {"mxfp4 floor", "mxfp4 ceil", "mxfp4 even"}) {
      const auto got = quantize(rule, source);
      ASSERT_TRUE(got.has_value());
      std::vector<Exact> units;
      for (const std::uint8_t byte : got->tensor.scales) units.push_back({1, byte - 127});
      expect_nearest_codes(source, got->tensor, units);
    }
  }
}

TEST(QuantizeProperty, TheJudgeObjects) {
  const Source source = random_source(7, 2);
  auto got = quantize("mxfp4 floor", source);
  const std::vector<std::int64_t> doubled(std::begin(kE2m1Doubled), std::end(kE2m1Doubled));
  const Exact unit{1, got->tensor.scales[0] - 127};
  const int code = got->tensor.view().code(0, 0) & 7;
  EXPECT_TRUE(is_nearest(exact(source.x[0]), code, doubled, unit));
  for (int other = 0; other < 8; ++other)
    EXPECT_EQ(is_nearest(exact(source.x[0]), other, doubled, unit), other == code);
  // Ties: 0.75 between the codes 1 and 2, 1.25 between 2 and 3.
  EXPECT_TRUE(is_nearest(exact(0.75f), 2, doubled, {1, 0}));
  EXPECT_FALSE(is_nearest(exact(0.75f), 1, doubled, {1, 0}));
  EXPECT_FALSE(is_nearest(exact(1.25f), 3, doubled, {1, 0}));
}

}  // namespace
}  // namespace nibble::test
