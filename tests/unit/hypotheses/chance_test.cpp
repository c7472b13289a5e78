// SPDX-License-Identifier: Apache-2.0
// What must not be named: few outputs, wide bounds and thousands of candidates let a wrong
// hypothesis fit by chance.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mistaken_gemm.h"

namespace nibble {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<Shape> scarce_setups() {
  std::vector<Shape> all;
  for (const auto& shape :
       {GemmShape{1, 1, 64}, GemmShape{1, 1, 6144}, GemmShape{2, 3, 6144}, GemmShape{1, 8, 256},
        GemmShape{1, 4096, 512}, GemmShape{1, 512, 6144}, GemmShape{137, 1, 256}}) {
    for (const auto out : {OutType::bf16, OutType::f32})
      all.push_back({shape, Activation::nvfp4, Format::nvfp4, ScaleOrder::tiled_128x4, out});
  }
  return all;
}

double deviation(const std::vector<float>& values) {
  double square = 0;
  for (const float x : values) square += static_cast<double>(x) * static_cast<double>(x);
  return std::sqrt(square / static_cast<double>(values.size()));
}

TEST(Chance, GarbageLooksLikeNothing) {
  for (const auto& setup : scarce_setups()) {
    Problem problem(setup);
    auto values = problem.outputs();
    std::normal_distribution<float> normal(0, static_cast<float>(deviation(values)));
    for (const bool judge_noise : {true, false}) {
      problem.judge_noise = judge_noise;
      for (unsigned seed = 0; seed < 4; ++seed) {
        std::mt19937 random(seed);
        for (auto& x : values) x = normal(random);
        EXPECT_THAT(problem.diagnose_values(values), IsEmpty())
            << describe(setup) << " noise " << judge_noise << " seed " << seed;
      }
    }
  }
}

// No hypothesis is about a factor, and a factor is no matter of precision.
TEST(Chance, AFactorLooksLikeNothing) {
  for (const auto& setup : scarce_setups()) {
    for (const double factor : {1.002, 1.05}) {
      Problem problem(setup);
      problem.used_alpha = factor * static_cast<double>(problem.alpha);
      EXPECT_THAT(problem.diagnose_reading(), IsEmpty()) << describe(setup) << " x " << factor;
    }
  }
}

// One token: what the sampled columns say is enough.
TEST(Chance, MistakesWithOneRowAreNamed) {
  for (const auto& shape : {GemmShape{1, 512, 6144}, GemmShape{1, 4096, 512}}) {
    for (const auto out : {OutType::bf16, OutType::f32}) {
      const Shape setup{shape, Activation::nvfp4, Format::nvfp4, ScaleOrder::tiled_128x4, out};
      SCOPED_TRACE(describe(setup));
      Problem problem(setup);
      for (const bool judge_noise : {true, false}) {
        problem.judge_noise = judge_noise;
        problem.read_b = [&b = problem.b](std::int64_t row, std::int64_t column) {
          return code_value(Problem::code(b, row, column));
        };
        EXPECT_THAT(problem.diagnose_reading(), ElementsAre("scale_ignored_b"));
        problem.read_b = Problem::right(problem.b);
        problem.dropped_k = 64;
        EXPECT_THAT(problem.diagnose_reading(), ElementsAre("k_tail_dropped (64 elements)"));
        problem.dropped_k = 0;
      }
    }
  }
}

// The bound of a long sum takes in many neighbours of the right number.
TEST(Chance, TheBestTailIsNamedAmongThoseThatFit) {
  for (const auto out : {OutType::bf16, OutType::f32}) {
    for (const std::int64_t dropped : {16, 33, 64}) {
      Problem problem(
          {{16, 48, 6144}, Activation::nvfp4, Format::nvfp4, ScaleOrder::row_major, out});
      problem.judge_noise = false;
      problem.dropped_k = dropped;
      EXPECT_THAT(problem.diagnose_reading(),
                  ElementsAre("k_tail_dropped (" + std::to_string(dropped) + " elements)"));
    }
  }
}

// Every fifth column leaves the fp32 range: anything may come out there, and the others tell.
TEST(Chance, OutputsWithoutAnAnswerSayNothing) {
  const Shape setup{{9, 64, 224}, Activation::mxfp4, Format::mxfp4, ScaleOrder::row_major};
  Problem problem(setup);
  const std::int64_t blocks = setup.shape.k / 32;
  for (auto& byte : problem.a.scales) byte = static_cast<std::uint8_t>(byte + 16);
  for (std::int64_t row = 0; row < setup.shape.n; row += 5)
    for (std::int64_t c = 0; c < blocks; ++c)
      problem.b.scales[static_cast<std::size_t>(row * blocks + c)] = 254;
  const auto with_nan = [&] {
    auto values = problem.outputs();
    for (std::int64_t row = 0; row < setup.shape.m; ++row)
      for (std::int64_t column = 0; column < setup.shape.n; column += 5)
        values[static_cast<std::size_t>(row * setup.shape.n + column)] = std::nanf("");
    return values;
  };
  EXPECT_THAT(problem.diagnose_values(with_nan()), IsEmpty());
  problem.read_b = [&b = problem.b](std::int64_t row, std::int64_t column) {
    return code_value(Problem::code(b, row, column ^ 1)) *
           e8m0(Problem::right_byte(b, row, column));
  };
  EXPECT_THAT(problem.diagnose_values(with_nan()),
              ElementsAre("swapped_nibbles_a", "swapped_nibbles_b"));
}

}  // namespace
}  // namespace nibble
