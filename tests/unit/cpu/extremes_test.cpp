// SPDX-License-Identifier: Apache-2.0
// The CPU GEMM at the ends of its formats: NaN, zero and subnormal scales, any exponent, inf and
// NaN in A, special values of alpha.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "cpu_operands.h"

namespace nibble::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr OutType kOuts[] = {OutType::bf16, OutType::f16, OutType::f32};

void expect_right_everywhere(const GemmInputs& inputs) {
  for (const auto out : kOuts) {
    SCOPED_TRACE(name(out));
    on_every_target([&] { expect_right(inputs, out); });
  }
}

std::int64_t nan_count(const GemmInputs& inputs) {
  return output_stats(run_gemm(inputs, OutType::f32).view()).nan;
}

TEST(CpuGemmExtremes, NanScalesMakeNanOfTheirOutputsAndNoOthers) {
  Random random(11);
  for (const auto format : {Format::nvfp4, Format::mxfp4}) {
    for (const std::uint8_t byte : {0x7F, 0xFF}) {
      if (format == Format::mxfp4 && byte == 0x7F) continue;  // 2^0
      for (const int m : {1, 6}) {
        auto a = ordinary_blocks(format, m, 96, ScaleOrder::row_major, random);
        auto b = ordinary_blocks(format, 37, 96, ScaleOrder::row_major, random);
        set_scale(b, 3, 0, byte);
        set_scale(b, 36, 2, byte);
        EXPECT_EQ(nan_count({a.view(), b.view(), 1.0f}), 2 * m);
        expect_right_everywhere({a.view(), b.view(), 1.0f});
        const auto dense = normal_dense(DenseType::bf16, m, 96, random);
        EXPECT_EQ(nan_count({dense.view(), b.view(), 1.0f}), 2 * m);
        set_scale(a, m - 1, 1, byte);
        EXPECT_EQ(nan_count({a.view(), b.view(), 1.0f}), 37 + 2 * (m - 1));
        expect_right_everywhere({a.view(), b.view(), 1.0f});
      }
    }
  }
}

TEST(CpuGemmExtremes, ZeroAndSubnormalE4m3Scales) {
  Random random(12);
  for (const int greatest : {0, 7, 12}) {
    const auto a = random_blocks(Format::nvfp4, 5, 160, ScaleOrder::row_major, 0, greatest, random);
    const auto b =
        random_blocks(Format::nvfp4, 34, 160, ScaleOrder::row_major, 0, greatest, random);
    expect_right_everywhere({a.view(), b.view(), 1024.0f});
    const auto dense = normal_dense(DenseType::f16, 5, 160, random);
    expect_right_everywhere({dense.view(), b.view(), 1024.0f});
  }
}

TEST(CpuGemmExtremes, EveryE4m3Scale) {
  Random random(13);
  const auto a = random_blocks(Format::nvfp4, 3, 320, ScaleOrder::row_major, 0, 126, random);
  auto b = random_blocks(Format::nvfp4, 127, 320, ScaleOrder::row_major, 0, 126, random);
  for (std::int64_t row = 0; row < 127; ++row) {
    for (std::int64_t block = 0; block < 20; ++block) {
      set_scale(b, row, block, static_cast<std::uint8_t>(row | (block % 2 ? 0x80 : 0)));
    }
  }
  expect_right_everywhere({a.view(), b.view(), 1e-3f});
}

// Mostly without an fp32 answer; where there is one it must be found, and never a NaN.
TEST(CpuGemmExtremes, E8m0ScalesOverTheirWholeRange) {
  Random random(14);
  const std::pair<int, int> ranges[] = {{0, 254}, {0, 3},   {250, 254},
                                        {60, 70}, {0, 130}, {120, 254}};
  for (const auto& [a_least, a_greatest] : ranges) {
    for (const auto& [b_least, b_greatest] : ranges) {
      SCOPED_TRACE(fmt::format("a {}..{}, b {}..{}", a_least, a_greatest, b_least, b_greatest));
      const auto b =
          random_blocks(Format::mxfp4, 33, 96, ScaleOrder::row_major, b_least, b_greatest, random);
      const auto a =
          random_blocks(Format::mxfp4, 5, 96, ScaleOrder::row_major, a_least, a_greatest, random);
      expect_right_everywhere({a.view(), b.view(), 1.0f});
      EXPECT_EQ(nan_count({a.view(), b.view(), 1.0f}), 0);
      const auto nvfp4 = random_blocks(Format::nvfp4, 5, 96, ScaleOrder::row_major, 0, 126, random);
      expect_right_everywhere({nvfp4.view(), b.view(), 1.0f});
      const auto dense = normal_dense(DenseType::bf16, 5, 96, random);
      expect_right_everywhere({dense.view(), b.view(), 1.0f});
    }
  }
}

// A large block scale on one side and a small one on the other: the product is ordinary.
TEST(CpuGemmExtremes, ExponentsThatCancel) {
  Random random(15);
  for (const int up : {50, 100, 120, 126}) {
    const auto a =
        random_blocks(Format::mxfp4, 3, 64, ScaleOrder::row_major, 127 + up - 2, 127 + up, random);
    const auto b =
        random_blocks(Format::mxfp4, 20, 64, ScaleOrder::row_major, 127 - up, 127 - up + 2, random);
    expect_right_everywhere({a.view(), b.view(), 0.3f});
    const auto b_of_a =
        random_blocks(Format::mxfp4, 20, 64, ScaleOrder::row_major, 127 + up - 2, 127 + up, random);
    const auto a_of_b =
        random_blocks(Format::mxfp4, 3, 64, ScaleOrder::row_major, 127 - up, 127 - up + 2, random);
    expect_right_everywhere({a_of_b.view(), b_of_a.view(), 0.3f});
  }
}

// Zero codes under scales whose product is beyond fp32: 0 * inf must not happen.
TEST(CpuGemmExtremes, ZeroBlocksUnderTheLargestScales) {
  auto a = make_block_tensor(Format::mxfp4, 2, 64).value();
  auto b = make_block_tensor(Format::mxfp4, 17, 64).value();
  for (auto& byte : a.scales) byte = 254;
  for (auto& byte : b.scales) byte = 254;
  on_every_target([&] {
    const auto output = run_gemm({a.view(), b.view(), 1.0f}, OutType::f32);
    EXPECT_TRUE(output_stats(output.view()).all_zeros);
  });
}

// One element of a group far above the others, which meets a zero weight: what is left must still
// be exact.
TEST(CpuGemmExtremes, WideElementsWithinAGroup) {
  for (const auto type : {DenseType::bf16, DenseType::f16}) {
    Random random(16);
    for (const int span : {8, 16, 30, 100}) {
      DenseTensor a(type, 3, 64);
      auto b = ordinary_blocks(Format::nvfp4, 33, 64, ScaleOrder::row_major, random);
      for (std::int64_t i = 0; i < 3 * 64; ++i) {
        const int largest = type == DenseType::f16 ? std::min(span, 30) : span;
        const int exponent = static_cast<int>(random() % static_cast<unsigned>(largest + 1));
        const float sign = random() % 2 ? -1.0f : 1.0f;
        a.set(i / 64, i % 64,
              sign * std::ldexp(1.0f + static_cast<float>(random() % 128) / 128,
                                largest / 2 - exponent));
      }
      for (std::int64_t row = 0; row < b.rows; ++row) {
        for (std::int64_t column = 0; column < 64; ++column) {
          if (std::fabs(a.view().value(0, column)) > 0.5f) {
            auto& byte = b.codes[static_cast<std::size_t>(row * 32 + column / 2)];
            byte &= column % 2 ? 0x0F : 0xF0;
          }
        }
      }
      expect_right_everywhere({a.view(), b.view(), 1.0f});
      auto one = a.view();
      one.rows = 1;
      expect_right_everywhere({one, b.view(), 1.0f});
    }
  }
}

TEST(CpuGemmExtremes, SmallestAndLargestElements) {
  Random random(17);
  for (const std::uint16_t bits : {0x0001, 0x8003, 0x0080, 0x7BFF, 0x7F00, 0x3FFF, 0x7EFF}) {
    for (const auto type : {DenseType::bf16, DenseType::f16}) {
      if (type == DenseType::f16 && (bits & 0x7C00) == 0x7C00) continue;
      DenseTensor a(type, 2, 32);
      for (std::int64_t i = 0; i < 64; ++i) a.set_bits(i / 32, i % 32, 0);
      a.set_bits(0, 3, bits);
      a.set_bits(0, 4, bits);
      a.set_bits(1, 31, bits);
      for (const auto format : {Format::nvfp4, Format::mxfp4}) {
        const auto b = ordinary_blocks(format, 18, 32, ScaleOrder::row_major, random);
        expect_right_everywhere({a.view(), b.view(), 1.0f});
      }
    }
  }
}

TEST(CpuGemmExtremes, InfAndNanInA) {
  Random random(18);
  for (const auto type : {DenseType::bf16, DenseType::f16}) {
    for (const int m : {1, 5}) {
      for (const auto& values : {std::pair{kInf, 0.0f}, std::pair{-kInf, 1.0f},
                                 std::pair{kInf, -kInf}, std::pair{kNan, 1.0f}}) {
        auto a = normal_dense(type, m, 64, random);
        a.set(m - 1, 5, values.first);
        a.set(m - 1, 40, values.second);
        const auto b = ordinary_blocks(Format::nvfp4, 40, 64, ScaleOrder::row_major, random);
        expect_right_everywhere({a.view(), b.view(), 1.0f});
      }
    }
  }
}

TEST(CpuGemmExtremes, SpecialValuesOfAlpha) {
  Random random(19);
  const auto a = ordinary_blocks(Format::nvfp4, 3, 64, ScaleOrder::row_major, random);
  const auto b = ordinary_blocks(Format::nvfp4, 19, 64, ScaleOrder::row_major, random);
  for (const float alpha : {0.0f, -0.0f, -1.0f, kInf, -kInf, kNan, 1e-30f, 1e30f, 3e38f, 1e-44f}) {
    SCOPED_TRACE(alpha);
    expect_right_everywhere({a.view(), b.view(), alpha});
  }
}

TEST(CpuGemmExtremes, OverflowOfTheOutput) {
  Random random(20);
  const auto a = random_blocks(Format::nvfp4, 3, 64, ScaleOrder::row_major, 0x60, 0x7E, random);
  const auto b = random_blocks(Format::nvfp4, 19, 64, ScaleOrder::row_major, 0x60, 0x7E, random);
  for (const float alpha : {0.01f, 0.1f, 1.0f, 1e31f, 1e32f, 1e33f}) {
    SCOPED_TRACE(alpha);
    expect_right_everywhere({a.view(), b.view(), alpha});
  }
}

}  // namespace
}  // namespace nibble::test
