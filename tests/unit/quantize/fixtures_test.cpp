// SPDX-License-Identifier: Apache-2.0
// The producers' rules against what the producers wrote: one real layer and the edge tensors of
// tests/data/fixtures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>

#include "unit/quantize/fixture_file.h"

namespace nibble::test {
namespace {

using testing::HasSubstr;

const char* const kLayer = "encoder.layer.0.attention.self.query";

const Source& layer() {
  static const Source source = FixtureFile("source-minilm-layer0/source.safetensors")
                                   .source(std::string(kLayer) + ".weight");
  return source;
}

void expect_equal(std::string_view rule, const Source& source, const QuantizeOptions& options,
                  const Expected& expected, const std::string& where) {
  const auto got = quantize(rule, source, options);
  ASSERT_TRUE(got.has_value()) << where << ": " << got.error().message;
  EXPECT_EQ(difference(*got, expected), "") << rule << " on " << where;
}

TEST(QuantizeFixtures, ModeloptLayerWithTheScaleSharedByQueryKeyAndValue) {
  const FixtureFile file("modelopt-nvfp4-minilm-layer0/model.safetensors");
  const std::string module = kLayer;
  const float g = file.scalar(module + ".weight_scale_2");
  expect_equal("nvfp4 modelopt", layer(), {.tensor_scale = TensorScale{g, std::nullopt}},
               {.codes = file.bytes(module + ".weight"),
                .scales = file.bytes(module + ".weight_scale"),
                .multiplier = g},
               "query");
}

TEST(QuantizeFixtures, CompressedTensorsNvfp4Layer) {
  for (const std::string folder :
       {"compressed-tensors-nvfp4-w4a4", "compressed-tensors-nvfp4-w4a16"}) {
    const FixtureFile file(folder + "/model.safetensors");
    expect_equal("nvfp4 compressed_tensors", layer(), {.source_is_bf16 = true},
                 {.codes = file.bytes("query.weight_packed"),
                  .scales = file.bytes("query.weight_scale"),
                  .divisor = file.scalar("query.weight_global_scale")},
                 folder);
  }
}

TEST(QuantizeFixtures, CompressedTensorsMxfp4Layer) {
  const FixtureFile file("compressed-tensors-mxfp4-w4a16/model.safetensors");
  const Expected expected{.codes = file.bytes("query.weight_packed"),
                          .scales = file.bytes("query.weight_scale")};
  expect_equal("mxfp4 compressed_tensors", layer(), {.source_is_bf16 = true}, expected, "query");
}

void expect_torchao(const std::string& folder, const Source& source) {
  const FixtureFile file(folder + "/weights.safetensors");
  const auto expected = [&](const std::string& name) {
    return Expected{.codes = file.bytes(name + ".qdata"), .scales = file.bytes(name + ".scale")};
  };
  Expected two_level = expected("nvfp4.two_level.plain");
  two_level.multiplier = file.scalar("nvfp4.two_level.plain.per_tensor_scale");
  expect_equal("nvfp4 torchao", source, {}, two_level, folder);
  expect_equal("nvfp4 torchao", source, {.tensor_scale = TensorScale{1.0f, std::nullopt}},
               expected("nvfp4.one_level.plain"), folder + " one level");
  expect_equal("mxfp4 torchao_floor", source, {}, expected("mxfp4.floor.plain"), folder);
  expect_equal("mxfp4 torchao_rceil", source, {}, expected("mxfp4.rceil.plain"), folder);
}

TEST(QuantizeFixtures, TorchaoLayer) { expect_torchao("torchao-minilm-layer0-query", layer()); }

TEST(QuantizeFixtures, TorchaoCornerOf130x96) {
  expect_torchao("torchao-130x96", corner(layer(), 130, 96));
}

TEST(QuantizeFixtures, TorchaoTiledScalesAreTheRowMajorOnesInTiles) {
  const FixtureFile file("torchao-130x96/weights.safetensors");
  const auto got = quantize("nvfp4 torchao", corner(layer(), 130, 96));
  const auto tiled = relayout(got->tensor.view(), ScaleOrder::tiled_128x4);
  EXPECT_EQ(tiled->scales, file.bytes("nvfp4.two_level.swizzled.scale"));
}

// llama.cpp's MXFP4 blocks: the scale byte, then byte j holds element j (low) and j + 16 (high).
Expected from_gguf_blocks(const std::vector<std::uint8_t>& blocks) {
  Expected expected;
  for (std::size_t block = 0; block + 17 <= blocks.size(); block += 17) {
    expected.scales.push_back(blocks[block]);
    std::uint8_t codes[32];
    for (std::size_t j = 0; j < 16; ++j) {
      codes[j] = blocks[block + 1 + j] & 15;
      codes[j + 16] = blocks[block + 1 + j] >> 4;
    }
    for (std::size_t j = 0; j < 32; j += 2)
      expected.codes.push_back(static_cast<std::uint8_t>(codes[j] | codes[j + 1] << 4));
  }
  return expected;
}

std::string to_gguf_blocks(const BlockTensor& tensor) {
  std::string blocks;
  const BlockTensorView view = tensor.view();
  for (std::int64_t row = 0; row < tensor.rows; ++row) {
    for (std::int64_t block = 0; block < tensor.layout.blocks; ++block) {
      blocks.push_back(static_cast<char>(view.scale(row, block)));
      for (std::int64_t column = 32 * block; column < 32 * block + 16; ++column)
        blocks.push_back(
            static_cast<char>(view.code(row, column) | view.code(row, column + 16) << 4));
    }
  }
  return blocks;
}

TEST(QuantizeFixtures, GgufLayer) {
  std::ifstream file(NIBBLE_TEST_DATA "/fixtures/gguf-minilm-layer0-query/weights.gguf",
                     std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(file), {}};
  std::string blocks = to_gguf_blocks(quantize("mxfp4 gguf", layer())->tensor);
  ASSERT_EQ(blocks.size(), 384u * 12 * 17);
  EXPECT_NE(whole.find(blocks), std::string::npos);
  blocks.back() = static_cast<char>(blocks.back() ^ 1);
  EXPECT_EQ(whole.find(blocks), std::string::npos);
}

bool all_zero(const Source& source) {
  for (const float x : source.x) {
    if (x != 0) return false;
  }
  return true;
}

bool finite(const Source& source) {
  for (const float x : source.x) {
    if (!std::isfinite(x)) return false;
  }
  return true;
}

struct EdgeFile {
  std::string rule, file, codes, scales, multiplier, divisor;
};

void PrintTo(const EdgeFile& edge, std::ostream* out) { *out << edge.rule; }

class QuantizeEdgeFixture : public testing::TestWithParam<EdgeFile> {};

TEST_P(QuantizeEdgeFixture, EveryTensorIsBitEqual) {
  const EdgeFile& edge = GetParam();
  const FixtureFile inputs("edge/inputs.safetensors");
  const FixtureFile file("edge/" + edge.file);
  int compared = 0;
  for (const std::string& name : inputs.names()) {
    if (!file.has(name + edge.codes)) continue;
    const Source source = inputs.source(name);
    if (!finite(source)) {
      EXPECT_FALSE(quantize(edge.rule, source).has_value()) << name;
      continue;
    }
    // ModelOpt writes NaN scales here: docs/formats.md says what is written instead.
    if (edge.rule == "nvfp4 modelopt" && all_zero(source)) continue;
    Expected expected = edge.scales.empty() ? from_gguf_blocks(file.bytes(name + edge.codes))
                                            : Expected{.codes = file.bytes(name + edge.codes),
                                                       .scales = file.bytes(name + edge.scales)};
    if (!edge.multiplier.empty()) expected.multiplier = file.scalar(name + edge.multiplier);
    if (!edge.divisor.empty()) expected.divisor = file.scalar(name + edge.divisor);
    expect_equal(edge.rule, source, {}, expected, name);
    ++compared;
  }
  EXPECT_GE(compared, 8);
}

INSTANTIATE_TEST_SUITE_P(
    Producers, QuantizeEdgeFixture,
    testing::Values(EdgeFile{"nvfp4 modelopt", "modelopt-nvfp4.safetensors", ".weight",
                             ".weight_scale", ".weight_scale_2", ""},
                    EdgeFile{"nvfp4 compressed_tensors", "compressed-tensors-nvfp4.safetensors",
                             ".weight_packed", ".weight_scale", "", ".weight_global_scale"},
                    EdgeFile{"mxfp4 modelopt", "modelopt-mxfp4.safetensors", ".weight",
                             ".weight_scale", "", ""},
                    EdgeFile{"mxfp4 compressed_tensors", "compressed-tensors-mxfp4.safetensors",
                             ".weight_packed", ".weight_scale", "", ""},
                    EdgeFile{"mxfp4 gguf", "gguf-mxfp4.safetensors", ".blocks", "", "", ""}),
    [](const testing::TestParamInfo<EdgeFile>& info) {
      std::string name = info.param.rule;
      name[5] = '_';
      return name;
    });

TEST(QuantizeFixtures, OneChangedByteIsSeen) {
  const FixtureFile file("compressed-tensors-nvfp4-w4a16/model.safetensors");
  const Expected right{.codes = file.bytes("query.weight_packed"),
                       .scales = file.bytes("query.weight_scale"),
                       .divisor = file.scalar("query.weight_global_scale")};
  const auto got = quantize("nvfp4 compressed_tensors", layer(), {.source_is_bf16 = true});
  ASSERT_EQ(difference(*got, right), "");
  Expected code = right;
  code.codes[192 * 7 + 5] ^= 0x80;
  EXPECT_THAT(difference(*got, code), HasSubstr("code byte 5 of row 7"));
  Expected scale = right;
  scale.scales.back() ^= 1;
  EXPECT_THAT(difference(*got, scale), HasSubstr("scale byte 23 of row 383"));
  Expected divisor = right;
  divisor.divisor = std::nextafter(*right.divisor, 0.0f);
  EXPECT_THAT(difference(*got, divisor), HasSubstr("divisor"));
  Expected shorter = right;
  shorter.codes.pop_back();
  EXPECT_THAT(difference(*got, shorter), HasSubstr("code bytes, expected"));
}

}  // namespace
}  // namespace nibble::test
