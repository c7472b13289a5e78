// SPDX-License-Identifier: Apache-2.0
// What exact_product() refuses, and the empty products that it does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "exact_operands.h"
#include "reference/exact_integer.h"
#include "reference/exact_product.h"

namespace nibble {
namespace {

using test::filled;
using ::testing::HasSubstr;

std::string refusal(const GemmInputs& inputs, std::int64_t row_begin, std::int64_t rows,
                    ExactPath path = ExactPath::automatic) {
  const auto panel = exact_product(inputs, OutType::f32, row_begin, rows, {path, 1});
  if (panel) return "accepted";
  EXPECT_EQ(panel.error().kind, ErrorKind::invalid_argument);
  return panel.error().message;
}

TEST(ExactProductErrors, RowsOutsideA) {
  const auto a = filled(Format::nvfp4, 3, 32, 2, 0x38), b = filled(Format::nvfp4, 2, 32, 2, 0x38);
  const GemmInputs inputs{a.view(), b.view(), 1};
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  for (const auto& [begin, rows] : {std::pair<std::int64_t, std::int64_t>{-1, 1},
                                    {0, 4},
                                    {4, 0},
                                    {3, 1},
                                    {0, -1},
                                    {1, kLargest},
                                    {kLargest, 1}}) {
    EXPECT_THAT(refusal(inputs, begin, rows), HasSubstr("rows from row")) << begin << " " << rows;
  }
  EXPECT_EQ(refusal(inputs, 3, 0), "accepted");
}

TEST(ExactProductErrors, OperandsThatContradictEachOther) {
  const auto a = filled(Format::nvfp4, 1, 32, 2, 0x38), b = filled(Format::nvfp4, 1, 64, 2, 0x38);
  EXPECT_THAT(refusal({a.view(), b.view(), 1}, 0, 1), HasSubstr("k="));
  BlockTensorView cut = a.view();
  cut.codes = cut.codes.first(15);
  EXPECT_THAT(refusal({cut, a.view(), 1}, 0, 1), HasSubstr("A: "));
  EXPECT_THAT(refusal({a.view(), cut, 1}, 0, 1), HasSubstr("B: "));
  cut = a.view();
  cut.scales = cut.scales.first(1);
  EXPECT_THAT(refusal({a.view(), cut, 1}, 0, 1), HasSubstr("B: "));
}

TEST(ExactProductErrors, IntegerPathTakesNvfp4Only) {
  const auto nvfp4 = filled(Format::nvfp4, 1, 32, 2, 0x38),
             mxfp4 = filled(Format::mxfp4, 1, 32, 2, 127);
  const std::vector<std::byte> data(64);
  const DenseTensorView dense{DenseType::bf16, 1, 32, 64, data};
  EXPECT_THAT(refusal({nvfp4.view(), mxfp4.view(), 1}, 0, 1, ExactPath::integer),
              HasSubstr("nvfp4 x nvfp4"));
  EXPECT_THAT(refusal({mxfp4.view(), nvfp4.view(), 1}, 0, 1, ExactPath::integer),
              HasSubstr("nvfp4 x nvfp4"));
  EXPECT_THAT(refusal({dense, nvfp4.view(), 1}, 0, 1, ExactPath::integer),
              HasSubstr("nvfp4 x nvfp4"));
  EXPECT_EQ(refusal({nvfp4.view(), nvfp4.view(), 1}, 0, 1, ExactPath::integer), "accepted");
}

TEST(ExactProductErrors, IntegerPathHasALongestK) {
  const auto a = filled(Format::nvfp4, 1, max_integer_k() + 16, 7, 0x7E);
  EXPECT_THAT(refusal({a.view(), a.view(), 1}, 0, 1, ExactPath::integer),
              HasSubstr("takes k up to 1216000"));
  const auto panel = exact_product({a.view(), a.view(), 1}, OutType::f32, 0, 1);
  ASSERT_TRUE(panel.has_value());
  EXPECT_EQ(panel->value[0], 2688.0 * 2688.0 * 1216016);
}

TEST(ExactProductErrors, PanelsTooLargeForMemory) {
  const BlockTensorView rows{.format = Format::nvfp4,
                             .rows = std::int64_t{1} << 40,
                             .layout = {ScaleOrder::row_major, std::int64_t{1} << 40, 0}};
  EXPECT_THAT(refusal({rows, rows, 1}, 0, std::int64_t{1} << 40), HasSubstr("ask for fewer rows"));
}

TEST(ExactProduct, EmptyProducts) {
  for (const ExactPath path :
       {ExactPath::automatic, ExactPath::integer, ExactPath::superaccumulator}) {
    const auto two = filled(Format::nvfp4, 2, 32, 2, 0x38),
               none = filled(Format::nvfp4, 0, 32, 2, 0x38);
    for (const auto& [a, b, rows] :
         {std::tuple{&none, &two, 0}, {&two, &none, 2}, {&two, &two, 0}}) {
      const auto panel =
          exact_product({a->view(), b->view(), 1}, OutType::bf16, 0, rows, {path, 2});
      ASSERT_TRUE(panel.has_value());
      EXPECT_TRUE(panel->rounded.empty() && panel->value.empty() && panel->outside_fp32.empty());
      EXPECT_EQ(panel->columns, b->rows);
      EXPECT_EQ(panel->k, 32);
    }
    const auto no_k = filled(Format::nvfp4, 2, 0, 2, 0x38);
    for (const float alpha : {1.0f, -1.0f, 0.0f}) {
      const auto panel =
          exact_product({no_k.view(), no_k.view(), alpha}, OutType::bf16, 0, 2, {path, 2});
      ASSERT_TRUE(panel.has_value());
      EXPECT_EQ(panel->rounded, std::vector<std::uint32_t>(4, 0));
      for (const double value : panel->value) EXPECT_TRUE(value == 0 && !std::signbit(value));
      EXPECT_EQ(panel->magnitude, std::vector<double>(4, 0));
    }
  }
}

// The tensor scales of the views are the business of alpha.
TEST(ExactProduct, TensorScalesAreNotApplied) {
  auto a = filled(Format::nvfp4, 1, 16, 2, 0x38);
  a.tensor_scale = {0.25f, 4.0f};
  const auto panel = exact_product({a.view(), a.view(), 2.0f}, OutType::f32, 0, 1);
  ASSERT_TRUE(panel.has_value());
  EXPECT_EQ(panel->value[0], 32.0);
}

}  // namespace
}  // namespace nibble
