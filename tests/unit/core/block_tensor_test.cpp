// SPDX-License-Identifier: Apache-2.0
// Sizes that contradict each other are refused in words; relayout moves every scale and zeroes the
// pads.
#include "core/block_tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "core/gemm_operands.h"

namespace nibble {
namespace {

using testing::HasSubstr;

BlockTensor numbered(std::int64_t rows, std::int64_t blocks) {
  auto tensor = make_block_tensor(Format::nvfp4, rows, blocks * 16).value();
  for (std::size_t i = 0; i < tensor.scales.size(); ++i)
    tensor.scales[i] = static_cast<std::uint8_t>(1 + i % 100);
  for (std::size_t i = 0; i < tensor.codes.size(); ++i)
    tensor.codes[i] = static_cast<std::uint8_t>(i * 7);
  return tensor;
}

TEST(BlockTensor, RefusesSizesInWords) {
  EXPECT_THAT(make_block_tensor(Format::nvfp4, -1, 16).error().message, HasSubstr("negative"));
  EXPECT_THAT(make_block_tensor(Format::nvfp4, 1, 24).error().message,
              HasSubstr("multiple of the nvfp4 block, 16"));
  EXPECT_THAT(make_block_tensor(Format::mxfp4, 1, 48).error().message, HasSubstr("32"));
  const std::int64_t huge = std::int64_t{1} << 40;
  EXPECT_THAT(make_block_tensor(Format::nvfp4, huge, huge).error().message, HasSubstr("too large"));
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_THAT(make_block_tensor(Format::nvfp4, most, most / 16 * 16).error().message,
              HasSubstr("too large"));
}

TEST(BlockTensor, CheckNamesWhatContradicts) {
  const auto tensor = numbered(5, 3);
  ASSERT_TRUE(check(tensor.view()));
  auto view = tensor.view();
  view.codes = view.codes.first(view.codes.size() - 1);
  EXPECT_THAT(check(view).error().message, HasSubstr("codes have 119 bytes, need 120"));
  view = tensor.view();
  view.scales = view.scales.first(14);
  EXPECT_THAT(check(view).error().message, HasSubstr("scales have 14 bytes, need 15"));
  view = tensor.view();
  view.layout.order = ScaleOrder::tiled_128x4;
  EXPECT_THAT(check(view).error().message, HasSubstr("tiled_128x4 scales have 15 bytes, need 512"));
  view = tensor.view();
  view.code_stride_bytes = 23;
  EXPECT_THAT(check(view).error().message, HasSubstr("code_stride_bytes 23"));
  view = tensor.view();
  view.code_stride_bytes = std::numeric_limits<std::int64_t>::max();
  EXPECT_THAT(check(view).error().message, HasSubstr("code_stride_bytes"));
  view = tensor.view();
  view.layout.blocks = 4;
  EXPECT_THAT(check(view).error().message, HasSubstr("5x4 scales, not 5x3"));
}

TEST(BlockTensor, RelayoutKeepsEveryScaleAndZeroesPads) {
  const auto tensor = numbered(130, 5);
  for (const auto order : {ScaleOrder::tiled_128x4, ScaleOrder::tiled_8x4}) {
    const auto tiled = relayout(tensor.view(), order).value();
    std::int64_t zero_bytes = 0;
    for (const auto byte : tiled.scales) zero_bytes += byte == 0;
    EXPECT_EQ(zero_bytes, tiled.layout.bytes() - 130 * 5);
    const auto back = relayout(tiled.view(), ScaleOrder::row_major).value();
    EXPECT_EQ(back.scales, tensor.scales);
    EXPECT_EQ(back.codes, tensor.codes);
  }
}

TEST(BlockTensor, RelayoutHonoursTheCodeStride) {
  auto tensor = numbered(3, 2);
  std::vector<std::uint8_t> strided(3 * 20, 0xEE);
  for (int row = 0; row < 3; ++row) std::memcpy(&strided[row * 20], &tensor.codes[row * 16], 16);
  auto view = tensor.view();
  view.codes = strided;
  view.code_stride_bytes = 20;
  EXPECT_EQ(view.code(2, 31), tensor.view().code(2, 31));
  EXPECT_EQ(relayout(view, ScaleOrder::row_major)->codes, tensor.codes);
}

TEST(GemmInputs, RefusesOperandsThatDoNotMeet) {
  const auto b = numbered(4, 2);
  const auto a = numbered(3, 3);
  EXPECT_THAT(check(GemmInputs{a.view(), b.view(), 1.0f}).error().message,
              HasSubstr("A has k=48, B has k=32"));
  const std::vector<std::byte> bytes(3 * 64 - 1);
  const DenseTensorView dense{DenseType::bf16, 3, 32, 64, bytes};
  EXPECT_THAT(check(GemmInputs{dense, b.view(), 1.0f}).error().message,
              HasSubstr("A: dense tensor 3x32: has 191 bytes"));
  const Q8TensorView q8{3, 48, bytes};
  EXPECT_THAT(check(GemmInputs{q8, b.view(), 1.0f}).error().message, HasSubstr("multiple of 32"));
}

TEST(Operands, DenseAndQ8ValuesAreExact) {
  std::vector<std::byte> block(34);
  const std::uint16_t half = f16_encode(0.5f);
  std::memcpy(block.data(), &half, 2);
  block[2] = std::byte{0x80};  // -128
  block[33] = std::byte{0x03};
  const Q8TensorView q8{1, 32, block};
  EXPECT_EQ(q8.value(0, 0), -64.0f);
  EXPECT_EQ(q8.value(0, 31), 1.5f);
  const std::uint16_t pair[] = {bf16_encode(3.0f), bf16_encode(-0.25f)};
  const DenseTensorView dense{DenseType::bf16, 1, 2, 4, std::as_bytes(std::span(pair))};
  EXPECT_EQ(dense.value(0, 1), -0.25f);
  const OutputView out{OutType::bf16, 1, 2, 4, std::as_bytes(std::span(pair))};
  EXPECT_EQ(out.bits(0, 0), pair[0]);
  EXPECT_EQ(out.value(0, 0), 3.0f);
}

TEST(EnumNames, BothDirections) {
  EXPECT_EQ(name(ScaleOrder::tiled_8x4), "tiled_8x4");
  EXPECT_EQ(parse_enum<Activation>("q8_0"), Activation::q8_0);
  EXPECT_FALSE(parse_enum<Format>("fp4"));
  EXPECT_EQ(all_names<OutType>(), "bf16, f16, f32");
}

}  // namespace
}  // namespace nibble
