// SPDX-License-Identifier: Apache-2.0
// The CPU GEMM against the exact product, on every instruction set of this CPU.
#include <fmt/format.h>

#include "cpu_operands.h"

namespace nibble::test {
namespace {

constexpr Format kFormats[] = {Format::nvfp4, Format::mxfp4};
constexpr OutType kOuts[] = {OutType::bf16, OutType::f16, OutType::f32};
constexpr ScaleOrder kOrders[] = {ScaleOrder::row_major, ScaleOrder::tiled_128x4,
                                  ScaleOrder::tiled_8x4};

void expect_right_everywhere(const GemmInputs& inputs) {
  for (const auto out : kOuts) {
    const auto& [m, n, k] = shape_of(inputs);
    SCOPED_TRACE(fmt::format("{}x{}x{} {} -> {}", m, n, k, name(inputs.b.format), name(out)));
    on_every_target([&] { expect_right(inputs, out); });
  }
}

// Every kind of A in turn.
template <class Test>
void with_each_a(std::int64_t m, std::int64_t k, ScaleOrder order, Random& random, Test test) {
  for (const auto format : kFormats) {
    if (k % block_size(format) != 0) continue;
    const auto a = ordinary_blocks(format, m, k, order, random);
    SCOPED_TRACE(name(format));
    test(ActivationView(a.view()));
  }
  for (const auto type : {DenseType::bf16, DenseType::f16}) {
    const auto a = normal_dense(type, m, k, random);
    SCOPED_TRACE(type == DenseType::bf16 ? "bf16" : "f16");
    test(ActivationView(a.view()));
  }
}

TEST(CpuGemm, IsRightOnEveryKindAndTail) {
  Random random(1);
  for (const auto& shape :
       {GemmShape{1, 1, 32}, GemmShape{1, 16, 64}, GemmShape{1, 130, 96}, GemmShape{2, 7, 48},
        GemmShape{5, 31, 160}, GemmShape{17, 33, 80}, GemmShape{33, 130, 224}}) {
    with_each_a(shape.m, shape.k, ScaleOrder::row_major, random, [&](const ActivationView& a) {
      for (const auto format : kFormats) {
        if (shape.k % block_size(format) != 0) continue;
        const auto b = ordinary_blocks(format, shape.n, shape.k, ScaleOrder::row_major, random);
        expect_right_everywhere({a, b.view(), 0.37f});
      }
    });
  }
}

TEST(CpuGemm, EveryResidueOfK) {
  Random random(2);
  for (std::int64_t k = 16; k <= 16 * 52; k += 16) {  // across the groups decoded at once
    for (const auto m : {1, 6}) {
      const auto b = ordinary_blocks(Format::nvfp4, 18, k, ScaleOrder::row_major, random);
      with_each_a(m, k, ScaleOrder::row_major, random, [&](const ActivationView& a) {
        SCOPED_TRACE(k);
        expect_right({a, b.view(), 1.7f}, OutType::f32);
      });
    }
  }
}

TEST(CpuGemm, EveryScaleLayoutWithPoisonedPads) {
  Random random(3);
  for (const auto order : kOrders) {
    for (const auto format : kFormats) {
      const auto b = ordinary_blocks(format, 140, 32 * 11, order, random);
      with_each_a(9, 32 * 11, order, random, [&](const ActivationView& a) {
        SCOPED_TRACE(name(order));
        expect_right({a, b.view(), 1.0f}, OutType::f32);
      });
    }
  }
}

TEST(CpuGemm, EmptyProblems) {
  Random random(4);
  for (const auto& shape : {GemmShape{0, 16, 64}, GemmShape{4, 0, 64}, GemmShape{3, 5, 0}}) {
    const auto b = ordinary_blocks(Format::nvfp4, shape.n, shape.k, ScaleOrder::row_major, random);
    with_each_a(shape.m, shape.k, ScaleOrder::row_major, random, [&](const ActivationView& a) {
      expect_right_everywhere({a, b.view(), 2.0f});
    });
  }
}

// As the experiment `random` judges it: normal activations, noise counted.
TEST(CpuGemm, NoiseIsThatOfHonestFp32) {
  Random random(5);
  for (const auto format : kFormats) {
    const auto b = ordinary_blocks(format, 256, 6144, ScaleOrder::row_major, random);
    for (const auto m : {1, 8}) {
      with_each_a(m, 6144, ScaleOrder::row_major, random, [&](const ActivationView& a) {
        for (const auto out : kOuts) {
          expect_right({a, b.view(), 0.0371f}, out, {.judge_noise = true});
        }
      });
    }
  }
}

TEST(CpuGemm, ThreadsChangeNoBit) {
  Random random(6);
  for (const auto m : {1, 70}) {
    const auto b = ordinary_blocks(Format::nvfp4, 530, 1056, ScaleOrder::row_major, random);
    with_each_a(m, 1056, ScaleOrder::row_major, random, [&](const ActivationView& a) {
      const GemmInputs inputs{a, b.view(), 0.77f};
      const auto one = run_gemm(inputs, OutType::f32, 1);
      for (const int threads : {2, 7, 0}) {
        EXPECT_EQ(run_gemm(inputs, OutType::f32, threads).bytes, one.bytes) << threads;
      }
    });
  }
}

TEST(CpuGemm, OneRowAndManyGiveTheSameBits) {
  Random random(7);
  const auto b = ordinary_blocks(Format::mxfp4, 48, 2080, ScaleOrder::row_major, random);
  const auto a = normal_dense(DenseType::f16, 300, 2080, random);
  const auto all = run_gemm({a.view(), b.view(), 1.0f}, OutType::f32);
  for (const std::int64_t row : {0, 255, 256, 299}) {
    auto one = a.view();
    one.rows = 1;
    one.data = one.data.subspan(static_cast<std::size_t>(row * a.stride));
    const auto alone = run_gemm({one, b.view(), 1.0f}, OutType::f32);
    EXPECT_EQ(std::memcmp(alone.bytes.data(), all.bytes.data() + row * all.stride, 48 * 4), 0);
  }
}

TEST(CpuGemm, MoreRowsThanABatch) {
  Random random(8);
  const auto a = ordinary_blocks(Format::nvfp4, 1027, 64, ScaleOrder::row_major, random);
  const auto b = ordinary_blocks(Format::nvfp4, 40, 64, ScaleOrder::row_major, random);
  expect_right({a.view(), b.view(), 0.9f}, OutType::f32);
}

// Powers of two as scales, small sums: every partial sum is exact in fp32, and so must be D.
TEST(CpuGemm, IntegerValuedCasesAreBitEqual) {
  Random random(9);
  for (const auto format : kFormats) {
    const int one = format == Format::nvfp4 ? 0x38 : 127;
    const auto a = random_blocks(format, 5, 384, ScaleOrder::row_major, one, one, random);
    const auto b = random_blocks(format, 50, 384, ScaleOrder::row_major, one, one, random);
    DenseTensor dense(DenseType::bf16, 5, 384);
    for (int i = 0; i < 5 * 384; ++i) {
      dense.set(i / 384, i % 384, static_cast<float>(static_cast<int>(random() % 129) - 64));
    }
    for (const auto out : kOuts) {
      on_every_target([&] {
        const ComparisonPolicy exact{.accept = AccumulationClass::exact};
        expect_right({a.view(), b.view(), 0.5f}, out, exact);
        expect_right({dense.view(), b.view(), 2.0f}, out, exact);
      });
    }
  }
}

}  // namespace
}  // namespace nibble::test
