// SPDX-License-Identifier: Apache-2.0
// Published quantizer bugs, each as a test that fails where the bug is.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "core/e2m1.h"
#include "core/gemm_operands.h"
#include "core/small_floats.h"
#include "unit/quantize/quantize_support.h"

namespace nibble::test {
namespace {

Source normal(std::int64_t rows, std::int64_t columns, unsigned seed, float deviation = 1) {
  Source source{.rows = rows, .columns = columns};
  std::mt19937 random(seed);
  std::normal_distribution<float> values(0, deviation);
  source.x.resize(static_cast<std::size_t>(rows * columns));
  for (float& x : source.x) x = values(random);
  return source;
}

// Median of |dequantized| / |x| over the elements that are large enough not to round to zero: a
// wrong tensor scale shows here, and in no cosine.
double magnitude_ratio(const Source& source, const BlockTensor& tensor) {
  std::vector<double> ratios;
  float amax = 0;
  for (const float x : source.x) amax = std::max(amax, std::fabs(x));
  for (std::int64_t row = 0; row < source.rows; ++row) {
    for (std::int64_t column = 0; column < source.columns; ++column) {
      const float x = source.x[static_cast<std::size_t>(row * source.columns + column)];
      if (std::fabs(x) > 0.1f * amax)
        ratios.push_back(std::fabs(value_at(tensor, row, column) / x));
    }
  }
  std::nth_element(ratios.begin(), ratios.begin() + ratios.size() / 2, ratios.end());
  return ratios[ratios.size() / 2];
}

TEST(QuantizeBugCases, B1_TensorScaleOfAnyFloatTypeCountsByValue) {
  // 600 as fp32, bf16, f16 and double. As bits, 0x4416 would be a scale of 17430.
  const float scales[] = {600.0f, bf16_value(0x4416), f16_value(0x60B0),
                          out_value(OutType::bf16, 0x4416), static_cast<float>(600.0)};
  for (const std::int64_t rows : {1, 32, 384}) {
    const Source source = normal(rows, 2048, 5);
    for (const std::string rule : {"nvfp4 flashinfer", "nvfp4 compressed_tensors", "nvfp4 rn"}) {
      const auto first =
          quantize(rule, source, {.tensor_scale = TensorScale{1.0f / 600.0f, 600.0f}});
      for (const float scale : scales) {
        const auto got = quantize(rule, source, {.tensor_scale = TensorScale{1 / scale, scale}});
        EXPECT_EQ(got->tensor.codes, first->tensor.codes);
        EXPECT_EQ(got->tensor.scales, first->tensor.scales);
      }
      EXPECT_NEAR(magnitude_ratio(source, first->tensor), 1.0, 0.1) << rule << " " << rows;
    }
  }
}

TEST(QuantizeBugCases, B1_TheRatioSeesAWrongTensorScale) {
  const Source source = normal(4, 256, 6);
  auto got = quantize("nvfp4 rn", source);
  got->tensor.tensor_scale.multiplier *= 5;
  EXPECT_GT(std::fabs(magnitude_ratio(source, got->tensor) - 1), 0.1);
}

TEST(QuantizeBugCases, B2_AConstantBlockIsNotZeros) {
  for (const std::string& rule : all_rules()) {
    const Source source{.rows = 1, .columns = 32, .x = std::vector<float>(32, 3.0f)};
    const auto got = quantize(rule, source);
    for (std::int64_t column = 0; column < 32; ++column) {
      EXPECT_NE(got->tensor.view().code(0, column) & 7, 0) << rule;
      EXPECT_NEAR(value_at(got->tensor, 0, column), 3.0, 0.3) << rule;
    }
  }
}

TEST(QuantizeBugCases, C4_RowsBeyondTheLiveOnesChangeNothing) {
  constexpr std::int64_t kExperts = 8, kSlots = 64, kColumns = 128;
  for (const std::string& rule : all_rules()) {
    for (std::int64_t expert = 0; expert < kExperts; ++expert) {
      Source zeros{.rows = kSlots, .columns = kColumns};
      zeros.x.assign(kSlots * kColumns, 0.0f);
      const Source live = normal(1, kColumns, 40 + static_cast<unsigned>(expert));
      std::copy(live.x.begin(), live.x.end(), zeros.x.begin());
      Source garbage = zeros;
      std::fill(garbage.x.begin() + kColumns, garbage.x.end(),
                std::numeric_limits<float>::quiet_NaN());
      ASSERT_FALSE(quantize(rule, garbage).has_value()) << "NaN is seen where it is live";
      const auto got = quantize(rule, garbage, {.live_rows = 1});
      const auto alone = quantize(rule, live);
      const auto clean = quantize(rule, zeros);
      ASSERT_TRUE(got.has_value() && alone.has_value() && clean.has_value());
      const auto row = [](const std::vector<std::uint8_t>& bytes, std::int64_t size) {
        return std::vector<std::uint8_t>(bytes.begin(), bytes.begin() + size);
      };
      const std::int64_t blocks = got->tensor.layout.blocks;
      EXPECT_EQ(row(got->tensor.codes, kColumns / 2), alone->tensor.codes) << rule;
      EXPECT_EQ(row(got->tensor.scales, blocks), alone->tensor.scales) << rule;
      EXPECT_EQ(row(clean->tensor.codes, kColumns / 2), alone->tensor.codes) << rule;
      EXPECT_EQ(got->tensor.tensor_scale.multiplier, alone->tensor.tensor_scale.multiplier);
      for (std::size_t i = kColumns / 2; i < got->tensor.codes.size(); ++i)
        ASSERT_EQ(got->tensor.codes[i], 0) << rule;
    }
  }
}

TEST(QuantizeBugCases, C4_GivenTheTensorScaleEachRowIsItsOwn) {
  const Source source = normal(5, 96, 9);
  for (const std::string& rule : all_rules()) {
    QuantizeOptions options;
    if (rule.starts_with("nvfp4")) options.tensor_amax = 5.0f;
    const auto whole = quantize(rule, source, options);
    for (std::int64_t row = 0; row < source.rows; ++row) {
      const Source one{.rows = 1,
                       .columns = 96,
                       .x = {source.x.begin() + row * 96, source.x.begin() + (row + 1) * 96}};
      const auto got = quantize(rule, one, options);
      EXPECT_TRUE(std::equal(got->tensor.codes.begin(), got->tensor.codes.end(),
                             whole->tensor.codes.begin() + row * 48))
          << rule << " row " << row;
      EXPECT_TRUE(std::equal(got->tensor.scales.begin(), got->tensor.scales.end(),
                             whole->tensor.scales.begin() + row * whole->tensor.layout.blocks));
    }
  }
}

TEST(QuantizeBugCases, E4_ZeroBlockIsZeroNotNaN) {
  for (const std::string& rule : all_rules()) {
    Source source{.rows = 4, .columns = 64};
    source.x.assign(64, 0.0f);
    source.x.insert(source.x.end(), 64, 1e-30f);
    source.x.insert(source.x.end(), 64, 1.0f);
    source.x.insert(source.x.end(), 64, 6 * 448.0f);
    const auto got = quantize(rule, source);
    ASSERT_TRUE(got.has_value()) << rule;
    const bool nvfp4 = rule.starts_with("nvfp4");
    for (const std::uint8_t byte : got->tensor.scales)
      EXPECT_FALSE(nvfp4 ? e4m3_is_nan(byte) : e8m0_is_nan(byte)) << rule;
    for (std::int64_t column = 0; column < 64; ++column) {
      EXPECT_EQ(value_at(got->tensor, 0, column), 0) << rule;
      EXPECT_NEAR(value_at(got->tensor, 1, column), 1e-30, nvfp4 ? 1e-30 : 2e-31) << rule;
      EXPECT_NEAR(value_at(got->tensor, 2, column), 1, 0.05) << rule;
      EXPECT_NEAR(value_at(got->tensor, 3, column), 6 * 448, 6 * 448 * 0.25) << rule;
    }
  }
}

TEST(QuantizeBugCases, E5_HalvesThatShareATensorScaleKeepTheirValues) {
  // Up is a tenth of gate; under gate's tensor scale its block scales shrink, its values stay.
  const Source gate = normal(8, 64, 11), up = normal(8, 64, 12, 0.1f);
  float amax = 0;
  for (const float x : gate.x) amax = std::max(amax, std::fabs(x));
  for (const std::string rule : {"nvfp4 rn", "nvfp4 modelopt", "nvfp4 torchao", "nvfp4 flashinfer",
                                 "nvfp4 compressed_tensors"}) {
    const auto own = quantize(rule, up), shared = quantize(rule, up, {.tensor_amax = amax});
    EXPECT_EQ(shared->lost_to_zero_scale, 0) << rule;
    EXPECT_NE(own->tensor.tensor_scale.multiplier, shared->tensor.tensor_scale.multiplier);
    for (std::int64_t row = 0; row < 8; ++row) {
      for (std::int64_t column = 0; column < 64; ++column) {
        // One step of a code at most, and E4M3's 2^-4: of the block's largest, 6 units.
        const double unit =
            static_cast<double>(e4m3_scale(own->tensor.view().scale(row, column / 16))) *
            static_cast<double>(own->tensor.tensor_scale.multiplier);
        EXPECT_NEAR(value_at(shared->tensor, row, column), value_at(own->tensor, row, column),
                    2.5 * unit)
            << rule;
      }
    }
  }
}

TEST(QuantizeBugCases, E7_DivisorAndMultiplierAreNotTakenForEachOther) {
  const Source source = normal(8, 256, 13, 1e-3f);
  for (const std::string& rule : all_rules()) {
    const auto got = quantize(rule, source);
    EXPECT_NEAR(magnitude_ratio(source, got->tensor), 1.0, 0.1) << rule;
    const TensorScale scale = got->tensor.tensor_scale;
    EXPECT_TRUE(!scale.divisor || scale.multiplier == 1.0f / *scale.divisor) << rule;
    if (!rule.starts_with("nvfp4")) continue;
    // The reciprocal in the wrong field: all saturates or all is lost, and the ratio says so.
    const float wrong = 1.0f / scale.multiplier;
    const auto mistaken =
        quantize(rule, source, {.tensor_scale = TensorScale{wrong, scale.multiplier}});
    EXPECT_GT(std::fabs(magnitude_ratio(source, mistaken->tensor) - 1), 0.5) << rule;
  }
}

TEST(QuantizeBugCases, E9_SubnormalBlockScalesKeepTheirValue) {
  // Each block wants the scale n * 2^-9, n = 1..7, in units of g = 1: byte n, not 2^112 less.
  Source source{.rows = 7, .columns = 16};
  for (int n = 1; n <= 7; ++n)
    source.x.insert(source.x.end(), 16, 6.0f * static_cast<float>(n) * 0x1p-9f);
  for (const std::string rule :
       {"nvfp4 rn", "nvfp4 modelopt", "nvfp4 flashinfer", "nvfp4 compressed_tensors"}) {
    const auto got = quantize(rule, source, {.tensor_scale = TensorScale{1.0f, 1.0f}});
    for (int n = 1; n <= 7; ++n) {
      EXPECT_EQ(got->tensor.scales[static_cast<std::size_t>(n - 1)], n) << rule;
      EXPECT_EQ(value_at(got->tensor, n - 1, 3), 6.0 * n * 0x1p-9) << rule;
    }
  }
}

TEST(QuantizeBugCases, E11_EvenElementIsTheLowNibble) {
  for (const std::string& rule : all_rules()) {
    const bool nvfp4 = rule.starts_with("nvfp4");
    Source source{.rows = 1, .columns = 32, .x = std::vector<float>(32, 0.0f)};
    source.x[0] = 1.0f;
    source.x[1] = -0.5f;
    source.x[2] = source.x[18] = 6.0f;
    QuantizeOptions options;
    if (nvfp4) options.tensor_scale = TensorScale{1.0f, 1.0f};
    EXPECT_EQ(quantize(rule, source, options)->tensor.codes[0], 0x92) << rule;
  }
}

}  // namespace
}  // namespace nibble::test
