// SPDX-License-Identifier: Apache-2.0
// How the parts of one weight are found, and what is refused.
#include "checkpoint/block_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "unit/checkpoint/sample_weights.h"

namespace nibble {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(BlockWeights, AreFoundByCodesOrModule) {
  const auto built = parse(modelopt());
  for (const char* name : {"x", "x.weight"}) {
    const auto weights = load_block_weights(built->checkpoint, name);
    ASSERT_TRUE(weights) << weights.error().message;
    EXPECT_THAT(weights->used, ElementsAre("x.weight", "x.weight_scale", "x.weight_scale_2"));
    EXPECT_EQ(weights->tensor.tensor_scale.multiplier, 0.5f);
    EXPECT_FALSE(weights->tensor.tensor_scale.divisor);
    EXPECT_THAT(weights->findings, IsEmpty());
  }
  EXPECT_THAT(list_block_weights(built->checkpoint), ElementsAre("x.weight"));
}

TEST(BlockWeights, ADivisorIsKeptBesideItsMultiplier) {
  SafetensorsBuilder builder;
  builder.add("x.weight_packed", "U8", {1, 8}, codes(1, 16));
  builder.add("x.weight_scale", "F8_E4M3", {1, 1}, "\x38");
  builder.add("x.weight_global_scale", "F32", {1}, packed(3.0f));
  builder.add("x.input_global_scale", "F32", {1}, packed(4.0f));
  const auto built = parse(builder);
  const auto weights = load_block_weights(built->checkpoint, "x");
  ASSERT_TRUE(weights) << weights.error().message;
  EXPECT_EQ(weights->tensor.tensor_scale.multiplier, 1.0f / 3.0f);
  EXPECT_EQ(weights->tensor.tensor_scale.divisor, 3.0f);
  EXPECT_EQ(weights->activation_scale, 0.25f);
}

TEST(BlockWeights, MissingCompanionsAreNamed) {
  SafetensorsBuilder no_scale;
  no_scale.add("x.weight_packed", "U8", {1, 8}, codes(1, 16));
  EXPECT_THAT(
      error_of(no_scale, "x"),
      HasSubstr("'x.weight_packed' is there, but no block scales beside it ('x.weight_scale')"));
  EXPECT_THAT(error_of(no_scale, "x.weight_packed"),
              HasSubstr("'x.weight_packed' has no block scales beside it ('x.weight_scale')"));
  SafetensorsBuilder no_codes;
  no_codes.add("x.weight_scale", "F8_E4M3", {1, 1}, "\x38");
  EXPECT_THAT(error_of(no_codes, "x"),
              HasSubstr("'x.weight_scale' is there, but no codes beside it"));
  SafetensorsBuilder no_tensor_scale;
  no_tensor_scale.add("x.weight", "U8", {1, 8}, codes(1, 16));
  no_tensor_scale.add("x.weight_scale", "F8_E4M3", {1, 1}, "\x38");
  EXPECT_THAT(error_of(no_tensor_scale, "x"),
              HasSubstr("no tensor scale beside it ('x.weight_scale_2')"));
  EXPECT_THAT(error_of(modelopt(), "y"), HasSubstr("f.st: no tensor 'y' among 3"));
  EXPECT_THAT(error_of(modelopt(), "x.weight_scale_2"), HasSubstr("no 4-bit codes"));
}

TEST(BlockWeights, TypesAndSizesMustAgree) {
  const auto with = [](const std::string& codes_type, const std::vector<std::int64_t>& codes_shape,
                       const std::string& scale_type, const std::vector<std::int64_t>& scale_shape,
                       const std::string& tensor_scale_type = "F32") {
    const auto bytes = [](const std::string& type, const std::vector<std::int64_t>& shape) {
      std::int64_t count = 1;
      for (const auto size : shape) count *= size;
      const std::int64_t each = type == "F32" ? 4 : type == "BF16" ? 2 : 1;
      return std::string(static_cast<std::size_t>(type == "F4" ? count / 2 : count * each), '\1');
    };
    SafetensorsBuilder builder;
    builder.add("x.weight", codes_type, codes_shape, bytes(codes_type, codes_shape));
    builder.add("x.weight_scale", scale_type, scale_shape, bytes(scale_type, scale_shape));
    builder.add("x.weight_scale_2", tensor_scale_type, {}, bytes(tensor_scale_type, {}));
    return error_of(builder, "x");
  };
  EXPECT_EQ(with("U8", {4, 16}, "F8_E4M3", {4, 2}), "");
  EXPECT_EQ(with("F4", {4, 32}, "F8_E4M3", {4, 2}), "");
  EXPECT_THAT(with("U8", {4, 16}, "U8", {4, 1}),
              HasSubstr("mxfp4, which knows no tensor scale, but 'x.weight_scale_2' is there"));
  EXPECT_THAT(with("BF16", {4, 32}, "F8_E4M3", {4, 2}),
              HasSubstr("'x.weight' is BF16 [4, 32]: codes are"));
  EXPECT_THAT(with("U8", {2, 4, 16}, "F8_E4M3", {4, 2}), HasSubstr("codes are U8 [rows, k / 2]"));
  EXPECT_THAT(with("U8", {4, 12}, "F8_E4M3", {4, 2}),
              HasSubstr("k=24, no multiple of the nvfp4 block 16"));
  EXPECT_THAT(with("U8", {4, 8}, "U8", {4, 1}),
              HasSubstr("k=16, no multiple of the mxfp4 block 32"));
  EXPECT_THAT(with("U8", {4, 16}, "F32", {4, 2}), HasSubstr("block scales are F8_E4M3"));
  EXPECT_THAT(with("U8", {4, 16}, "F8_E4M3", {4, 3}),
              HasSubstr("declare their layout (--scales row_major, tiled_128x4, tiled_8x4)"));
  EXPECT_THAT(with("U8", {4, 16}, "F8_E4M3", {4, 2}, "BF16"),
              HasSubstr("'x.weight_scale_2' is BF16 []: it must be one F32"));
}

// Found by fuzzing: 2^60 rows of no columns pass every check of sizes.
TEST(BlockWeights, AWeightWithoutElementsIsRefused) {
  GgufBuilder builder;
  builder.add_tensor("w", {0, std::uint64_t{1} << 60}, 40, "");
  const auto file = builder.build();
  const auto checkpoint = parse_gguf(bytes_of(file), "f.gguf");
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  EXPECT_THAT(load_block_weights(*checkpoint, "w").error().message, HasSubstr("no elements"));
  SafetensorsBuilder empty;
  empty.add("x.weight", "U8", {std::int64_t{1} << 50, 0}, "");
  empty.add("x.weight_scale", "F8_E4M3", {std::int64_t{1} << 50, 0}, "");
  empty.add("x.weight_scale_2", "F32", {}, packed(1.0f));
  EXPECT_THAT(error_of(empty, "x"), HasSubstr("no elements"));
}

TEST(BlockWeights, DoubtfulScalesAreFindings) {
  SafetensorsBuilder builder;
  builder.add("x.weight", "U8", {3, 16}, codes(3, 32));
  builder.add("x.weight_scale", "F8_E4M3", {3, 2}, std::string("\x38\x38\x38\x7f\x00\xff", 6));
  builder.add("x.weight_scale_2", "F32", {}, packed(std::numeric_limits<float>::quiet_NaN()));
  const auto built = parse(builder);
  const auto weights = load_block_weights(built->checkpoint, "x");
  ASSERT_TRUE(weights) << weights.error().message;
  EXPECT_EQ(weights->nan_scales.count, 2);
  EXPECT_EQ(weights->nan_scales.first_row, 1);
  EXPECT_EQ(weights->nan_scales.first_block, 1);
  EXPECT_EQ(weights->zero_scales.count, 1);
  EXPECT_THAT(weights->findings,
              ElementsAre(HasSubstr("x.weight_scale_2 is nan"),
                          HasSubstr("2 NaN block scales, first at row 1 block 1"),
                          HasSubstr("1 zero block scales, first at row 2 block 0")));
}

// torch's float8_e4m3fn has a sign, which the producers' multiplications keep; FP4 units have none.
TEST(BlockWeights, NegativeScalesAreFindings) {
  SafetensorsBuilder builder;
  builder.add("x.weight", "U8", {1, 16}, std::string(16, '\x22'));
  builder.add("x.weight_scale", "F8_E4M3", {1, 2}, "\x38\xb8");
  builder.add("x.weight_scale_2", "F32", {}, packed(0.5f));
  const auto built = parse(builder);
  const auto weights = load_block_weights(built->checkpoint, "x");
  ASSERT_TRUE(weights) << weights.error().message;
  EXPECT_EQ(weights->negative_scales.count, 1);
  EXPECT_THAT(weights->findings,
              ElementsAre(HasSubstr("1 negative block scales, first at row 0 block 1")));
  const auto view = weights->tensor.view();
  EXPECT_EQ(dequantize_as(view, Convention::modelopt)[16], -0.5f);
  EXPECT_EQ(dequantize_as(view, Convention::gguf)[16], 1.0f);
  EXPECT_EQ(dequantize_exact(view)[16], 0.5f);
}

TEST(BlockWeights, AModuleWithCodesOfTwoConventionsMustBeNamedByItsCodes) {
  auto builder = modelopt(1, 16);
  builder.add("x.weight_packed", "U8", {1, 8}, codes(1, 16));
  builder.add("x.weight_global_scale", "F32", {1}, packed(2.0f));
  EXPECT_THAT(error_of(builder, "x"),
              HasSubstr("'x' may mean x.weight_packed or x.weight: name one of them"));
  const auto built = parse(builder);
  EXPECT_EQ(load_block_weights(built->checkpoint, "x.weight")->convention, Convention::modelopt);
  EXPECT_EQ(load_block_weights(built->checkpoint, "x.weight_packed")->convention,
            Convention::compressed_tensors);
}

}  // namespace
}  // namespace nibble
