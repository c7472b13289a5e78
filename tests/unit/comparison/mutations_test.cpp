// SPDX-License-Identifier: Apache-2.0
// A right result, changed in one way each: every one must be Incorrect (bug case J1: checks that
// cannot fail).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "random_problem.h"

namespace nibble {
namespace {

constexpr OutType kOuts[] = {OutType::bf16, OutType::f16, OutType::f32};

using Change = std::function<void(std::vector<float>&, std::int64_t m, std::int64_t n)>;

struct Mutation {
  const char* name;
  Change change;
};

void swap_rows(std::vector<float>& values, std::int64_t n, std::int64_t x, std::int64_t y) {
  for (std::int64_t i = 0; i < n; ++i)
    std::swap(values[static_cast<std::size_t>(x * n + i)],
              values[static_cast<std::size_t>(y * n + i)]);
}

const std::vector<Mutation>& mutations() {
  static const std::vector<Mutation> all{
      {"x 0",
       [](auto& v, auto, auto) {
         for (auto& x : v) x = 0;
       }},
      {"x 1.002",
       [](auto& v, auto, auto) {
         for (auto& x : v) x *= 1.002f;
       }},
      {"x 0.5",
       [](auto& v, auto, auto) {
         for (auto& x : v) x *= 0.5f;
       }},
      {"sign flip",
       [](auto& v, auto, auto) {
         for (auto& x : v) x = -x;
       }},
      {"row swap", [](auto& v, auto, auto n) { swap_rows(v, n, 1, 2); }},
      {"one NaN", [](auto& v, auto, auto) { v[5] = std::numeric_limits<float>::quiet_NaN(); }},
      {"one inf", [](auto& v, auto, auto) { v[5] = std::numeric_limits<float>::infinity(); }},
      {"a zeroed strip of 16 columns",
       [](auto& v, auto m, auto n) {
         for (std::int64_t row = 0; row < m; ++row)
           for (std::int64_t column = 16; column < 32; ++column)
             v[static_cast<std::size_t>(row * n + column)] = 0;
       }},
      {"a bias of 1/4 of the deviation", [](auto& v, auto, auto) {
         double square = 0;
         for (const float x : v) square += static_cast<double>(x) * static_cast<double>(x);
         for (auto& x : v)
           x += static_cast<float>(std::sqrt(square / static_cast<double>(v.size())) / 4);
       }}};
  return all;
}

TEST(ComparisonBugCases, J1_EveryMutationIsIncorrect) {
  for (const auto a : {Activation::nvfp4, Activation::bf16, Activation::f16}) {
    for (const std::int64_t k : {std::int64_t{256}, std::int64_t{6144}}) {
      const RandomProblem problem(a, 16, 48, k);
      std::vector<float> right;
      for (std::int64_t i = 0; i < problem.m * problem.n; ++i)
        right.push_back(
            problem.alpha *
            accumulate::aligned(problem.products(i / problem.n, i % problem.n), 25, 16));
      for (const auto out : kOuts) {
        for (const auto& [mutation, change] : mutations()) {
          auto values = right;
          change(values, problem.m, problem.n);
          std::vector<std::byte> output(values.size() * static_cast<std::size_t>(out_bytes(out)));
          for (std::size_t i = 0; i < values.size(); ++i)
            store(output, out, static_cast<std::int64_t>(i), values[i]);
          const auto accuracy = problem.judge(output, out);
          EXPECT_NE(accuracy.why_wrong, "")
              << mutation << " " << name(a) << " k=" << k << " " << name(out);
          EXPECT_TRUE(std::holds_alternative<Incorrect>(judge(accuracy)));
        }
      }
    }
  }
}

TEST(ComparisonBugCases, J1_OneProductOf6144DroppedInEveryOutput) {
  for (const auto a : {Activation::nvfp4, Activation::bf16, Activation::f16}) {
    const RandomProblem problem(a, 16, 16, 6144);
    const auto drop = [](std::vector<double>& products) { products[3072] = 0; };
    for (const auto out : kOuts) {
      const auto output = problem.run(
          [](accumulate::Products p) { return accumulate::aligned(p, 25, 16); }, out, drop);
      const auto accuracy = problem.judge(output, out);
      EXPECT_NE(accuracy.why_wrong, "") << name(a) << " " << name(out);
      EXPECT_GT(*accuracy.noise, 10) << name(out);
    }
  }
}

// B's scales of one 128x4 tile read across: rows as blocks.
TEST(ComparisonBugCases, J1_ATransposedScaleTile) {
  const RandomProblem problem(Activation::nvfp4, 16, 16, 256);
  auto inputs = problem.inputs();
  auto wrong = relayout(inputs.b, ScaleOrder::row_major).value();
  for (std::int64_t row = 0; row < 4; ++row) {
    for (std::int64_t block = 0; block < 4; ++block)
      wrong.scales[static_cast<std::size_t>(row * 16 + block)] = inputs.b.scale(block, row);
  }
  inputs.b = wrong.view();
  for (const auto out : kOuts) {
    const auto panel = exact_product(inputs, out, 0, 16).value();
    std::vector<std::byte> output(static_cast<std::size_t>(256 * out_bytes(out)));
    for (std::int64_t i = 0; i < 256; ++i)
      std::memcpy(output.data() + i * out_bytes(out), &panel.rounded[static_cast<std::size_t>(i)],
                  static_cast<std::size_t>(out_bytes(out)));
    EXPECT_NE(problem.judge(output, out).why_wrong, "") << name(out);
  }
}

// Small integers: any fp32 order gives the exact bits, and one unit in the last place is a fault.
TEST(ComparisonBugCases, J1_OneUlpInAnIntegerCase) {
  auto a = make_block_tensor(Format::nvfp4, 4, 64).value(),
       b = make_block_tensor(Format::nvfp4, 8, 64).value();
  for (std::size_t i = 0; i < a.codes.size(); ++i)
    a.codes[i] = static_cast<std::uint8_t>(i * 29 + 7);
  for (std::size_t i = 0; i < b.codes.size(); ++i)
    b.codes[i] = static_cast<std::uint8_t>(i * 53 + 1);
  std::fill(a.scales.begin(), a.scales.end(), 0x38);
  std::fill(b.scales.begin(), b.scales.end(), 0x38);
  const GemmInputs inputs{a.view(), b.view(), 1.0f};
  for (const auto out : kOuts) {
    const auto panel = exact_product(inputs, out, 0, 4).value();
    std::vector<std::byte> output(static_cast<std::size_t>(32 * out_bytes(out)));
    const auto put = [&](std::int64_t i, std::uint32_t bits) {
      std::memcpy(output.data() + i * out_bytes(out), &bits,
                  static_cast<std::size_t>(out_bytes(out)));
    };
    for (std::int64_t i = 0; i < 32; ++i) put(i, panel.rounded[static_cast<std::size_t>(i)]);
    const OutputView view{out, 4, 8, 8 * out_bytes(out), output};
    const ComparisonPolicy exact{AccumulationClass::exact, false, false};
    EXPECT_EQ(compare(inputs, view, exact)->accumulation, AccumulationClass::exact);
    EXPECT_EQ(compare(inputs, view, exact)->why_wrong, "");
    put(13, panel.rounded[13] + 1);
    const auto accuracy = compare(inputs, view, exact).value();
    EXPECT_THAT(accuracy.why_wrong,
                testing::HasSubstr(
                    "1 of 32 outputs differ from the exact result, first at row 1 column 5"));
    EXPECT_EQ(accuracy.ulp_histogram[1], 1);
    EXPECT_EQ(accuracy.ulp_histogram[0], 31);
  }
}

}  // namespace
}  // namespace nibble
