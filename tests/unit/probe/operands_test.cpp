// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/e2m1.h"
#include "core/small_floats.h"
#include "probe/make_operands.h"

namespace nibble {
namespace {

constexpr Activation kActivations[] = {Activation::nvfp4, Activation::mxfp4, Activation::bf16,
                                       Activation::f16, Activation::q8_0};

GemmProblem problem_of(Activation a, Format b, GemmShape shape) {
  GemmProblem problem;
  problem.shape = shape;
  problem.a = a;
  problem.b = b;
  problem.out = OutType::f32;
  problem.b_scales = ScaleOrder::tiled_128x4;
  if (is_block_format(a)) problem.a_scales = ScaleOrder::tiled_8x4;
  return problem;
}

template <class F>
void for_each_kind(const GemmShape& shape, const F& check_it) {
  for (const Activation a : kActivations) {
    for (const Format b : {Format::nvfp4, Format::mxfp4}) {
      SCOPED_TRACE(std::string(name(a)) + " x " + std::string(name(b)));
      check_it(problem_of(a, b, shape));
    }
  }
}

double value_of(const BlockTensorView& view, std::int64_t row, std::int64_t column) {
  const std::uint8_t byte = view.scale(row, column / block_size(view.format));
  return static_cast<double>(e2m1_value(view.code(row, column))) *
         static_cast<double>(view.format == Format::nvfp4 ? e4m3_scale(byte) : e8m0_value(byte));
}
double value_of(const DenseTensorView& view, std::int64_t row, std::int64_t column) {
  return static_cast<double>(view.value(row, column));
}
double value_of(const Q8TensorView& view, std::int64_t row, std::int64_t column) {
  return static_cast<double>(view.value(row, column));
}
double value_of_a(const GemmInputs& inputs, std::int64_t row, std::int64_t column) {
  return std::visit([&](const auto& a) { return value_of(a, row, column); }, inputs.a);
}

TEST(Operands, AreSoundAndTheSameForTheSameSeed) {
  for_each_kind({5, 9, 96}, [](const GemmProblem& problem) {
    for (const auto make : {make_integer_operands, make_random_operands, make_wide_operands}) {
      const auto one = make(problem, 3), two = make(problem, 3), other = make(problem, 4);
      ASSERT_TRUE(one && two && other);
      EXPECT_TRUE(check(one->inputs()));
      EXPECT_EQ(shape_of(one->inputs()), problem.shape);
      EXPECT_EQ(one->b.codes, two->b.codes);
      EXPECT_EQ(one->b.scales, two->b.scales);
      EXPECT_EQ(one->alpha, two->alpha);
      EXPECT_NE(one->b.codes, other->b.codes);
      EXPECT_EQ(one->b.layout.order, problem.b_scales);
    }
  });
}

TEST(Operands, RefuseSizesThatNoTensorHas) {
  EXPECT_FALSE(make_zero_operands(problem_of(Activation::nvfp4, Format::nvfp4, {1, 1, 24})));
  EXPECT_FALSE(make_zero_operands(problem_of(Activation::q8_0, Format::nvfp4, {1, 1, 16})));
  EXPECT_FALSE(make_zero_operands(problem_of(Activation::bf16, Format::nvfp4, {-1, 1, 16})));
  EXPECT_FALSE(make_zero_operands(
      problem_of(Activation::bf16, Format::nvfp4, {1, std::int64_t{1} << 60, 1 << 20})));
}

// Every product is a multiple of one power of two, and their magnitudes together with alpha stay
// below 2^24 of it: so does every partial sum.
TEST(IntegerOperands, SumExactlyInAnyOrder) {
  for (const std::int64_t k : {32, 256, 6144, 32768, 131072}) {
    for_each_kind({2, 3, k}, [k](const GemmProblem& problem) {
      const auto operands = make_integer_operands(problem, 11);
      ASSERT_TRUE(operands) << operands.error().message;
      const auto inputs = operands->inputs();
      bool any_negative = false;
      for (std::int64_t row = 0; row < 2; ++row) {
        for (std::int64_t column = 0; column < 3; ++column) {
          double magnitude = 0;
          for (std::int64_t i = 0; i < k; ++i) {
            const double product = value_of_a(inputs, row, i) * value_of(inputs.b, column, i);
            ASSERT_EQ(product * 4, std::floor(product * 4));
            any_negative |= product < 0;
            magnitude += std::fabs(product);
          }
          const double alpha = static_cast<double>(operands->alpha);
          const double unit = std::ldexp(0.25, -2);  // of alpha * product, at least
          EXPECT_EQ(alpha / unit, std::floor(alpha / unit));
          EXPECT_LT(magnitude * 4, std::ldexp(1.0, 24));
          EXPECT_LT(magnitude * 4 * (alpha == 0.75 ? 3 : 1), std::ldexp(1.0, 24));
        }
      }
      EXPECT_TRUE(any_negative);
      EXPECT_NE(operands->alpha, 1.0f);
    });
  }
  EXPECT_FALSE(make_integer_operands(
      problem_of(Activation::nvfp4, Format::nvfp4, {1, 1, std::int64_t{1} << 27}), 1));
}

TEST(RandomOperands, AreNormalWithTensorScalesThatAreNoPowersOfTwo) {
  for_each_kind({32, 64, 512}, [](const GemmProblem& problem) {
    const auto operands = make_random_operands(problem, 5);
    ASSERT_TRUE(operands) << operands.error().message;
    const auto inputs = operands->inputs();
    const auto moments = [](std::int64_t rows, std::int64_t columns, const auto& value) {
      double sum = 0, squares = 0, fourth = 0;
      for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t column = 0; column < columns; ++column) {
          const double x = value(row, column);
          sum += x;
          squares += x * x;
          fourth += x * x * x * x;
        }
      }
      const double n = static_cast<double>(rows * columns);
      EXPECT_LT(std::fabs(sum / n) / std::sqrt(squares / n), 0.05);
      EXPECT_NEAR(fourth / n / (squares / n * squares / n), 3.0, 0.35);
      return std::sqrt(squares / n);
    };
    const double a =
        moments(32, 512, [&](auto row, auto column) { return value_of_a(inputs, row, column); });
    const double b =
        moments(64, 512, [&](auto row, auto column) { return value_of(inputs.b, row, column); });
    // Standard deviations 1 and 0.02; MXFP4 and dense operands carry a factor in [1, 2) besides.
    const double product = a * b * static_cast<double>(operands->alpha) / 0.02;
    EXPECT_GT(product, 0.9);
    EXPECT_LT(product, 4.2);
    int exponent = 0;
    EXPECT_NE(std::frexp(operands->alpha, &exponent), 0.5f);
  });
}

TEST(RandomOperands, TakeTheWeightsThatAreGiven) {
  const auto problem = problem_of(Activation::bf16, Format::nvfp4, {3, 7, 64});
  const auto made = make_random_operands(problem, 1);
  ASSERT_TRUE(made);
  const auto other = make_random_operands_for(problem, made->b.view(), 2);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->b.codes, made->b.codes);
  EXPECT_EQ(other->b.scales, made->b.scales);
  EXPECT_NE(std::get<DenseTensor>(other->a).data, std::get<DenseTensor>(made->a).data);
  auto wrong = problem;
  wrong.shape.n = 8;
  EXPECT_FALSE(make_random_operands_for(wrong, made->b.view(), 2));
}

TEST(WideOperands, UseEveryScaleByteAndCode) {
  const auto nvfp4 =
      make_wide_operands(problem_of(Activation::nvfp4, Format::nvfp4, {64, 64, 512}), 1);
  ASSERT_TRUE(nvfp4);
  std::set<int> bytes, codes;
  for (std::int64_t row = 0; row < 64; ++row) {
    for (std::int64_t block = 0; block < 32; ++block)
      bytes.insert(nvfp4->b.view().scale(row, block));
    for (std::int64_t column = 0; column < 512; ++column)
      codes.insert(nvfp4->b.view().code(row, column));
  }
  EXPECT_EQ(codes.size(), 16u);
  EXPECT_EQ(bytes.size(), 126u);
  EXPECT_EQ(*bytes.begin(), 1);
  EXPECT_EQ(*bytes.rbegin(), 126);

  const auto mxfp4 =
      make_wide_operands(problem_of(Activation::mxfp4, Format::mxfp4, {64, 256, 512}), 1);
  ASSERT_TRUE(mxfp4);
  std::set<int> wide, narrow;
  for (std::int64_t row = 0; row < 256; ++row) {
    for (std::int64_t block = 0; block < 16; ++block)
      (row % 16 == 15 ? wide : narrow).insert(mxfp4->b.view().scale(row, block));
  }
  EXPECT_EQ(*narrow.begin(), 107);
  EXPECT_EQ(*narrow.rbegin(), 147);
  EXPECT_LT(*wide.begin(), 20);
  EXPECT_EQ(*wide.rbegin(), 179);
}

TEST(ScaleByte, IsTheByteOfAPowerOfTwo) {
  for (int exponent = -9; exponent <= 8; ++exponent)
    EXPECT_EQ(e4m3_scale(scale_byte(Format::nvfp4, exponent)), std::ldexp(1.0f, exponent));
  for (int exponent = -127; exponent <= 127; ++exponent)
    EXPECT_EQ(e8m0_value(scale_byte(Format::mxfp4, exponent)), std::ldexp(1.0f, exponent));
}

// SplitMix64 with seed 1234567, from the generator's published test values.
TEST(RandomBits, IsSplitMix64) {
  RandomBits random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317u);
  EXPECT_EQ(random.next(), 3203168211198807973u);
  EXPECT_EQ(random.next(), 9817491932198370423u);
}

}  // namespace
}  // namespace nibble
