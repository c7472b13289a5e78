// SPDX-License-Identifier: Apache-2.0
// The published bugs that concern checkpoints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>

#include "checkpoint/check_config.h"
#include "unit/checkpoint/sample_weights.h"

namespace nibble {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// scales = row * 16 + column mod 100, [128, 8].
BlockTensor numbered_scales(std::int64_t rows = 128, std::int64_t blocks = 8) {
  auto tensor = make_block_tensor(Format::nvfp4, rows, blocks * 16).value();
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t block = 0; block < blocks; ++block) {
      tensor.scales[static_cast<std::size_t>(row * blocks + block)] =
          static_cast<std::uint8_t>((row * 16 + block) % 100);
    }
  }
  return tensor;
}

SafetensorsBuilder with_scales(const BlockTensor& tensor, const std::vector<std::int64_t>& shape,
                               const char* tiled = nullptr) {
  SafetensorsBuilder builder;
  if (tiled) builder.add_metadata("x.is_swizzled_scales", tiled);
  builder.add("x.weight", "U8", {tensor.rows, tensor.columns / 2},
              codes(tensor.rows, tensor.columns));
  builder.add("x.weight_scale", "F8_E4M3", shape, text_of_scales(tensor.scales));
  builder.add("x.weight_scale_2", "F32", {}, packed(1.0f));
  return builder;
}

TEST(CheckpointBugCases, C6_ScalesOf130x5FillTheirPaddedTiles) {
  const auto plain = numbered_scales(130, 5);
  const auto tiled = relayout(plain.view(), ScaleOrder::tiled_128x4).value();
  ASSERT_EQ(tiled.scales.size(), 256u * 8);
  const auto built = parse(with_scales(tiled, {64, 32}));
  const auto weights = load_block_weights(built->checkpoint, "x");
  ASSERT_TRUE(weights) << weights.error().message;
  EXPECT_EQ(weights->tensor.layout.order, ScaleOrder::tiled_128x4);
  EXPECT_EQ(relayout(weights->tensor.view(), ScaleOrder::row_major)->scales, plain.scales);
}

TEST(CheckpointBugCases, C7_TheLayoutComesFromShapeOrDeclarationNeverFromTheName) {
  const auto plain = numbered_scales();
  const auto tiled = relayout(plain.view(), ScaleOrder::tiled_128x4).value();
  // [128, 8] both ways: only a declaration or the metadata can say that these are tiles.
  const auto as_declared = parse(with_scales(tiled, {128, 8}));
  EXPECT_EQ(load_block_weights(as_declared->checkpoint, "x")->tensor.layout.order,
            ScaleOrder::row_major);
  const auto declared = load_block_weights(as_declared->checkpoint, "x", {ScaleOrder::tiled_128x4});
  ASSERT_TRUE(declared);
  EXPECT_EQ(relayout(declared->tensor.view(), ScaleOrder::row_major)->scales, plain.scales);
  const auto said = parse(with_scales(tiled, {128, 8}, "true"));
  EXPECT_EQ(load_block_weights(said->checkpoint, "x")->tensor.layout.order,
            ScaleOrder::tiled_128x4);
  // A padded shape fits more than one reading.
  const auto padded = relayout(numbered_scales(100, 6).view(), ScaleOrder::tiled_128x4).value();
  EXPECT_THAT(error_of(with_scales(padded, {128, 8}), "x"), HasSubstr("declare their layout"));
  EXPECT_EQ(error_of(with_scales(padded, {128, 8}), "x", {ScaleOrder::tiled_128x4}), "");
  EXPECT_THAT(error_of(with_scales(padded, {128, 8}), "x", {ScaleOrder::tiled_8x4}),
              HasSubstr("take 832 bytes, it has 1024"));
}

// As many bytes as row-major scales take, but not their shape.
TEST(CheckpointBugCases, C7_ADeclarationMustNotContradictShapeOrMetadata) {
  const auto tiled = relayout(numbered_scales().view(), ScaleOrder::tiled_128x4).value();
  EXPECT_EQ(error_of(with_scales(tiled, {32, 32}), "x"), "");
  const auto not_row_major = HasSubstr("it is not row_major");
  EXPECT_THAT(error_of(with_scales(tiled, {32, 32}), "x", {ScaleOrder::row_major}), not_row_major);
  EXPECT_THAT(error_of(with_scales(tiled, {32, 32}, "false"), "x"), not_row_major);
  EXPECT_THAT(error_of(with_scales(tiled, {8, 128}), "x", {ScaleOrder::row_major}), not_row_major);
  EXPECT_EQ(error_of(with_scales(tiled, {1024}), "x", {ScaleOrder::row_major}), "");
  EXPECT_THAT(error_of(with_scales(tiled, {1024}), "x"), HasSubstr("declare their layout"));
  EXPECT_THAT(
      error_of(with_scales(tiled, {128, 8}, "true"), "x", {ScaleOrder::row_major}),
      HasSubstr(
          "'x.weight_scale' is declared row_major, but the file's metadata says tiled_128x4"));
  EXPECT_THAT(error_of(with_scales(tiled, {128, 8}, "true"), "x", {ScaleOrder::tiled_8x4}),
              HasSubstr("is declared tiled_8x4"));
  EXPECT_THAT(error_of(with_scales(tiled, {128, 8}, "perhaps"), "x"),
              HasSubstr("metadata x.is_swizzled_scales is 'perhaps', not true or false"));
}

TEST(CheckpointBugCases, C8_ALayoutIsAppliedOnce) {
  const auto plain = numbered_scales();
  const auto once = relayout(plain.view(), ScaleOrder::tiled_128x4).value();
  // What is in the layout already comes through unchanged; the inverse once gives the scales, twice
  // does not.
  EXPECT_EQ(relayout(once.view(), ScaleOrder::tiled_128x4)->scales, once.scales);
  auto inverse = relayout(once.view(), ScaleOrder::row_major).value();
  EXPECT_EQ(inverse.scales, plain.scales);
  inverse.layout.order = ScaleOrder::tiled_128x4;  // the lie that leads to the second time
  EXPECT_NE(relayout(inverse.view(), ScaleOrder::row_major)->scales, plain.scales);
  // A declaration that contradicts the shape is refused.
  const auto odd = relayout(numbered_scales(130, 5).view(), ScaleOrder::tiled_128x4).value();
  EXPECT_THAT(error_of(with_scales(odd, {64, 32}), "x", {ScaleOrder::row_major}),
              HasSubstr("is F8_E4M3 [64, 32], where row-major scales are [130, 5]"));
}

TEST(CheckpointBugCases, E2_AMissingOrZeroScaleIsSaid) {
  const auto zero = parse(modelopt(4, 32, 0.0f));
  EXPECT_THAT(load_block_weights(zero->checkpoint, "x")->findings,
              ElementsAre(HasSubstr("x.weight_scale_2 is 0")));
  auto builder = modelopt();
  builder.add("x.input_scale", "F32", {}, packed(0.0f));
  const auto zero_input = parse(builder);
  EXPECT_THAT(load_block_weights(zero_input->checkpoint, "x")->findings,
              ElementsAre(HasSubstr("x.input_scale is 0")));
  const auto none = parse(modelopt());
  EXPECT_FALSE(load_block_weights(none->checkpoint, "x")->activation_scale);
}

TEST(CheckpointBugCases, E5_EachOfAFusedPairKeepsItsOwnScale) {
  SafetensorsBuilder builder;
  for (const auto& [module, multiplier] :
       {std::pair{"gate_proj", 1.0f}, std::pair{"up_proj", 0.1f}}) {
    builder.add(std::string(module) + ".weight", "U8", {1, 8}, codes(1, 16));
    builder.add(std::string(module) + ".weight_scale", "F8_E4M3", {1, 1}, "\x38");
    builder.add(std::string(module) + ".weight_scale_2", "F32", {}, packed(multiplier));
  }
  const auto built = parse(builder);
  EXPECT_EQ(load_block_weights(built->checkpoint, "gate_proj")->tensor.tensor_scale.multiplier,
            1.0f);
  EXPECT_EQ(load_block_weights(built->checkpoint, "up_proj")->tensor.tensor_scale.multiplier, 0.1f);
}

TEST(CheckpointBugCases, E7_TwinsOfBothConventionsDecodeAlike) {
  // A power of two, so that multiplier and divisor are each other's exact inverse.
  SafetensorsBuilder divides;
  divides.add("x.weight_packed", "U8", {4, 16}, codes(4, 32));
  divides.add("x.weight_scale", "F8_E4M3", {4, 2}, std::string(8, '\x38'));
  divides.add("x.weight_global_scale", "F32", {1}, packed(2.0f));
  const auto twin = parse(divides), original = parse(modelopt());
  const auto a = load_block_weights(original->checkpoint, "x"),
             b = load_block_weights(twin->checkpoint, "x");
  ASSERT_TRUE(a && b);
  const auto exact = dequantize_exact(a->tensor.view());
  EXPECT_EQ(exact, dequantize_exact(b->tensor.view()));
  EXPECT_EQ(exact, dequantize_as(a->tensor.view(), Convention::modelopt));
  EXPECT_EQ(exact, dequantize_as(b->tensor.view(), Convention::compressed_tensors));
  float largest = 0;
  for (const float value : exact) largest = std::max(largest, std::fabs(value));
  EXPECT_EQ(largest, 3.0f);  // 6 * 1 * 0.5: not a comparison of zeros
}

TEST(CheckpointBugCases, G2_ConfigAndTensorsContradictEachOther) {
  auto builder = modelopt();
  builder.add("y.weight", "BF16", {2, 2}, std::string(8, '\1'));
  builder.add("embed_tokens.weight", "BF16", {2, 2}, std::string(8, '\1'));
  builder.add("norm.weight", "BF16", {4}, std::string(8, '\1'));
  const auto built = parse(builder);
  const auto check = [&](const std::string& config) {
    return check_against_config(built->checkpoint, config, "config.json");
  };
  EXPECT_THAT(*check(R"({"quantization_config":{"ignore":["y"]}})"), IsEmpty());
  EXPECT_THAT(*check(R"({"quantization_config":{"ignore":["re:^y$"]}})"), IsEmpty());
  EXPECT_THAT(*check(R"({"quantization":{"exclude_modules":["y*"]}})"), IsEmpty());
  EXPECT_THAT(*check(R"({"quantization_config":{"ignore":["x","y"]}})"),
              ElementsAre("config.json excludes 'x', but its 4-bit codes 'x.weight' are there"));
  EXPECT_THAT(*check(R"({"quantization_config":{"ignore":[]}})"),
              ElementsAre("config.json does not exclude 'y', but its weight is BF16"));
  EXPECT_THAT(check("{}").error().message, HasSubstr("no object 'quantization_config'"));
  EXPECT_THAT(check(R"({"quantization_config":{"ignore":["re:("]}})").error().message,
              HasSubstr("is no regular expression"));
  EXPECT_THAT(check(R"({"quantization_config":{"ignore":5}})").error().message,
              HasSubstr("'ignore' is no list"));
}

// Found by fuzzing: a pattern that takes a matcher which tracks back exponential time.
TEST(CheckConfig, APatternCannotCostTimeWithoutEnd) {
  SafetensorsBuilder builder;
  builder.add(
      "model.layers.0.mlp.down_proj_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.weight",
      "BF16", {2, 2}, std::string(8, '\1'));
  const auto built = parse(builder);
  const auto found = check_against_config(
      built->checkpoint, R"({"quantization_config":{"ignore":["re:(.*a*)+.ate$","re:((a*)*)*b"]}})",
      "c");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->size(), 1u);
}

TEST(CheckpointBugCases, G2_TheFixturesContradictNothing) {
  for (const char* folder :
       {"modelopt-nvfp4-tiny-moe", "llmcompressor-nvfp4-tiny-llama", "modelopt-nvfp4-zero-layer"}) {
    const std::string path = std::string(NIBBLE_TEST_DATA "/fixtures/") + folder;
    const auto checkpoint = open_checkpoint(path + "/model.safetensors");
    ASSERT_TRUE(checkpoint);
    std::ifstream file(path + "/config.json");
    const std::string config{std::istreambuf_iterator<char>(file), {}};
    const auto found = check_against_config(*checkpoint, config, "config.json");
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_THAT(*found, IsEmpty()) << folder;
  }
}

// FP8 weights and 4-bit ones in one file: each is what its own type, shape and companions say.
TEST(CheckpointBugCases, G3_EachTensorIsDecidedByItself) {
  auto builder = modelopt();
  builder.add("fp8.weight", "F8_E4M3", {4, 32}, std::string(128, '\x38'));
  builder.add("fp8.weight_scale", "F32", {4, 1}, std::string(16, '\1'));
  builder.add("m.weight", "U8", {2, 16}, codes(2, 32));
  builder.add("m.weight_scale", "U8", {2, 1}, "\x7f\x7f");
  const auto built = parse(builder);
  EXPECT_THAT(list_block_weights(built->checkpoint), ElementsAre("m.weight", "x.weight"));
  EXPECT_EQ(load_block_weights(built->checkpoint, "m")->tensor.format, Format::mxfp4);
  EXPECT_EQ(load_block_weights(built->checkpoint, "x")->tensor.format, Format::nvfp4);
  EXPECT_THAT(load_block_weights(built->checkpoint, "fp8").error().message,
              HasSubstr("'fp8.weight' is F8_E4M3 [4, 32]: codes are"));
}

}  // namespace
}  // namespace nibble
