// SPDX-License-Identifier: Apache-2.0
// The integer path against the superaccumulator, bit for bit, on every target this CPU runs.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <array>
#include <bit>
#include <cmath>

#include "exact_operands.h"
#include "reference/exact_integer.h"
#include "reference/exact_integer_kernel.h"
#include "reference/exact_product.h"

namespace nibble {
namespace {

using test::between, test::BlockOperand, test::filled, test::Random, test::random_block_tensor,
    test::spread;

std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }

ExactPanel product(const GemmInputs& inputs, OutType out, ExactPath path, int threads = 2) {
  auto panel = exact_product(inputs, out, 0, shape_of(inputs).m, {path, threads});
  EXPECT_TRUE(panel.has_value()) << panel.error().message;
  return *panel;
}

void expect_same_element(const ExactPanel& fast, const ExactPanel& slow, std::size_t i) {
  ASSERT_EQ(fast.rounded[i], slow.rounded[i]) << "element " << i << " value " << slow.value[i];
  if (std::isnan(slow.value[i])) {
    ASSERT_TRUE(std::isnan(fast.value[i]) && std::isnan(fast.magnitude[i])) << "element " << i;
    return;
  }
  ASSERT_EQ(bits(fast.value[i]), bits(slow.value[i])) << "element " << i;
  ASSERT_GE(fast.magnitude[i], slow.magnitude[i]) << "element " << i;
  ASSERT_LE(fast.magnitude[i], slow.magnitude[i] * (1 + 1e-6)) << "element " << i;
}

// Runs `check` once a target.
template <class Check>
void on_every_target(const Check& check) {
  for (std::int64_t left = integer_kernel_targets(); left != 0; left &= left - 1) {
    hwy::SetSupportedTargetsForTest(left & -left);
    SCOPED_TRACE(integer_kernel_target());
    check();
    hwy::SetSupportedTargetsForTest(0);
  }
}

void expect_paths_agree(const GemmInputs& inputs, OutType out) {
  const ExactPanel slow = product(inputs, out, ExactPath::superaccumulator);
  on_every_target([&] {
    const ExactPanel fast = product(inputs, out, ExactPath::integer);
    ASSERT_EQ(fast.rounded.size(), slow.rounded.size());
    for (std::size_t i = 0; i < slow.rounded.size(); ++i) expect_same_element(fast, slow, i);
    EXPECT_EQ(fast.outside_fp32, slow.outside_fp32);
  });
}

TEST(ExactPaths, TheseTargetsAreTested) {
  std::string names;
  on_every_target([&] { names += std::string(integer_kernel_target()) + " "; });
  RecordProperty("targets", names);
  std::printf("targets: %s\n", names.c_str());
  EXPECT_FALSE(names.empty());
}

TEST(ExactPaths, AgreeOnRandomOperands) {
  Random random(21);
  constexpr std::array<std::int64_t, 11> kColumns{16,  32,   48,   128,  144,  240,
                                                  512, 1008, 2064, 6144, 24576};
  for (int round = 0; round < 66; ++round) {
    const std::int64_t k = kColumns[static_cast<std::size_t>(round) % kColumns.size()];
    const std::int64_t largest = k > 2100 ? 6 : 41;
    const std::int64_t m = between(random, 1, largest), n = between(random, 1, largest);
    const auto order = [&] { return static_cast<ScaleOrder>(between(random, 0, 2)); };
    const auto least = static_cast<int>(between(random, 0, 126));
    const auto greatest = static_cast<int>(between(random, least, 126));
    const BlockOperand a =
        spread(random_block_tensor(random, Format::nvfp4, m, k, order(), least, greatest),
               between(random, 0, 5));
    const BlockOperand b = spread(random_block_tensor(random, Format::nvfp4, n, k, order(), 0, 126),
                                  between(random, 0, 5));
    const float alpha = std::ldexp(static_cast<float>(between(random, -0xFFFFFF, 0xFFFFFF)),
                                   static_cast<int>(between(random, -60, 0)));
    const auto out = static_cast<OutType>(between(random, 0, 2));
    SCOPED_TRACE("m " + std::to_string(m) + " n " + std::to_string(n) + " k " + std::to_string(k));
    expect_paths_agree({a.view(), b.view(), alpha}, out);
    if (HasFailure()) return;
  }
}

// Codes and scales from two values only, so that sums meet ties, exact zeros and every sign.
TEST(ExactPaths, AgreeWhereSumsAreSmallIntegers) {
  Random random(22);
  constexpr std::array<float, 8> kAlphas{1,         -1,         0x1p-7f, 0x1.8p-20f,
                                         0x1p-140f, -0x1p-149f, 3,       0.1f};
  for (int round = 0; round < 40; ++round) {
    auto a = random_block_tensor(random, Format::nvfp4, 33, 16 * between(random, 1, 20),
                                 ScaleOrder::row_major, 0x38, 0x38);
    auto b = random_block_tensor(random, Format::nvfp4, 31, a.columns, ScaleOrder::tiled_128x4,
                                 0x01, round % 2 ? 0x02 : 0x40);
    const float alpha = kAlphas[static_cast<std::size_t>(round) % kAlphas.size()];
    expect_paths_agree({a.view(), b.view(), alpha}, static_cast<OutType>(round % 3));
    if (HasFailure()) return;
  }
}

TEST(ExactPaths, AgreeOnTheLargestSums) {
  for (const std::int64_t k : {16L, 128L, 6144L, 24576L}) {
    const auto b = filled(Format::nvfp4, 3, k, 7, 0xFE);
    for (const std::uint8_t code : {0x7, 0xF}) {
      const auto a = filled(Format::nvfp4, 2, k, code, 0x7E);
      for (const float alpha : {1.0f, 0x1p-20f, 0x1.fffffep127f}) {
        expect_paths_agree({a.view(), b.view(), alpha}, OutType::f32);
      }
    }
  }
  EXPECT_EQ(max_integer_k(), 76000 * 16);
  const auto longest = filled(Format::nvfp4, 1, max_integer_k(), 0xF, 0x7E);
  expect_paths_agree({longest.view(), longest.view(), -0.3f}, OutType::bf16);
}

// Beyond 2^54 units, with bits all over: too long for the quick ending.
TEST(ExactPaths, AgreeOnLargeSumsOfManyBits) {
  Random random(28);
  auto a = random_block_tensor(random, Format::nvfp4, 3, 24576, ScaleOrder::row_major, 0x78, 0x7E);
  auto b = random_block_tensor(random, Format::nvfp4, 17, 24576, ScaleOrder::row_major, 0x78, 0x7E);
  for (auto* tensor : {&a, &b}) {
    for (auto& byte : tensor->codes) byte |= 0x66;
    for (auto& byte : tensor->codes) byte &= 0x77;
    for (std::int64_t block = 0; block < tensor->layout.blocks; block += 8) {
      test::set_scale(*tensor, 0, block, static_cast<std::uint8_t>(between(random, 1, 0x30)));
    }
  }
  const GemmInputs inputs{a.view(), b.view(), 0x1.555556p-3f};
  EXPECT_GT(product(inputs, OutType::f32, ExactPath::superaccumulator).value[0],
            0x1p55 / 6 * 0x1p-20);
  for (const OutType out : {OutType::bf16, OutType::f16, OutType::f32})
    expect_paths_agree(inputs, out);
}

// Huge terms cancel exactly in pairs of blocks and leave a small one, or nothing.
TEST(ExactPaths, AgreeUnderCancellation) {
  Random random(23);
  for (const std::int64_t k : {32L, 144L, 6144L, 24576L}) {
    auto a = filled(Format::nvfp4, 4, k, 7, 0x7E), b = filled(Format::nvfp4, 5, k, 7, 0x7E);
    const std::int64_t blocks = k / 16;
    for (std::int64_t row = 0; row < a.rows; ++row) {
      for (std::int64_t column = 0; column < k; ++column) {
        if (column / 16 % 2 == 1) test::set_code(a, row, column, 0xF);
      }
      const std::int64_t odd_one = blocks % 2 == 1 ? blocks - 1 : between(random, 0, blocks - 1);
      test::set_scale(a, row, odd_one, static_cast<std::uint8_t>(row));
      if (blocks % 2 == 0) {
        test::set_scale(a, row, odd_one ^ 1, static_cast<std::uint8_t>(row == 2 ? 2 : row + 1));
      }
    }
    for (const float alpha : {1.0f, -0x1p-120f}) {
      const GemmInputs inputs{a.view(), b.view(), alpha};
      expect_paths_agree(inputs, OutType::f32);
      expect_paths_agree(inputs, OutType::f16);
      const ExactPanel slow = product(inputs, OutType::f32, ExactPath::superaccumulator);
      const std::size_t zero_row = blocks % 2 == 0 ? 2 : 0;
      for (std::size_t row = 0; row < 4; ++row) {
        EXPECT_EQ(slow.value[row * 5] == 0, row == zero_row) << k;
        // One unit of the scale against 229376 of them, twice a pair of blocks.
        EXPECT_LT(std::abs(slow.value[row * 5]), slow.magnitude[row * 5] * (k > 32 ? 1e-5 : 2));
      }
    }
    if (HasFailure()) return;
  }
}

TEST(ExactPaths, AgreeOnNanScalesAndOddAlphas) {
  Random random(24);
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float alpha : {0.0f, -0.0f, infinity, -infinity, std::nanf(""), 0x1p-149f, 1.0f}) {
    auto a = random_block_tensor(random, Format::nvfp4, 9, 96, ScaleOrder::tiled_8x4, 0, 126);
    auto b = random_block_tensor(random, Format::nvfp4, 18, 96, ScaleOrder::tiled_128x4, 0, 126);
    test::set_scale(a, 6, 2, 0x7F);
    test::set_scale(b, 17, 5, 0xFF);
    test::set_scale(b, 0, 0, 0x7F);
    for (std::int64_t block = 0; block < 6; ++block) test::set_scale(a, 3, block, 0);
    expect_paths_agree({a.view(), b.view(), alpha}, OutType::bf16);
  }
}

// S on both sides of 2^128, and within what the integer path cannot tell apart by itself.
TEST(ExactPaths, AgreeOnWhatLeavesFp32) {
  Random random(25);
  const auto a =
      random_block_tensor(random, Format::nvfp4, 16, 64, ScaleOrder::row_major, 0x60, 0x7E);
  const auto b =
      random_block_tensor(random, Format::nvfp4, 16, 64, ScaleOrder::row_major, 0x60, 0x7E);
  const auto plain = product({a.view(), b.view(), 1.0f}, OutType::f32, ExactPath::superaccumulator);
  int outside = 0, inside = 0;
  for (std::size_t i = 0; i < plain.magnitude.size(); i += 7) {
    const auto alpha = static_cast<float>(0x1p128 / plain.magnitude[i]);
    for (const float each : {alpha, std::nextafter(alpha, 0.0f), std::nextafter(alpha, 1e38f)}) {
      const GemmInputs inputs{a.view(), b.view(), each};
      expect_paths_agree(inputs, OutType::f32);
      const auto slow = product(inputs, OutType::f32, ExactPath::superaccumulator);
      if (slow.outside_fp32.empty()) continue;
      outside += slow.outside_fp32[i];
      inside += 1 - slow.outside_fp32[i];
    }
  }
  EXPECT_GT(outside, 10);
  EXPECT_GT(inside, 10);
}

// The comparison above can fail: any change of an operand shows in a product of the other path.
TEST(ExactPaths, AChangedOperandChangesTheProduct) {
  Random random(26);
  const auto a =
      random_block_tensor(random, Format::nvfp4, 5, 160, ScaleOrder::tiled_8x4, 0x10, 0x70);
  const auto b =
      random_block_tensor(random, Format::nvfp4, 20, 160, ScaleOrder::tiled_128x4, 0x10, 0x70);
  const auto slow = product({a.view(), b.view(), 1}, OutType::f32, ExactPath::superaccumulator);
  const auto differs = [&](const BlockTensor& x, const BlockTensor& y, std::size_t i) {
    const auto fast = product({x.view(), y.view(), 1}, OutType::f32, ExactPath::integer);
    return bits(fast.value[i]) != bits(slow.value[i]);
  };
  EXPECT_FALSE(differs(a, b, 2 * 20 + 17));
  for (std::int64_t column = 0; column < 160; column += 3) {
    auto x = a, y = b;
    test::set_code(x, 2, column, a.view().code(2, column) ^ 5);
    test::set_code(y, 17, column, b.view().code(17, column) ^ 5);
    const bool visible = (b.view().code(17, column) & 7) != 0;
    EXPECT_EQ(differs(x, b, 2 * 20 + 17), visible) << column;
    EXPECT_EQ(differs(a, y, 2 * 20 + 17), (a.view().code(2, column) & 7) != 0) << column;
    EXPECT_FALSE(differs(x, b, 1 * 20 + 17) || differs(a, y, 2 * 20 + 16)) << column;
  }
}

TEST(ExactPaths, PanelsAndThreadsGiveTheWholeProduct) {
  Random random(27);
  const auto a =
      random_block_tensor(random, Format::nvfp4, 530, 48, ScaleOrder::tiled_128x4, 0, 126);
  const auto b = random_block_tensor(random, Format::nvfp4, 70, 48, ScaleOrder::tiled_8x4, 0, 126);
  const GemmInputs inputs{a.view(), b.view(), 0.3f};
  for (const ExactPath path : {ExactPath::integer, ExactPath::superaccumulator}) {
    const ExactPanel whole = product(inputs, OutType::bf16, path, 1);
    for (const int threads : {2, 5}) {
      EXPECT_EQ(product(inputs, OutType::bf16, path, threads).rounded, whole.rounded);
    }
    for (const auto& [begin, rows] :
         {std::pair<std::int64_t, std::int64_t>{0, 1}, {257, 5}, {529, 1}, {3, 300}, {530, 0}}) {
      const auto part = exact_product(inputs, OutType::bf16, begin, rows, {path, 3});
      ASSERT_TRUE(part.has_value());
      EXPECT_EQ(part->row_begin, begin);
      const auto from = whole.value.begin() + begin * 70;
      EXPECT_EQ(part->value, std::vector<double>(from, from + rows * 70));
    }
  }
}

}  // namespace
}  // namespace nibble
