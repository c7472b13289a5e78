// SPDX-License-Identifier: Apache-2.0
// Honest kernels are fp32 in every order; reduced ones are called what they are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "random_problem.h"

namespace nibble {
namespace {

using accumulate::Products;

constexpr OutType kOuts[] = {OutType::bf16, OutType::f16, OutType::f32};
constexpr Activation kActivations[] = {Activation::nvfp4, Activation::bf16, Activation::f16};

std::int64_t side_for(std::int64_t k) { return k > 10000 ? 8 : k > 1000 ? 16 : 24; }

class HonestOrders : public testing::TestWithParam<std::int64_t> {};

TEST_P(HonestOrders, AreFp32) {
  const std::int64_t k = GetParam(), side = side_for(k);
  for (const auto a : kActivations) {
    const RandomProblem problem(a, side, side, k);
    for (const auto& [order_name, order] : accumulate::honest_orders()) {
      for (const auto out : kOuts) {
        const auto accuracy = problem.judge(problem.run(order, out), out);
        EXPECT_EQ(accuracy.why_wrong, "") << name(a) << " " << order_name << " " << name(out);
        EXPECT_LE(accuracy.accumulation, AccumulationClass::fp32)
            << name(a) << " " << order_name << " " << name(out);
        EXPECT_EQ(accuracy.wrong, 0);
        EXPECT_EQ(accuracy.checked, side * side);
        // Simulated with numpy: 0.93 .. 1.04 for 16-bit outputs, below 0.46 for f32 (n of 400 or
        // more).
        if (side * side >= 256) {
          EXPECT_LT(*accuracy.noise, out == OutType::f32 ? 0.6 : 1.12) << order_name;
        }
        EXPECT_NEAR(*accuracy.gain, 1, *accuracy.gain_tolerance);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(K, HonestOrders, testing::Values(16, 64, 256, 1024, 6144, 24576));

// One huge product first, then thousands below its last bit: all positive, so noise judges nothing.
TEST(WorstOrdering, IsFp32ForEveryHonestOrder) {
  for (const std::int64_t k : {std::int64_t{1024}, std::int64_t{6144}, std::int64_t{24576}}) {
    auto a = make_block_tensor(Format::nvfp4, 1, k).value(),
         b = make_block_tensor(Format::nvfp4, 1, k).value();
    std::fill(a.codes.begin(), a.codes.end(), pack_codes(1, 1));  // 0.5
    std::fill(b.codes.begin(), b.codes.end(), pack_codes(1, 1));
    std::fill(a.scales.begin(), a.scales.end(), 0x11);
    std::fill(b.scales.begin(), b.scales.end(), 0x01);
    a.codes[0] = b.codes[0] = pack_codes(7, 0);
    std::fill(a.codes.begin() + 1, a.codes.begin() + 8, 0);
    a.scales[0] = b.scales[0] = 0x7E;
    const GemmInputs inputs{a.view(), b.view(), 0.75f};
    std::vector<double> products(
        static_cast<std::size_t>(k),
        0.25 * static_cast<double>(e4m3_scale(0x11)) * static_cast<double>(e4m3_scale(0x01)));
    std::fill(products.begin(), products.begin() + 16, 0.0);
    products[0] = 36.0 * 448 * 448;
    for (const auto& [order_name, order] : accumulate::honest_orders()) {
      const float out = 0.75f * order(products);
      const OutputView view{OutType::f32, 1, 1, 4, std::as_bytes(std::span(&out, 1))};
      const auto accuracy = compare(inputs, view, {}).value();
      EXPECT_EQ(accuracy.why_wrong, "") << order_name << " k=" << k;
      EXPECT_LE(accuracy.accumulation, AccumulationClass::fp32) << order_name << " k=" << k;
    }
  }
}

// Weights with their tensor scale, rounded to 16 bits, and the products that they make.
float with_rounded_weights(const RandomProblem& problem, std::int64_t row, std::int64_t column,
                           bool to_bf16) {
  std::vector<double> products;
  for (std::int64_t i = 0; i < problem.k; ++i) {
    const auto w = static_cast<float>(problem.b[static_cast<std::size_t>(column * problem.k + i)] *
                                      static_cast<double>(problem.g_b));
    const float rounded = to_bf16 ? bf16_value(bf16_encode(w)) : f16_value(f16_encode(w));
    products.push_back(problem.a[static_cast<std::size_t>(row * problem.k + i)] *
                       static_cast<double>(rounded));
  }
  return accumulate::aligned(products, 25, 16) * (problem.alpha / problem.g_b);
}

std::vector<std::byte> rounded_weights(const RandomProblem& problem, OutType out, bool to_bf16) {
  std::vector<std::byte> output(static_cast<std::size_t>(problem.m * problem.n * out_bytes(out)));
  for (std::int64_t i = 0; i < problem.m * problem.n; ++i) {
    store(output, out, i, with_rounded_weights(problem, i / problem.n, i % problem.n, to_bf16));
  }
  return output;
}

// Incorrect by default. Where it is asked for, correct but for what the gain says: a short sum that
// is cut off, not rounded, loses up to a few thousandths of long sums (simulated with numpy, k =
// 6144: gain 0.9987 .. 0.9999).
void expect_reduced(const RandomProblem& problem, const std::vector<std::byte>& output, OutType out,
                    const std::string& what, bool may_lose_gain = false) {
  SCOPED_TRACE(what + " k=" + std::to_string(problem.k) + " " + std::string(name(out)));
  const auto strict = problem.judge(output, out);
  EXPECT_EQ(strict.accumulation, AccumulationClass::reduced) << "noise " << *strict.noise;
  EXPECT_TRUE(std::holds_alternative<Incorrect>(judge(strict)));
  const auto accepted = problem.judge(output, out, AccumulationClass::reduced);
  EXPECT_EQ(accepted.accumulation, AccumulationClass::reduced);
  EXPECT_EQ(accepted.wrong, 0);
  if (may_lose_gain && !accepted.why_wrong.empty()) {
    EXPECT_THAT(accepted.why_wrong, testing::StartsWith("gain 0.99"));
  } else {
    EXPECT_EQ(accepted.why_wrong, "");
    EXPECT_TRUE(std::holds_alternative<Correct>(judge(accepted)));
  }
}

TEST(ReducedAccumulation, IsReducedAndCorrectWhereAskedFor) {
  for (const auto a : kActivations) {
    for (const std::int64_t k : {std::int64_t{256}, std::int64_t{6144}}) {
      const RandomProblem problem(a, 16, 16, k);
      const auto short_sums = [](Products p) { return accumulate::aligned(p, 13, 32); };
      for (const auto out : {OutType::f32, OutType::f16}) {
        expect_reduced(problem, problem.run(accumulate::fp16, out), out, "fp16 sums");
        expect_reduced(problem, problem.run(short_sums, out), out, "13 bits", k == 6144);
        expect_reduced(problem, rounded_weights(problem, out, true), out, "weights to bf16");
        if (out == OutType::f32)
          expect_reduced(problem, rounded_weights(problem, out, false), out, "weights to f16");
      }
    }
  }
}

}  // namespace
}  // namespace nibble
