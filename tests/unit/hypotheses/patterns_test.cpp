// SPDX-License-Identifier: Apache-2.0
// Faults that show in the output itself: what was not written, what lies elsewhere, what is
// imprecise.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "mistaken_gemm.h"
#include "support/accumulate.h"

namespace nibble {
namespace {

using testing::IsEmpty;
using testing::StartsWith;

class Patterns : public testing::Test {
 protected:
  Problem problem{
      {{137, 200, 144}, Activation::nvfp4, Format::nvfp4, ScaleOrder::tiled_128x4, OutType::f32}};
  std::vector<float> right = problem.outputs();
  float& at(std::vector<float>& values, std::int64_t row, std::int64_t column) const {
    return values[static_cast<std::size_t>(row * 200 + column)];
  }
  static constexpr std::uint32_t kPoison = 0x7FC0BEEF;
  const float poison = std::bit_cast<float>(kPoison);
};

TEST_F(Patterns, Honest) {
  EXPECT_THAT(problem.diagnose_values(right), IsEmpty());
  for (const auto& setup : setups())
    EXPECT_THAT(Problem(setup).diagnose_reading(), IsEmpty()) << describe(setup);
}

TEST_F(Patterns, RandomGarbageLooksLikeNothing) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 30);
  auto values = right;
  for (auto& x : values) x = normal(random);
  EXPECT_THAT(problem.diagnose_values(values), IsEmpty());
}

TEST_F(Patterns, AllZerosConstantNan) {
  EXPECT_THAT(problem.diagnose_values(std::vector<float>(right.size(), 0.0f)),
              testing::ElementsAre("all_zeros"));
  EXPECT_THAT(problem.diagnose_values(std::vector<float>(right.size(), 2.5f)),
              testing::ElementsAre("constant (2.5)"));
  EXPECT_THAT(problem.diagnose_values(std::vector<float>(right.size(), std::nanf(""))),
              testing::ElementsAre("nan_everywhere"));
  EXPECT_THAT(problem.diagnose_values(std::vector<float>(right.size(), poison), kPoison),
              testing::ElementsAre("nan_everywhere (nothing was written)"));
}

TEST_F(Patterns, PoisonLeft) {
  auto rows = right, columns = right, tile = right;
  for (std::int64_t i = 0; i < 200; ++i) at(rows, 3, i) = at(rows, 4, i) = at(rows, 90, i) = poison;
  for (std::int64_t i = 0; i < 137; ++i) at(columns, i, 17) = poison;
  for (std::int64_t row = 64; row < 80; ++row)
    for (std::int64_t column = 32; column < 40; ++column) at(tile, row, column) = poison;
  EXPECT_THAT(problem.diagnose_values(rows, kPoison),
              testing::ElementsAre("unwritten_rows (rows 3..4, 90)"));
  EXPECT_THAT(problem.diagnose_values(columns, kPoison),
              testing::ElementsAre("unwritten_columns (columns 17)"));
  EXPECT_THAT(problem.diagnose_values(tile, kPoison),
              testing::ElementsAre("unwritten_elements (128 elements, first at row 64 column 32)"));
}

TEST_F(Patterns, LastTileMissing) {
  auto rows = right, columns = right, poisoned = right;
  for (std::int64_t row = 128; row < 137; ++row)
    for (std::int64_t column = 0; column < 200; ++column)
      at(rows, row, column) = 0, at(poisoned, row, column) = poison;
  for (std::int64_t row = 0; row < 137; ++row)
    for (std::int64_t column = 192; column < 200; ++column) at(columns, row, column) = 0;
  EXPECT_THAT(problem.diagnose_values(rows),
              testing::ElementsAre("last_m_tile_missing (rows 128..136)"));
  EXPECT_THAT(problem.diagnose_values(columns),
              testing::ElementsAre("last_n_tile_missing (columns 192..199)"));
  EXPECT_THAT(problem.diagnose_values(poisoned, kPoison),
              testing::ElementsAre("unwritten_rows (rows 128..136)",
                                   "last_m_tile_missing (rows 128..136)"));
}

TEST_F(Patterns, OutputTransposed) {
  auto values = right;
  for (std::int64_t row = 0; row < 137; ++row)
    for (std::int64_t column = 0; column < 200; ++column)
      values[static_cast<std::size_t>(column * 137 + row)] =
          right[static_cast<std::size_t>(row * 200 + column)];
  EXPECT_THAT(problem.diagnose_values(values), testing::ElementsAre("output_transposed"));
}

TEST_F(Patterns, RowsAndColumnsPermuted) {
  auto rows = right, columns = right;
  for (std::int64_t i = 0; i < 200; ++i) std::swap(at(rows, 0, i), at(rows, 136, i));
  for (std::int64_t i = 0; i < 137; ++i) std::swap(at(columns, i, 0), at(columns, i, 199));
  EXPECT_THAT(problem.diagnose_values(rows),
              testing::ElementsAre("rows_permuted (row 0 holds 136, row 136 holds 0)"));
  EXPECT_THAT(problem.diagnose_values(columns),
              testing::ElementsAre("columns_permuted (column 0 holds 199, column 199 holds 0)"));
  auto interleaved = right;  // a fragment order: rows 8i + j and 8j + i of the first 64
  for (std::int64_t row = 0; row < 64; ++row)
    for (std::int64_t i = 0; i < 200; ++i)
      at(interleaved, row % 8 * 8 + row / 8, i) = right[static_cast<std::size_t>(row * 200 + i)];
  EXPECT_THAT(problem.diagnose_values(interleaved),
              testing::ElementsAre(StartsWith("rows_permuted (row ")));
}

TEST(OutputBits, MisreadTypes) {
  const Problem as_bf16(
      {{20, 72, 144}, Activation::nvfp4, Format::nvfp4, ScaleOrder::row_major, OutType::bf16});
  EXPECT_THAT(as_bf16.diagnose_bytes(Problem::store(as_bf16.outputs(), OutType::f16)),
              testing::ElementsAre("output_f16_read_as_bf16"));
  const Problem as_f16(
      {{20, 72, 144}, Activation::nvfp4, Format::nvfp4, ScaleOrder::row_major, OutType::f16});
  EXPECT_THAT(as_f16.diagnose_bytes(Problem::store(as_f16.outputs(), OutType::bf16)),
              testing::ElementsAre("output_bf16_read_as_f16"));
}

TEST(Precision, Fp16AndShortSums) {
  for (const std::int64_t k : {std::int64_t{256}, std::int64_t{2048}}) {
    Problem problem(
        {{24, 40, k}, Activation::nvfp4, Format::nvfp4, ScaleOrder::row_major, OutType::f32});
    const auto with = [&](const accumulate::Order& order) {
      std::vector<float> values;
      for (std::int64_t row = 0; row < 24; ++row) {
        for (std::int64_t column = 0; column < 40; ++column) {
          std::vector<double> products;
          for (std::int64_t i = 0; i < k; ++i)
            products.push_back(problem.read_a(row, i) * problem.read_b(column, i));
          values.push_back(problem.alpha * order(products));
        }
      }
      return values;
    };
    EXPECT_THAT(problem.diagnose_values(with(accumulate::fp16)),
                testing::ElementsAre("fp16_accumulation"));
    EXPECT_THAT(problem.diagnose_values(
                    with([](accumulate::Products p) { return accumulate::aligned(p, 13, 32); })),
                testing::ElementsAre("reduced_precision"));
    EXPECT_THAT(problem.diagnose_values(with(accumulate::sequential)), IsEmpty());
  }
}

TEST(LargeProblems, AreDiagnosedOnASample) {
  Problem problem(
      {{300, 520, 512}, Activation::nvfp4, Format::nvfp4, ScaleOrder::tiled_128x4, OutType::bf16});
  problem.read_b = [&b = problem.b](std::int64_t row, std::int64_t column) {
    return code_value(Problem::code(b, row, column ^ 1)) *
           e4m3(Problem::right_byte(b, row, column));
  };
  EXPECT_THAT(problem.diagnose_reading(),
              testing::ElementsAre("swapped_nibbles_a", "swapped_nibbles_b"));
}

TEST(Documentation, NamesEveryHypothesis) {
  std::ifstream file(NIBBLE_SOURCE_DIR "/docs/verdicts.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  ASSERT_FALSE(text.empty());
  for (const auto& info : hypotheses()) {
    std::string family(info.name);
    for (const std::string suffix : {"_a", "_b", "_ab"}) {
      if (family.ends_with(suffix) && text.find("`" + family + "`") == std::string::npos) {
        family.resize(family.size() - suffix.size());
        break;
      }
    }
    EXPECT_NE(text.find("`" + family + "`"), std::string::npos) << info.name;
    EXPECT_FALSE(info.advice.empty()) << info.name;
  }
}

}  // namespace
}  // namespace nibble
