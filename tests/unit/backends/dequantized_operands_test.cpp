// SPDX-License-Identifier: Apache-2.0
// Dequantized values against the definition, by hand; the launch checks must object.
#include "backends/dequantized_operands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "backends/arguments.h"
#include "core/e2m1.h"

namespace nibble {
namespace {

using testing::HasSubstr;

BlockTensor one_block(Format format, std::uint8_t scale) {
  auto tensor = make_block_tensor(format, 1, block_size(format)).value();
  tensor.scales[0] = scale;
  for (int i = 0; i < block_size(format) / 2; ++i) {
    tensor.codes[static_cast<std::size_t>(i)] =
        pack_codes(static_cast<std::uint8_t>(2 * i), static_cast<std::uint8_t>(2 * i + 1));
  }
  return tensor;
}

TEST(Dequantize, EveryCodeTimesItsScale) {
  constexpr float kMagnitudes[] = {0, .5f, 1, 1.5f, 2, 3, 4, 6};
  std::vector<float> values(16);
  dequantize_f32(one_block(Format::nvfp4, 0x7E).view(), values);  // 448
  for (int code = 0; code < 16; ++code) {
    EXPECT_EQ(values[static_cast<std::size_t>(code)],
              (code & 8 ? -448 : 448) * kMagnitudes[code & 7])
        << code;
  }
  std::vector<std::uint16_t> narrow(16);
  dequantize_bf16(one_block(Format::nvfp4, 0x0F).view(), narrow);  // 15 * 2^-9
  for (int code = 0; code < 16; ++code) {
    EXPECT_EQ(bf16_value(narrow[static_cast<std::size_t>(code)]),
              std::ldexp((code & 8 ? -15 : 15) * kMagnitudes[code & 7], -9));
  }
}

TEST(Dequantize, EveryBlockFormatValueIsExactInBf16) {
  for (int byte = 0; byte < 127; ++byte) {
    for (int code = 0; code < 16; ++code) {
      const float value =
          e2m1_value(static_cast<std::uint8_t>(code)) * e4m3_scale(static_cast<std::uint8_t>(byte));
      EXPECT_EQ(bf16_value(bf16_encode(value)), value);
    }
  }
}

TEST(Dequantize, NanScaleAndSignBit) {
  std::vector<float> values(32);
  dequantize_f32(one_block(Format::mxfp4, 0xFF).view(), values);
  EXPECT_TRUE(std::isnan(values[1]));
  dequantize_f32(one_block(Format::nvfp4, 0xFF).view(), values);
  EXPECT_TRUE(std::isnan(values[1]));
  dequantize_f32(one_block(Format::nvfp4, 0xB8).view(), values);  // -1 as a number, 1 as a scale
  EXPECT_EQ(values[2], 1.0f);
}

TEST(StoreScaled, RoundsOnceAndKeepsTheStride) {
  const float sums[] = {1.0f, 3.0f, -2.0f, 5.0f};
  const float alpha = 1.00390625f;  // 1 + 2^-8: the tie between two bf16
  std::vector<std::byte> output(2 * 8, std::byte{0xEE});
  GemmArguments arguments;
  arguments.alpha = &alpha;
  arguments.out_row_stride_bytes = 8;
  arguments.output = output;
  store_scaled(sums, {2, 2, 16}, arguments);
  const OutputView view{OutType::bf16, 2, 2, 8, output};
  EXPECT_EQ(view.value(0, 0), 1.0f);
  EXPECT_EQ(view.value(0, 1), 3.015625f);
  EXPECT_EQ(view.value(1, 0), -2.0f);
  EXPECT_EQ(output[4], std::byte{0xEE});
  arguments.alpha = nullptr;
  store_scaled(sums, {2, 2, 16}, arguments);
  EXPECT_EQ(view.value(1, 1), 5.0f);
}

class LaunchChecks : public testing::Test {
 protected:
  LaunchChecks() {
    problem.shape = {3, 4, 16};
    arguments.a = a.view();
    arguments.out_row_stride_bytes = 8;
    arguments.output = output;
    arguments.workspace = workspace;
  }
  std::string refusal(std::int64_t workspace_bytes = 10) {
    const auto status = check_arguments(problem, arguments, workspace_bytes);
    return status ? "" : status.error().message;
  }

  GemmProblem problem;
  BlockTensor a = make_block_tensor(Format::nvfp4, 3, 16).value();
  BlockTensor other = make_block_tensor(Format::nvfp4, 4, 16).value();
  std::vector<std::byte> output = std::vector<std::byte>(24),
                         workspace = std::vector<std::byte>(10);
  GemmArguments arguments;
};

TEST_F(LaunchChecks, AcceptWhatFits) { EXPECT_EQ(refusal(), ""); }

TEST_F(LaunchChecks, NameWhatDoesNot) {
  EXPECT_THAT(refusal(11), HasSubstr("workspace has 10 bytes, needs 11"));
  arguments.output = arguments.output.first(23);
  EXPECT_THAT(refusal(), HasSubstr("output has 23 bytes"));
  arguments.output = output;
  arguments.out_row_stride_bytes = 7;
  EXPECT_THAT(refusal(), HasSubstr("out_row_stride_bytes 7"));
  arguments.out_row_stride_bytes = std::int64_t{1} << 62;
  EXPECT_THAT(refusal(), HasSubstr("too few"));
  arguments.out_row_stride_bytes = 8;
  arguments.out = OutType::f32;
  EXPECT_THAT(refusal(), HasSubstr("output type f32, prepared for bf16"));
  arguments.out = OutType::bf16;
  arguments.a = other.view();
  EXPECT_THAT(refusal(), HasSubstr("A is 4x16, prepared for m=3 k=16"));
  arguments.a = DenseTensorView{DenseType::bf16, 3, 16, 32, {}};
  EXPECT_THAT(refusal(), HasSubstr("A is not nvfp4"));
}

TEST_F(LaunchChecks, WeightsMustBeThoseOfTheProblem) {
  EXPECT_TRUE(check_weights(problem, other.view()));
  EXPECT_THAT(check_weights(problem, a.view()).error().message,
              HasSubstr("B is nvfp4 3x16, prepared for nvfp4 4x16"));
}

TEST(WorkspaceCutter, CutsAlignedPiecesFromAnyStart) {
  const std::int64_t bytes =
      WorkspaceCutter::bytes<float>(5) + WorkspaceCutter::bytes<std::uint16_t>(7);
  std::vector<std::byte> memory(static_cast<std::size_t>(bytes) + 64);
  for (std::size_t shift = 0; shift < 64; ++shift) {
    const std::span<std::byte> all = memory;
    WorkspaceCutter cutter(all.subspan(shift, static_cast<std::size_t>(bytes)));
    const auto first = cutter.cut<float>(5);
    const auto second = cutter.cut<std::uint16_t>(7);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first.data()) % 64, 0u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(second.data()) % 64, 0u);
    EXPECT_GE(static_cast<const void*>(second.data()), static_cast<const void*>(first.data() + 5));
    EXPECT_LE(reinterpret_cast<std::byte*>(second.data() + 7), memory.data() + shift + bytes);
  }
}

TEST(Contract, TheFirstBrokenClauseIsSaidInWords) {
  Contract contract;
  contract.activations = {Activation::nvfp4, Activation::bf16, Activation::mxfp4};
  contract.formats = {Format::nvfp4};
  contract.outs = {OutType::f32};
  contract.a_scales = contract.b_scales = {ScaleOrder::row_major};
  contract.n_multiple = 8;
  const auto refusal = [&](GemmProblem problem) {
    const auto support = check_contract(contract, problem);
    const auto* no = std::get_if<Unsupported>(&support);
    return no ? no->why : "";
  };
  const GemmProblem fits{{1, 8, 16}, Activation::nvfp4, Format::nvfp4, OutType::f32};
  auto problem = fits;
  EXPECT_EQ(refusal(problem), "");
  problem.a = Activation::f16;
  EXPECT_EQ(refusal(problem), "A f16 is not offered (offered: nvfp4, bf16, mxfp4)");
  problem = fits;
  problem.b = Format::mxfp4;
  EXPECT_THAT(refusal(problem), HasSubstr("B mxfp4"));
  problem = fits;
  problem.out = OutType::bf16;
  EXPECT_THAT(refusal(problem), HasSubstr("output bf16"));
  problem = fits;
  problem.a_scales = ScaleOrder::tiled_8x4;
  EXPECT_THAT(refusal(problem), HasSubstr("scale layout of A tiled_8x4"));
  problem.a = Activation::bf16;  // has no block scales, so their layout means nothing
  EXPECT_EQ(refusal(problem), "");
  problem = fits;
  problem.shape.n = 12;
  EXPECT_EQ(refusal(problem), "n=12 is not a multiple of 8");
  problem = fits;
  problem.shape.k = 24;
  EXPECT_EQ(refusal(problem), "k=24 is not a multiple of 16");
  problem.a = Activation::mxfp4;
  problem.shape.k = 48;
  EXPECT_EQ(refusal(problem), "k=48 is not a multiple of 32");
  problem = fits;
  problem.groups = 2;
  EXPECT_THAT(refusal(problem), HasSubstr("groups=2"));
}

}  // namespace
}  // namespace nibble
