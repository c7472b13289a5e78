// SPDX-License-Identifier: Apache-2.0
// What a quantizer refuses, and how it says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "unit/quantize/quantize_support.h"

namespace nibble::test {
namespace {

using testing::HasSubstr;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Source ones(std::int64_t rows, std::int64_t columns) {
  return {.rows = rows,
          .columns = columns,
          .x = std::vector<float>(static_cast<std::size_t>(rows * columns), 1.0f)};
}

std::string message(const Result<Quantized>& result) {
  if (result) return "no error";
  EXPECT_EQ(result.error().kind, ErrorKind::invalid_argument);
  return result.error().message;
}

TEST(QuantizeErrors, NanAndInfNameTheElementUnderEveryRule) {
  for (const std::string& rule : all_rules()) {
    const std::pair<float, const char*> bad[] = {
        {kNan, "nan"}, {-kNan, "nan"}, {kInfinity, "inf"}, {-kInfinity, "-inf"}};
    for (const auto& [value, text] : bad) {
      Source source = ones(5, 96);
      source.x[3 * 96 + 41] = value;
      source.x[4 * 96 + 2] = kNan;  // a later one
      const std::string said = message(quantize(rule, source));
      EXPECT_THAT(said, HasSubstr("quantize " + rule));
      EXPECT_THAT(said, HasSubstr("element at row 3, column 41 is "));
      EXPECT_THAT(said, HasSubstr(text));
    }
  }
}

TEST(QuantizeErrors, Sizes) {
  for (const std::string& rule : all_rules()) {
    EXPECT_THAT(message(quantize(rule, ones(2, 40))), HasSubstr("2x40 cannot be cut into blocks"));
    EXPECT_THAT(message(quantize(rule, Source{.rows = -1, .columns = 64})), HasSubstr("-1x64"));
    Source narrow = ones(2, 64);
    narrow.x.pop_back();
    EXPECT_THAT(message(quantize(rule, narrow)), HasSubstr("2x64 elements wanted, 127 given"));
    const Source huge{.rows = std::int64_t{1} << 40, .columns = std::int64_t{1} << 40};
    EXPECT_NE(message(quantize(rule, huge)), "no error");
  }
}

TEST(QuantizeErrors, LiveRows) {
  for (const std::int64_t live : {std::int64_t{-1}, std::int64_t{3}}) {
    EXPECT_THAT(message(quantize("nvfp4 rn", ones(2, 16), {.live_rows = live})),
                HasSubstr("live_rows"));
  }
}

TEST(QuantizeErrors, TensorScaleAndAmaxOutOfRange) {
  const Source source = ones(1, 32);
  for (const float amax : {kNan, kInfinity, -1.0f}) {
    for (const auto& [rule, text] : EnumNames<Nvfp4Rule>::table)
      EXPECT_THAT(message(quantize_nvfp4(source.x, 1, 32, rule, {.tensor_amax = amax})),
                  HasSubstr("tensor_amax"));
  }
  for (const float scale : {kNan, kInfinity, -kInfinity, 0.0f, -1.0f, 0x1p-127f}) {
    for (const auto& [rule, text] : EnumNames<Nvfp4Rule>::table) {
      const QuantizeOptions options{.tensor_scale = TensorScale{scale, scale}};
      EXPECT_THAT(message(quantize_nvfp4(source.x, 1, 32, rule, options)),
                  HasSubstr("tensor scale"))
          << text << scale;
    }
  }
  EXPECT_THAT(
      message(quantize("nvfp4 rn", source, {.tensor_amax = 1.0f, .tensor_scale = TensorScale{}})),
      HasSubstr("both"));
}

TEST(QuantizeErrors, RulesThatDivideTakeNoMultiplier) {
  const QuantizeOptions options{.tensor_scale = TensorScale{0.5f, std::nullopt}};
  for (const std::string rule : {"nvfp4 compressed_tensors", "nvfp4 flashinfer"})
    EXPECT_THAT(message(quantize(rule, ones(1, 16), options)), HasSubstr("divisor"));
}

TEST(QuantizeErrors, Mxfp4HasNoTensorScale) {
  EXPECT_THAT(message(quantize("mxfp4 floor", ones(1, 32), {.tensor_amax = 1.0f})),
              HasSubstr("no tensor scale"));
  EXPECT_THAT(message(quantize("mxfp4 even", ones(1, 32), {.tensor_scale = TensorScale{}})),
              HasSubstr("no tensor scale"));
}

TEST(QuantizeErrors, NothingToQuantizeIsNoError) {
  for (const std::string& rule : all_rules()) {
    for (const Source& source : {ones(0, 64), ones(3, 0)}) {
      const auto got = quantize(rule, source);
      ASSERT_TRUE(got.has_value()) << rule;
      EXPECT_EQ(got->tensor.codes.size(), 0u);
      EXPECT_TRUE(check(got->tensor.view()).has_value());
    }
  }
}

}  // namespace
}  // namespace nibble::test
