// SPDX-License-Identifier: Apache-2.0
// Every tensor of the fixtures decodes, in its producer's order of rounding, to what the producer's
// library gave: bit for bit, but that any NaN is a NaN.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "checkpoint/block_weights.h"
#include "support/checkpoint_builder.h"

namespace nibble {
namespace {

std::string path_of(const std::string& file) { return NIBBLE_TEST_DATA "/fixtures/" + file; }

Checkpoint open(const std::string& file) {
  auto checkpoint = open_checkpoint(path_of(file));
  EXPECT_TRUE(checkpoint) << (checkpoint ? "" : checkpoint.error().message);
  return checkpoint ? std::move(*checkpoint) : Checkpoint{};
}

std::vector<float> floats_of(const StoredTensor& tensor) {
  std::vector<float> values(tensor.bytes.size() / sizeof(float));
  std::memcpy(values.data(), tensor.bytes.data(), values.size() * sizeof(float));
  return values;
}

// `expected` holds the first rows.
void expect_equal(const std::vector<float>& mine, const StoredTensor& expected,
                  const std::string& name) {
  const auto theirs = floats_of(expected);
  ASSERT_FALSE(theirs.empty()) << name;
  ASSERT_LE(theirs.size(), mine.size()) << name;
  std::int64_t different = 0;
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    const bool same = std::isnan(theirs[i]) ? std::isnan(mine[i])
                                            : std::bit_cast<std::uint32_t>(mine[i]) ==
                                                  std::bit_cast<std::uint32_t>(theirs[i]);
    if (!same && different++ == 0)
      ADD_FAILURE() << name << "[" << i << "]: " << mine[i] << ", expected " << theirs[i];
  }
  EXPECT_EQ(different, 0) << name << ": of " << theirs.size();
}

struct Folder {
  const char *data, *expected;
  Convention convention;
  int tensors;  // how many expected ones there are
};
void PrintTo(const Folder& folder, std::ostream* out) { *out << folder.data; }

class Fixtures : public testing::TestWithParam<Folder> {};

TEST_P(Fixtures, DecodeToWhatTheProducerDecodes) {
  const auto& folder = GetParam();
  const auto data = open(folder.data), expected = open(folder.expected);
  int compared = 0;
  for (const auto& [name, tensor] : expected.tensors) {
    if (data.files.empty()) break;
    const bool beside = std::string(folder.data) == folder.expected;
    if (beside && !name.ends_with(".expected")) continue;
    const std::string module = name.ends_with(".expected") ? name.substr(0, name.size() - 9) : name;
    const auto weights = load_block_weights(data, module);
    ASSERT_TRUE(weights) << weights.error().message;
    EXPECT_EQ(weights->convention, folder.convention) << module;
    expect_equal(dequantize_as(weights->tensor.view(), folder.convention), tensor, module);
    ++compared;
    // The same scales in tiles, where the file has them so.
    const auto plain = module.find(".plain");
    if (plain == std::string::npos) continue;
    const auto tiled = load_block_weights(data, module.substr(0, plain) + ".swizzled");
    if (!tiled) continue;
    EXPECT_EQ(tiled->tensor.layout.order, ScaleOrder::tiled_128x4);
    expect_equal(dequantize_as(tiled->tensor.view(), folder.convention), tensor,
                 module + " in tiles");
  }
  EXPECT_EQ(compared, folder.tensors);
}

INSTANTIATE_TEST_SUITE_P(
    All, Fixtures,
    testing::Values(
        Folder{"modelopt-nvfp4-minilm-layer0/model.safetensors",
               "modelopt-nvfp4-minilm-layer0/expected.safetensors", Convention::modelopt, 6},
        Folder{"compressed-tensors-nvfp4-w4a4/model.safetensors",
               "compressed-tensors-nvfp4-w4a4/expected.safetensors", Convention::compressed_tensors,
               2},
        Folder{"compressed-tensors-nvfp4-w4a16/model.safetensors",
               "compressed-tensors-nvfp4-w4a16/expected.safetensors",
               Convention::compressed_tensors, 1},
        Folder{"compressed-tensors-mxfp4-w4a16/model.safetensors",
               "compressed-tensors-mxfp4-w4a16/expected.safetensors",
               Convention::compressed_tensors, 1},
        Folder{"torchao-130x96/weights.safetensors", "torchao-130x96/expected.safetensors",
               Convention::torchao, 4},
        Folder{"torchao-minilm-layer0-query/weights.safetensors",
               "torchao-minilm-layer0-query/expected.safetensors", Convention::torchao, 4},
        Folder{"gguf-minilm-layer0-query/weights.gguf",
               "gguf-minilm-layer0-query/expected.safetensors", Convention::gguf, 3},
        Folder{"modelopt-nvfp4-zero-layer/model.safetensors",
               "modelopt-nvfp4-zero-layer/expected.safetensors", Convention::modelopt, 2},
        Folder{"modelopt-nvfp4-tiny-moe/model.safetensors",
               "modelopt-nvfp4-tiny-moe/expected.safetensors", Convention::modelopt, 10},
        Folder{"llmcompressor-nvfp4-tiny-llama/model.safetensors",
               "llmcompressor-nvfp4-tiny-llama/expected.safetensors",
               Convention::compressed_tensors, 7},
        Folder{"edge/modelopt-nvfp4.safetensors", "edge/modelopt-nvfp4.safetensors",
               Convention::modelopt, 11},
        Folder{"edge/modelopt-mxfp4.safetensors", "edge/modelopt-mxfp4.safetensors",
               Convention::modelopt, 11},
        Folder{"edge/compressed-tensors-nvfp4.safetensors",
               "edge/compressed-tensors-nvfp4.safetensors", Convention::compressed_tensors, 11},
        Folder{"edge/compressed-tensors-mxfp4.safetensors",
               "edge/compressed-tensors-mxfp4.safetensors", Convention::compressed_tensors, 11}),
    [](const auto& info) {
      std::string name;
      for (const char c : std::string(info.param.data)) {
        if (c == '.') break;
        name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
      }
      return name;
    });

// The blocks of gguf-py's edge cases, which the fixture keeps outside a GGUF file, put into one.
void expect_gguf_blocks(const std::string& file, std::uint32_t type, std::int64_t block_elements,
                        int tensors) {
  const auto fixture = open(file);
  int compared = 0;
  for (const auto& [name, tensor] : fixture.tensors) {
    if (!name.ends_with(".blocks")) continue;
    const std::string module = name.substr(0, name.size() - 7);
    const auto& expected = *fixture.find(module + ".expected");
    GgufBuilder builder;
    const auto columns = static_cast<std::uint64_t>(expected.shape[1]);
    ASSERT_EQ(columns % static_cast<std::uint64_t>(block_elements), 0u);
    builder.add_tensor(module, {columns, static_cast<std::uint64_t>(expected.shape[0])}, type,
                       text_of(tensor.bytes));
    const auto bytes = builder.build();
    const auto checkpoint = parse_gguf(bytes_of(bytes), "built");
    ASSERT_TRUE(checkpoint) << checkpoint.error().message;
    const auto weights = load_block_weights(*checkpoint, module);
    ASSERT_TRUE(weights) << weights.error().message;
    expect_equal(dequantize_as(weights->tensor.view(), Convention::gguf), expected, module);
    ++compared;
  }
  EXPECT_EQ(compared, tensors);
}

TEST(GgufFixtures, SpecialScaleBytesDecodeAsGgufPyDoes) {
  expect_gguf_blocks("edge/gguf-nvfp4.safetensors", 40, 64, 10);
  expect_gguf_blocks("edge/gguf-mxfp4.safetensors", 39, 32, 11);
}

// torchao's F4 counts elements, and no convention names these tensors: the module has none.
TEST(TorchaoFixtures, CodesOfTypeF4) {
  const auto file = open("torchao-minilm-layer0-query/f4_dtype.safetensors");
  ASSERT_NE(file.find("qdata"), nullptr);
  EXPECT_EQ(file.find("qdata")->type, StoredType::f4);
  EXPECT_EQ(file.find("qdata")->shape, (std::vector<std::int64_t>{32, 384}));
  EXPECT_EQ(file.find("qdata")->bytes.size(), 32u * 192);
  const auto weights = load_block_weights(file, "qdata");
  ASSERT_TRUE(weights) << weights.error().message;
  EXPECT_EQ(weights->tensor.format, Format::mxfp4);
  const auto whole = open("torchao-minilm-layer0-query/weights.safetensors");
  const auto same = load_block_weights(whole, "mxfp4.rceil.plain");
  ASSERT_TRUE(same) << same.error().message;
  EXPECT_TRUE(std::equal(weights->tensor.codes.begin(), weights->tensor.codes.end(),
                         same->tensor.codes.begin()));
  EXPECT_TRUE(std::equal(weights->tensor.scales.begin(), weights->tensor.scales.end(),
                         same->tensor.scales.begin()));
}

TEST(Dequantize, ExactRoundsOnceWhereProducersRoundTwice) {
  const auto checkpoint = open("torchao-130x96/weights.safetensors");
  const auto weights = load_block_weights(checkpoint, "nvfp4.two_level.plain");
  ASSERT_TRUE(weights);
  const auto exact = dequantize_exact(weights->tensor.view()),
             as_torchao = dequantize_as(weights->tensor.view(), Convention::torchao);
  std::int64_t different = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) different += exact[i] != as_torchao[i];
  EXPECT_EQ(different, 1702);  // the fixture's README
}

}  // namespace
}  // namespace nibble
