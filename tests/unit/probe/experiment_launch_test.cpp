// SPDX-License-Identifier: Apache-2.0
#include "probe/experiment_launch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace nibble {
namespace {

GemmProblem problem_of(OutType out, std::int64_t m, std::int64_t n) {
  GemmProblem problem;
  problem.shape = {m, n, 32};
  problem.out = out;
  return problem;
}

Output output_of(const GemmProblem& problem, int pattern, const Placement& placement = {}) {
  auto output = make_output(MemoryKind::host, problem, placement, pattern);
  EXPECT_TRUE(output);
  return std::move(*output);
}

void write_element(Output& output, std::int64_t row, std::int64_t column) {
  const auto size = static_cast<std::size_t>(out_bytes(output.type));
  std::memset(output.buffer.bytes().data() + row * output.row_stride_bytes +
                  column * static_cast<std::int64_t>(size),
              0, size);
}

template <class Written>
std::string unwritten_where(const Written& written) {
  const auto problem = problem_of(OutType::bf16, 4, 6);
  auto first = output_of(problem, 0), second = output_of(problem, 1);
  for (std::int64_t row = 0; row < 4; ++row) {
    for (std::int64_t column = 0; column < 6; ++column) {
      if (!written(row, column)) continue;
      write_element(first, row, column);
      write_element(second, row, column);
    }
  }
  return unwritten(first, second);
}

TEST(Output, HoldsNanOfItsPatternEverywhere) {
  for (const OutType out : {OutType::bf16, OutType::f16, OutType::f32}) {
    Placement gaps;
    gaps.out_pad_bytes = 16;
    const auto one = output_of(problem_of(out, 3, 5), 0, gaps),
               two = output_of(problem_of(out, 3, 5), 1);
    EXPECT_NE(one.poison, two.poison);
    for (std::int64_t row = 0; row < 3; ++row) {
      for (std::int64_t column = 0; column < 5; ++column) {
        EXPECT_TRUE(std::isnan(one.view().value(row, column)));
        EXPECT_TRUE(std::isnan(two.view().value(row, column)));
        EXPECT_EQ(one.view().bits(row, column), one.poison);
      }
    }
    EXPECT_TRUE(one.untouched());
    EXPECT_EQ(one.damage(), "");
  }
}

TEST(Output, SeesWritesIntoGaps) {
  Placement gaps;
  gaps.out_pad_bytes = 16;
  auto output = output_of(problem_of(OutType::f32, 3, 5), 0, gaps);
  output.buffer.bytes()[static_cast<std::size_t>(output.row_stride_bytes + 20 + 3)] = std::byte{0};
  EXPECT_EQ(output.damage(), "the gap behind row 1 of the output was written at distance 4");
  EXPECT_TRUE(output.untouched());
  write_element(output, 2, 4);
  EXPECT_FALSE(output.untouched());
}

TEST(Unwritten, NamesRowsColumnsOrElements) {
  EXPECT_EQ(unwritten_where([](auto, auto) { return true; }), "");
  EXPECT_EQ(unwritten_where([](auto, auto) { return false; }),
            "the whole output was never written");
  EXPECT_EQ(unwritten_where([](auto row, auto) { return row != 3; }),
            "row 3 of the output never written");
  EXPECT_EQ(unwritten_where([](auto row, auto) { return row == 0; }),
            "rows 1..3 (3 of them) of the output never written");
  EXPECT_EQ(unwritten_where([](auto, auto column) { return column != 5; }),
            "column 5 of the output never written");
  EXPECT_EQ(unwritten_where([](auto row, auto column) { return row != 2 || column < 4; }),
            "2 outputs never written, the first at row 2 column 4");
}

TEST(Difference, CountsAndNamesTheFirst) {
  const auto problem = problem_of(OutType::f16, 2, 3);
  auto first = output_of(problem, 0), second = output_of(problem, 0);
  EXPECT_EQ(difference(first.view(), second.view()), "");
  write_element(second, 1, 0);
  write_element(second, 1, 2);
  EXPECT_EQ(difference(first.view(), second.view()),
            "changed 2 outputs, first at row 1 column 0 (bits 0x0, were 0x7f55)");
}

TEST(PlacedOperand, KeepsTheTensorAndFillsItsPads) {
  GemmProblem problem = problem_of(OutType::f32, 5, 7);
  problem.shape.k = 96;
  problem.a_scales = problem.b_scales = ScaleOrder::tiled_128x4;
  const auto operands = make_wide_operands(problem, 1);
  ASSERT_TRUE(operands);
  OperandPlacement placement;
  placement.scale_pad = 0x7F;
  placement.row_pad_bytes = 16;
  placement.row_pad = 0xEE;
  const auto placed = PlacedOperand::place(MemoryKind::host, operands->b, placement, {});
  ASSERT_TRUE(placed);
  const auto view = std::get<BlockTensorView>(placed->view());
  ASSERT_TRUE(check(view));
  const auto plain = operands->b.view();
  for (std::int64_t row = 0; row < 7; ++row) {
    for (std::int64_t column = 0; column < 96; ++column)
      ASSERT_EQ(view.code(row, column), plain.code(row, column));
    for (std::int64_t block = 0; block < 6; ++block)
      ASSERT_EQ(view.scale(row, block), plain.scale(row, block));
    for (std::int64_t pad = 48; pad < 64; ++pad)
      ASSERT_EQ(view.codes[static_cast<std::size_t>(row * view.code_stride_bytes + pad)], 0xEE);
  }
  // 128 x 8 bytes, 7 x 6 of them scales.
  EXPECT_EQ(std::count(view.scales.begin(), view.scales.end(), 0x7F), 128 * 8 - 7 * 6);
  EXPECT_EQ(placed->damage("B"), "");
}

TEST(PlacedOperand, SeesChangesAndForgetsThemWhenScribbled) {
  const auto operands = make_random_operands(problem_of(OutType::f32, 5, 7), 1);
  ASSERT_TRUE(operands);
  auto placed = PlacedOperand::place(MemoryKind::host, operands->b, {}, {});
  ASSERT_TRUE(placed);
  const auto view = std::get<BlockTensorView>(placed->view());
  const_cast<std::uint8_t&>(view.scales[3]) ^= 1;
  EXPECT_EQ(placed->damage("B"), "the scales of B were changed, first at byte 3");
  placed->scribble();
  EXPECT_EQ(placed->damage("B"), "");
  EXPECT_NE(view.codes[0], operands->b.codes[0]);
}

TEST(PlacedOperand, TakesEveryKindOfActivation) {
  for (const Activation a : {Activation::bf16, Activation::f16, Activation::q8_0}) {
    GemmProblem problem = problem_of(OutType::f32, 5, 7);
    problem.a = a;
    const auto operands = make_random_operands(problem, 1);
    ASSERT_TRUE(operands);
    OperandPlacement placement;
    placement.row_pad_bytes = 16;
    placement.row_pad = 0xFF;
    GuardOptions options;
    options.misalignment = 2;
    const auto placed = PlacedOperand::place(MemoryKind::host, operands->a, placement, options);
    ASSERT_TRUE(placed);
    const auto plain = operands->inputs().a;
    std::visit(
        [&plain](const auto& view) {
          ASSERT_TRUE(check(view));
          if constexpr (requires { view.value(0, 0); }) {
            const auto& expected = std::get<std::decay_t<decltype(view)>>(plain);
            for (std::int64_t row = 0; row < 5; ++row) {
              for (std::int64_t column = 0; column < 32; ++column)
                ASSERT_EQ(view.value(row, column), expected.value(row, column));
            }
          }
        },
        placed->view());
  }
}

}  // namespace
}  // namespace nibble
