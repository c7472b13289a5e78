// SPDX-License-Identifier: Apache-2.0
// The corners of the definition: overflow, subnormals, NaN, zeros, no fp32 answer; and what is
// reported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "reference/comparison.h"

namespace nibble {
namespace {

using testing::HasSubstr;

constexpr double kInf = std::numeric_limits<double>::infinity(),
                 kNan = std::numeric_limits<double>::quiet_NaN();

// One row of exact values, and what came out; f32 bits unless said otherwise.
struct Row {
  OutType type = OutType::f32;
  std::int64_t k = 64;
  std::vector<double> value, magnitude;
  std::vector<std::uint32_t> rounded, out;
  std::vector<std::uint8_t> outside;

  void add(double v, double s, std::uint32_t expected_bits, std::uint32_t out_bits,
           bool is_outside = false) {
    value.push_back(v), magnitude.push_back(s), rounded.push_back(expected_bits),
        out.push_back(out_bits), outside.push_back(is_outside);
  }
  void add_f32(double v, double s, float came_out) {
    add(v, s, std::bit_cast<std::uint32_t>(static_cast<float>(v)),
        std::bit_cast<std::uint32_t>(came_out));
  }
  Accuracy judge(const ComparisonPolicy& policy = {}) const {
    std::vector<std::byte> bytes(out.size() * static_cast<std::size_t>(out_bytes(type)));
    for (std::size_t i = 0; i < out.size(); ++i)
      std::memcpy(&bytes[i * static_cast<std::size_t>(out_bytes(type))], &out[i],
                  static_cast<std::size_t>(out_bytes(type)));
    const auto columns = static_cast<std::int64_t>(out.size());
    ExactPanel panel{type, 0, 1, columns, k, rounded, value, magnitude, outside};
    Comparison comparison(policy);
    comparison.add(panel, {type, 1, columns, columns * out_bytes(type), bytes});
    return comparison.finish();
  }
};

TEST(HalfUlp, HasTheSubnormalFloorAndTheLargestExponent) {
  EXPECT_EQ(half_ulp(OutType::f32, 1.0), std::ldexp(1.0, -24));
  EXPECT_EQ(half_ulp(OutType::bf16, -3.0), std::ldexp(1.0, -7));
  EXPECT_EQ(half_ulp(OutType::f16, 1024.0), 0.5);
  EXPECT_EQ(half_ulp(OutType::f16, 0.0), std::ldexp(1.0, -25));
  EXPECT_EQ(half_ulp(OutType::f32, 1e-45), std::ldexp(1.0, -150));
  EXPECT_EQ(half_ulp(OutType::f16, 1e9), std::ldexp(1.0, 4));
}

TEST(BoundFactor, IsAsDefined) {
  EXPECT_EQ(bound_factor(AccumulationClass::fp32, 256), 264 * std::ldexp(1.0, -23));
  EXPECT_DOUBLE_EQ(bound_factor(AccumulationClass::reduced, 6144),
                   std::sqrt(192.0) * std::ldexp(1.0, -13) + std::ldexp(1.0, -10));
  EXPECT_GE(bound_factor(AccumulationClass::reduced, 1 << 20),
            bound_factor(AccumulationClass::fp32, 1 << 20));
}

TEST(Corners, TheBoundIsAnEdge) {
  const double bound = half_ulp(OutType::f32, 1.0) + 4 * bound_factor(AccumulationClass::fp32, 64);
  Row inside, outside;
  inside.add_f32(1.0, 4.0, static_cast<float>(1.0 + bound * 0.999));
  outside.add_f32(1.0, 4.0, static_cast<float>(1.0 + bound * 1.02));
  EXPECT_EQ(inside.judge().wrong, 0);
  EXPECT_EQ(inside.judge().accumulation, AccumulationClass::fp32);
  EXPECT_NEAR(*inside.judge().worst_fraction_of_bound, 1, 0.02);
  const auto wrong = outside.judge();
  EXPECT_EQ(wrong.wrong, 1);
  EXPECT_EQ(wrong.accumulation, AccumulationClass::reduced);
  EXPECT_NEAR(wrong.first_mismatch->bound, bound, 1e-12);
}

TEST(Corners, OverflowTakesInfAndTheLargestNearTheThreshold) {
  const std::uint32_t inf = 0x7C00, largest = 0x7BFF;  // f16
  for (const auto& [v, expected] : {std::pair{65519.0, largest}, std::pair{65521.0, inf}}) {
    for (const auto out : {inf, largest}) {
      Row row;
      row.type = OutType::f16;
      row.add(v, 4e5, expected, out);
      EXPECT_EQ(row.judge().wrong, 0) << v << " " << out;
    }
  }
  for (const auto& [v, expected, out] :
       {std::tuple{60000.0, 0x7B53u, inf}, std::tuple{80000.0, inf, largest},
        std::tuple{80000.0, inf, 0xFC00u}}) {
    Row row;
    row.type = OutType::f16;
    row.add(v, 1e5, expected, out);
    EXPECT_EQ(row.judge().wrong, 1) << v << " " << out;
  }
  Row right;
  right.type = OutType::f16;
  right.add(80000.0, 1e5, inf, inf);
  EXPECT_EQ(right.judge().accumulation, AccumulationClass::exact);
}

TEST(Corners, SubnormalsMayBeFlushedWhereTheContractSaysSo) {
  Row row;
  row.add_f32(std::ldexp(5.0, -140), std::ldexp(5.0, -140), 0.0f);
  EXPECT_EQ(row.judge().wrong, 1);
  EXPECT_EQ(row.judge().flushed, 1);
  const auto allowed = row.judge({AccumulationClass::fp32, false, true});
  EXPECT_EQ(allowed.wrong, 0);
  EXPECT_EQ(allowed.flushed, 1);
  EXPECT_EQ(allowed.why_wrong, "");
  Row normal;  // the smallest normal is none
  normal.add_f32(std::ldexp(1.0, -126), std::ldexp(1.0, -126), 0.0f);
  EXPECT_EQ(normal.judge({AccumulationClass::fp32, false, true}).wrong, 1);
}

// Its least normal is 2^-14: 0 in place of a subnormal is an error whatever the contract says.
TEST(Corners, SubnormalsOfF16AreNotFlushed) {
  Row row;
  row.type = OutType::f16;
  row.add(std::ldexp(5.0, -20), std::ldexp(5.0, -20), 5 << 4, 0);
  EXPECT_EQ(row.judge({AccumulationClass::fp32, false, true}).wrong, 1);
}

#if defined(__SSE2__)
// Libraries built with -ffast-math leave the thread so; subnormals are what they are all the same.
TEST(Corners, SubnormalsAreReadWhereTheThreadFlushesThem) {
  Row row;
  row.add_f32(std::ldexp(5.0, -140), std::ldexp(5.0, -140), std::ldexp(5.0f, -140));
  const float subnormal = std::ldexp(5.0f, -140);
  const OutputView view{OutType::f32, 1, 1, 4, std::as_bytes(std::span(&subnormal, 1))};
  constexpr unsigned kFlushToZero = 1u << 15, kDenormalsAreZero = 1u << 6;
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | kFlushToZero | kDenormalsAreZero);
  const auto accuracy = row.judge();
  const auto stats = output_stats(view);
  _mm_setcsr(before);
  EXPECT_EQ(accuracy.accumulation, AccumulationClass::exact);
  EXPECT_EQ(accuracy.flushed, 0);
  EXPECT_FALSE(stats.all_zeros);
}
#endif

TEST(Corners, NanMeetsNan) {
  const auto nan_bits = std::bit_cast<std::uint32_t>(std::numeric_limits<float>::quiet_NaN());
  Row both, missing, unexpected;
  both.add(kNan, kNan, nan_bits, 0xFFC12345);
  EXPECT_EQ(both.judge().accumulation, AccumulationClass::exact);
  EXPECT_EQ(both.judge().wrong, 0);
  missing.add(kNan, kNan, nan_bits, std::bit_cast<std::uint32_t>(1.0f));
  EXPECT_EQ(missing.judge().wrong, 1);
  EXPECT_EQ(missing.judge().accumulation, AccumulationClass::none);
  unexpected.add(1.0, 1.0, std::bit_cast<std::uint32_t>(1.0f), nan_bits);
  EXPECT_EQ(unexpected.judge().wrong, 1);
  EXPECT_EQ(unexpected.judge().ulp_histogram[kUlpBins - 1], 1);
  EXPECT_THAT(unexpected.judge().why_wrong, HasSubstr("row 0 column 0: nan, expected 1"));
}

TEST(Corners, AnInfiniteResultMustBeThatInf) {
  Row right, sign, finite;
  right.add(kInf, kInf, 0x7F800000, 0x7F800000);
  sign.add(kInf, kInf, 0x7F800000, 0xFF800000);
  finite.add(-kInf, kInf, 0xFF800000, 0xFF7FFFFF);
  EXPECT_EQ(right.judge().wrong, 0);
  EXPECT_EQ(sign.judge().wrong, 1);
  EXPECT_EQ(finite.judge().wrong, 1);
}

TEST(Corners, BothZerosAreZero) {
  Row row;
  row.add(0.0, 0.0, 0, 0x80000000);
  row.add(0.0, 8.0, 0, 0);
  EXPECT_EQ(row.judge().accumulation, AccumulationClass::exact);
  Row not_zero;  // alpha = 0: S is zero, and nothing else will do
  not_zero.add(0.0, 0.0, 0, 1);
  EXPECT_EQ(not_zero.judge().wrong, 1);
}

TEST(Corners, OutsideFp32IsCountedApart) {
  const auto nan_bits = std::bit_cast<std::uint32_t>(std::numeric_limits<float>::quiet_NaN());
  Row row;
  row.add(1.0, 1e39, std::bit_cast<std::uint32_t>(1.0f), std::bit_cast<std::uint32_t>(77.0f), true);
  row.add(1.0, 1e39, std::bit_cast<std::uint32_t>(1.0f), nan_bits, true);  // inf - inf
  row.add_f32(1.0, 1.0, 1.0f);
  const auto accuracy = row.judge();
  EXPECT_EQ(accuracy.outside_fp32, 2);
  EXPECT_EQ(accuracy.checked, 3);
  EXPECT_EQ(accuracy.wrong, 0);
  EXPECT_EQ(accuracy.accumulation, AccumulationClass::exact);
  Row below;  // products below 2^-126 are no reason for NaN
  below.add(1e-40, 1e-40, 0, nan_bits, true);
  EXPECT_EQ(below.judge().wrong, 1);
}

TEST(Report, UlpBinsAndFirstMismatchInRowMajorOrder) {
  Row row;
  row.k = 1 << 20;
  for (const std::uint32_t distance : {0u, 1u, 2u, 3u, 4u, 8u, 16u, 64u, 1024u, 1025u}) {
    row.add(1.0, 1.0, std::bit_cast<std::uint32_t>(1.0f),
            std::bit_cast<std::uint32_t>(1.0f) + distance);
  }
  const auto histogram = row.judge().ulp_histogram;
  EXPECT_THAT(histogram, testing::ElementsAre(1, 1, 1, 2, 1, 1, 1, 1, 1, 0));
  const auto accuracy = row.judge({AccumulationClass::exact, false, false});
  EXPECT_EQ(accuracy.first_mismatch->column, 1);
  EXPECT_EQ(accuracy.wrong, 9);
}

TEST(Report, PanelsComeInAnyOrder) {
  std::vector<float> out(6 * 4);
  ExactPanel whole{OutType::f32, 0, 6, 4, 64, {}, {}, {}, {}};
  for (int i = 0; i < 24; ++i) {
    const float v = 1.0f + static_cast<float>(i);
    whole.value.push_back(static_cast<double>(v)), whole.magnitude.push_back(30.0),
        whole.rounded.push_back(std::bit_cast<std::uint32_t>(v));
    out[static_cast<std::size_t>(i)] = i == 9 || i == 21 ? v * 2 : std::nextafterf(v, 100.0f);
  }
  const OutputView view{OutType::f32, 6, 4, 16, std::as_bytes(std::span(out))};
  Comparison at_once({}), in_parts({});
  at_once.add(whole, view);
  for (const int row : {4, 0, 5, 2, 1, 3}) {
    const auto slice = [&](const auto& all) {
      return std::decay_t<decltype(all)>(all.begin() + row * 4, all.begin() + row * 4 + 4);
    };
    in_parts.add({OutType::f32,
                  row,
                  1,
                  4,
                  64,
                  slice(whole.rounded),
                  slice(whole.value),
                  slice(whole.magnitude),
                  {}},
                 view);
  }
  const auto x = at_once.finish(), y = in_parts.finish();
  EXPECT_EQ(x.first_mismatch->row, 2);
  EXPECT_EQ(x.first_mismatch->column, 1);
  EXPECT_EQ(y.first_mismatch->row, 2);
  EXPECT_EQ(x.why_wrong, y.why_wrong);
  EXPECT_EQ(x.ulp_histogram, y.ulp_histogram);
  EXPECT_NEAR(*x.noise, *y.noise, 1e-9 * *x.noise);
  EXPECT_NEAR(*x.gain, *y.gain, 1e-12);
  EXPECT_EQ(x.wrong, 2);
}

TEST(Gain, IsJudgedWhateverTheRestSays) {
  Row row;  // each element well inside the bound of a long sum, all of them 0.2 % too large
  row.k = 6144;
  for (int i = 1; i <= 200; ++i) row.add_f32(i, 300.0 * i, static_cast<float>(i * 1.002));
  const auto accuracy = row.judge({AccumulationClass::reduced, false, false});
  EXPECT_EQ(accuracy.wrong, 0);
  EXPECT_NEAR(*accuracy.gain, 1.002, 1e-5);
  EXPECT_THAT(accuracy.why_wrong, HasSubstr("gain 1.002"));
  Row cancelled;  // one output that is all rounding: its gain says nothing
  cancelled.k = 6144;
  cancelled.add_f32(1e-4, 1e3, 1.5e-4f);
  EXPECT_EQ(cancelled.judge().why_wrong, "");
  Row zero;
  zero.add(0.0, 1.0, 0, 0);
  EXPECT_FALSE(zero.judge().gain);
}

TEST(SignedError, ShowsTruncation) {
  Row row;
  for (int i = 1; i <= 50; ++i) {
    row.add_f32(i + 0.3e-6 * i, 2.0 * i, static_cast<float>(i));
    row.add_f32(-i - 0.3e-6 * i, 2.0 * i, static_cast<float>(-i));
  }
  EXPECT_LT(*row.judge().signed_error, -1);
  EXPECT_EQ(row.judge().why_wrong, "");
}

TEST(OutputStats, CountsWhatIsThere) {
  const float values[] = {0.0f,
                          -4.0f,
                          2.0f,
                          std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity(),
                          0.0f};
  const auto stats = output_stats({OutType::f32, 2, 3, 12, std::as_bytes(std::span(values))});
  EXPECT_FALSE(stats.all_zeros);
  EXPECT_EQ(stats.nan, 1);
  EXPECT_EQ(stats.abs_max, 4);
  EXPECT_EQ(stats.abs_mean, 1.5);
  const float zeros[] = {0.0f, -0.0f};
  EXPECT_TRUE(output_stats({OutType::f32, 1, 2, 8, std::as_bytes(std::span(zeros))}).all_zeros);
  EXPECT_FALSE(output_stats({OutType::f32, 0, 2, 8, {}}).all_zeros);
}

TEST(Compare, RefusesAnOutputThatIsNotTheProducts) {
  const auto a = make_block_tensor(Format::nvfp4, 2, 16).value(),
             b = make_block_tensor(Format::nvfp4, 3, 16).value();
  const GemmInputs inputs{a.view(), b.view(), 1.0f};
  const std::vector<std::byte> bytes(24);
  EXPECT_TRUE(compare(inputs, {OutType::f32, 2, 3, 12, bytes}, {}));
  EXPECT_THAT(compare(inputs, {OutType::f32, 3, 2, 8, bytes}, {}).error().message,
              HasSubstr("output is 3x2, the product 2x3"));
  EXPECT_THAT(compare(inputs, {OutType::f32, 2, 3, 16, bytes}, {}).error().message,
              HasSubstr("too few for 2 rows 16 bytes apart"));
}

}  // namespace
}  // namespace nibble
