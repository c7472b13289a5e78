// SPDX-License-Identifier: Apache-2.0
// Files that contradict themselves: one line that names file, tensor and place; never a crash or a
// wrong answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "checkpoint/block_weights.h"
#include "support/checkpoint_builder.h"

namespace nibble {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string error_of(const std::string& file) {
  const auto checkpoint = parse_safetensors(bytes_of(file), "f.st");
  return checkpoint ? "" : checkpoint.error().message;
}

std::string error_of_header(const std::string& header, std::size_t data_bytes = 8) {
  return error_of(safetensors_of(header, std::string(data_bytes, '\1')));
}

std::string entry(const std::string& shape, const std::string& offsets,
                  const std::string& dtype = "\"U8\"") {
  return "{\"x\":{\"dtype\":" + dtype + ",\"shape\":" + shape + ",\"data_offsets\":" + offsets +
         "}}";
}

TEST(Safetensors, SoundFilesPass) {
  EXPECT_EQ(error_of_header(entry("[2,4]", "[0,8]")), "");
  EXPECT_EQ(error_of_header(entry("[]", "[0,8]", "\"F64\"")), "");
  EXPECT_EQ(error_of_header(entry("[0,5]", "[0,0]"), 0), "");
  EXPECT_EQ(error_of_header("{}", 0), "");
  EXPECT_EQ(error_of_header(entry("[16]", "[0,8]", "\"F4\"")), "");
}

TEST(Safetensors, EveryTruncationIsRefused) {
  SafetensorsBuilder builder;
  builder.add("a", "U8", {3}, "abc");
  builder.add("b", "F32", {2}, std::string(8, '\2'));
  const auto whole = builder.build();
  ASSERT_EQ(error_of(whole), "");
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_THAT(error_of(whole.substr(0, bytes)), HasSubstr("f.st")) << bytes;
  }
  EXPECT_THAT(error_of(whole + "x"), HasSubstr("tensors end at 11, the data at 12"));
}

TEST(Safetensors, HeaderLengthIsNotBelieved) {
  for (const std::uint64_t length :
       {std::uint64_t{3}, std::uint64_t{1} << 32, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    EXPECT_THAT(error_of(packed(length) + "{}"),
                AllOf(HasSubstr("header is said to have"), HasSubstr("2 follow")));
  }
}

TEST(Safetensors, RangesMustTileTheData) {
  const auto two = [](const std::string& first, const std::string& second) {
    return "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" + first +
           "},\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" + second + "}}";
  };
  EXPECT_EQ(error_of_header(two("[4,8]", "[0,4]")), "");  // the header's order is free
  EXPECT_THAT(error_of_header(two("[0,4]", "[2,6]")),
              AllOf(HasSubstr("tensor 'b' begins at 2"), HasSubstr("overlap")));
  EXPECT_THAT(error_of_header(two("[0,4]", "[0,4]")), HasSubstr("overlap"));
  EXPECT_THAT(error_of_header(two("[0,4]", "[5,9]"), 9), HasSubstr("bytes between belong to none"));
  EXPECT_THAT(error_of_header(two("[0,4]", "[6,10]")),
              HasSubstr("tensor 'b': data_offsets 6..10 leave the data of 8 bytes"));
  EXPECT_THAT(error_of_header(two("[4,0]", "[0,4]")), HasSubstr("tensor 'a': data_offsets 4..0"));
  EXPECT_THAT(error_of_header(entry("[8]", "[0,18446744073709551615]")),
              HasSubstr("leave the data"));
}

TEST(Safetensors, ShapesAndTypesAreChecked) {
  EXPECT_THAT(error_of_header(entry("[7]", "[0,8]")),
              HasSubstr("tensor 'x': 8 bytes at 0..8, but its shape and dtype U8 take 7"));
  EXPECT_THAT(error_of_header(entry("[4294967296,4294967296,4294967296]", "[0,8]")),
              HasSubstr("their product is too large"));
  EXPECT_THAT(error_of_header(entry("[2305843009213693952]", "[0,0]", "\"F64\""), 0),
              HasSubstr("too large"));
  EXPECT_THAT(error_of_header(entry("[-8]", "[0,8]")), HasSubstr("shape is no list of sizes"));
  EXPECT_THAT(error_of_header(entry("[8.0]", "[0,8]")), HasSubstr("shape is no list of sizes"));
  EXPECT_THAT(error_of_header(entry("\"8\"", "[0,8]")), HasSubstr("shape is no list of sizes"));
  EXPECT_THAT(error_of_header(entry("[8]", "[0]")), HasSubstr("no pair of offsets"));
  EXPECT_THAT(error_of_header(entry("[8]", "[-1,8]")), HasSubstr("no pair of offsets"));
  EXPECT_THAT(error_of_header(entry("[8]", "[0,8]", "\"F9\"")),
              HasSubstr("dtype \"F9\" is not known"));
  EXPECT_THAT(error_of_header(entry("[8]", "[0,8]", "\"GGML_NVFP4\"")), HasSubstr("is not known"));
  EXPECT_THAT(error_of_header(entry("[8]", "[0,8]", "7")), HasSubstr("dtype 7 is not known"));
  EXPECT_THAT(error_of_header("{\"x\":{\"dtype\":\"U8\",\"shape\":[8]}}"),
              HasSubstr("no data_offsets"));
  EXPECT_THAT(error_of_header("{\"x\":5}"), HasSubstr("tensor 'x': its header entry is no object"));
}

TEST(Safetensors, JsonOfStrangers) {
  EXPECT_THAT(error_of_header("[]", 0), HasSubstr("no JSON object"));
  EXPECT_THAT(error_of_header("{\"x\":", 0), HasSubstr("no JSON at byte"));
  EXPECT_THAT(error_of_header("{\"\xff\":1}", 0), HasSubstr("no JSON at byte"));
  EXPECT_THAT(error_of_header("{\"__metadata__\":{\"k\":1}}", 0), HasSubstr("'k' is no text"));
  EXPECT_THAT(error_of_header("{\"__metadata__\":[]}", 0), HasSubstr("__metadata__ is no object"));
  const std::string one = "\"x\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}";
  EXPECT_THAT(error_of_header("{" + one + "," + one + "}"), HasSubstr("key 'x' stands twice"));
  EXPECT_THAT(
      error_of_header(
          "{\"x\":{\"dtype\":\"U8\",\"dtype\":\"I8\",\"shape\":[8],\"data_offsets\":[0,8]}}"),
      HasSubstr("key 'dtype' stands twice"));
  const std::string deep =
      "{\"x\":" + std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}";
  EXPECT_THAT(error_of_header(deep, 0), HasSubstr("nested deeper than 4 levels"));
  EXPECT_THAT(error_of_header(std::string(1'000'000, '['), 0), HasSubstr("nested deeper"));
}

TEST(Safetensors, MessagesStayOneShortLine) {
  for (const std::string name : {"a\\nb", "\\u001b[31m", "a\\u0000b", "\\u007f", "\\u0085"}) {
    const auto error = error_of_header(
        "{\"" + name + "\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}}");
    EXPECT_THAT(error, HasSubstr("a name is UTF-8 without control characters")) << name;
    for (const char c : error) EXPECT_TRUE(c >= ' ' && c <= '~') << static_cast<int>(c);
  }
  EXPECT_EQ(error_of_header("{\"gew\xc3\xb6hnlich\":"
                            "{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}}"),
            "");
  const std::string longest(1'000'000, 'n');
  for (const std::string& header :
       {"{\"" + longest + "\":5}", "{\"" + longest + "\":1,\"" + longest + "\":1}",
        "{\"__metadata__\":{\"" + longest + "\":1}}",
        entry("[8]", "[0,8]", "\"" + longest + "\"")}) {
    const auto error = error_of_header(header);
    EXPECT_THAT(error, HasSubstr("bytes)"));
    EXPECT_LT(error.size(), 400u);
  }
}

// Empty arrays take two dozen times their text in memory.
TEST(Safetensors, JsonOfManyValuesIsRefusedBeforeItIsBuilt) {
  std::string arrays = "{\"x\":[";
  for (int i = 0; i < 4'200'000; ++i) arrays += "[],";
  EXPECT_THAT(error_of_header(arrays + "0]}", 0), HasSubstr("header: more than 4194304 values"));
}

std::string error_of_index(const std::string& text) {
  const auto index = parse_shard_index(text, "i.json");
  return index ? "" : index.error().message;
}

TEST(ShardIndex, NamesFilesBesideItselfAlone) {
  EXPECT_EQ(error_of_index("{\"weight_map\":{\"a\":\"one.safetensors\"}}"), "");
  for (const std::string file : {"../x", "/etc/passwd", "a/b", "..", ".", "", "a\\u0000b"}) {
    EXPECT_THAT(error_of_index("{\"weight_map\":{\"a\":\"" + file + "\"}}"),
                HasSubstr("no file beside the index"))
        << file;
  }
  EXPECT_THAT(error_of_index("{\"weight_map\":{\"a\":1}}"),
              HasSubstr("the file of tensor 'a' is no text"));
  EXPECT_THAT(error_of_index("{}"), HasSubstr("no object 'weight_map'"));
  EXPECT_THAT(error_of_index(std::string(1'000'000, '{')), HasSubstr("i.json"));
}

class Files : public testing::Test {
 protected:
  Files() : folder_(testing::TempDir() + "nibble_checkpoint_" + std::to_string(::getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~Files() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
    return folder_ + "/" + name;
  }
  std::string error_of(const std::string& path) const {
    const auto checkpoint = open_checkpoint(path);
    return checkpoint ? "" : checkpoint.error().message;
  }
  std::string folder_;
};

TEST_F(Files, WhatIsNoCheckpointIsRefusedByName) {
  EXPECT_THAT(error_of(folder_ + "/none.safetensors"), HasSubstr("none.safetensors: No such file"));
  EXPECT_THAT(error_of(folder_), HasSubstr("a folder with 0 .safetensors and .gguf files"));
  EXPECT_THAT(error_of(write("empty.safetensors", "")), HasSubstr("0 bytes are too few"));
  EXPECT_THAT(error_of("/dev/zero"), HasSubstr("/dev/zero"));
  ASSERT_EQ(::mkfifo((folder_ + "/pipe.safetensors").c_str(), 0600), 0);
  EXPECT_THAT(error_of(folder_ + "/pipe.safetensors"), HasSubstr("pipe.safetensors"));
}

TEST_F(Files, ShardsAreOneCheckpoint) {
  SafetensorsBuilder first, second;
  first.add("a", "U8", {1}, "a");
  second.add("b", "U8", {1}, "b");
  write("one.safetensors", first.build());
  write("two.safetensors", second.build());
  const auto index =
      write("model.safetensors.index.json",
            "{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"two.safetensors\"}}");
  for (const auto& path : {index, folder_}) {
    const auto checkpoint = open_checkpoint(path);
    ASSERT_TRUE(checkpoint) << checkpoint.error().message;
    EXPECT_EQ(text_of(checkpoint->find("b")->bytes), "b");
    EXPECT_EQ(checkpoint->tensors.size(), 2u);
  }
  write("model.safetensors.index.json", "{\"weight_map\":{\"a\":\"two.safetensors\"}}");
  EXPECT_THAT(error_of(index), HasSubstr("tensor 'a' is not in two.safetensors"));
  write("model.safetensors.index.json", "{\"weight_map\":{\"a\":\"three.safetensors\"}}");
  EXPECT_THAT(error_of(index), HasSubstr("three.safetensors: No such file"));
}

TEST_F(Files, MetadataOfOneShardSaysNothingOfAnother) {
  const std::string codes(128 * 64, '\1'), scales(128 * 8, '\x38');
  SafetensorsBuilder first, second;
  first.add_metadata("is_swizzled_scales", "true");
  for (const auto& [builder, module] : {std::pair{&first, "x"}, std::pair{&second, "y"}}) {
    builder->add(std::string(module) + ".qdata", "U8", {128, 64}, codes);
    builder->add(std::string(module) + ".scale", "F8_E4M3", {128, 8}, scales);
  }
  write("one.safetensors", first.build());
  write("two.safetensors", second.build());
  const auto index =
      write("model.safetensors.index.json",
            "{\"weight_map\":{\"x.qdata\":\"one.safetensors\",\"x.scale\":\"one.safetensors\","
            "\"y.qdata\":\"two.safetensors\",\"y.scale\":\"two.safetensors\"}}");
  const auto checkpoint = open_checkpoint(index);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  EXPECT_EQ(load_block_weights(*checkpoint, "x")->tensor.layout.order, ScaleOrder::tiled_128x4);
  EXPECT_EQ(load_block_weights(*checkpoint, "y")->tensor.layout.order, ScaleOrder::row_major);
}

std::string error_of_gguf(const std::string& file) {
  const auto checkpoint = parse_gguf(bytes_of(file), "f.gguf");
  return checkpoint ? "" : checkpoint.error().message;
}

GgufBuilder one_tensor() {
  GgufBuilder builder;
  builder.add_tensor("w", {64, 2}, 40, std::string(72, '\1'));
  return builder;
}

TEST(Gguf, EveryTruncationIsRefused) {
  const auto whole = one_tensor().build();
  ASSERT_EQ(error_of_gguf(whole), "");
  // The last bytes are padding that nothing needs.
  for (std::size_t bytes = 0; bytes + 24 < whole.size(); ++bytes)
    EXPECT_THAT(error_of_gguf(whole.substr(0, bytes)), HasSubstr("f.gguf")) << bytes;
}

TEST(Gguf, HeaderIsChecked) {
  auto builder = one_tensor();
  builder.magic = 0x46554748;
  EXPECT_THAT(error_of_gguf(builder.build()), HasSubstr("no GGUF file"));
  builder = one_tensor();
  builder.version = 1;
  EXPECT_THAT(error_of_gguf(builder.build()), HasSubstr("GGUF version 1 is not read"));
  builder = one_tensor();
  builder.false_tensor_count = std::uint64_t{1} << 60;
  EXPECT_THAT(error_of_gguf(builder.build()), HasSubstr("entries, at most 1048576 are read"));
  builder = one_tensor();
  builder.extra_pair_count = std::uint64_t{1} << 60;
  EXPECT_THAT(error_of_gguf(builder.build()), HasSubstr("f.gguf: byte"));
  for (const std::uint64_t alignment :
       {std::uint64_t{0}, std::uint64_t{24}, std::uint64_t{1} << 31}) {
    builder = one_tensor();
    builder.alignment = alignment;
    EXPECT_THAT(error_of_gguf(builder.build()), HasSubstr("no power of two"));
  }
}

TEST(Gguf, NamesAreTextOfOneLine) {
  for (const std::string name :
       {"a\nb", "\x1b[31m", "\xff", "\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xc2\x85"}) {
    GgufBuilder builder;
    builder.add_tensor(name, {32, 1}, 39, std::string(17, '\1'));
    const auto error = error_of_gguf(builder.build());
    EXPECT_THAT(error, HasSubstr("a name is UTF-8 without control characters"));
    for (const char c : error) EXPECT_TRUE(c >= ' ' && c <= '~') << static_cast<int>(c);
  }
  GgufBuilder builder;
  builder.add_tensor("gew\xc3\xb6hnlich \xe2\x82\xac \xf0\x9f\x98\x80", {32, 1}, 39,
                     std::string(17, '\1'));
  EXPECT_EQ(error_of_gguf(builder.build()), "");
}

// The tensor without elements is listed after the one that begins at the same place.
TEST(Gguf, ATensorWithoutElementsLiesOverNone) {
  GgufBuilder builder;
  builder.false_offset = 32;
  builder.add_tensor("v", {32, 1}, 39, std::string(17, '\1'));
  builder.add_tensor("w", {32, 1}, 39, std::string(17, '\1'));
  builder.add_tensor("e", {32, 0}, 39, "");
  EXPECT_EQ(error_of_gguf(builder.build()), "");
}

TEST(Gguf, ValuesAreChecked) {
  const auto with_pair = [](const std::string& pair) {
    auto builder = one_tensor();
    builder.extra_pairs = pair;
    builder.extra_pair_count = 1;
    return error_of_gguf(builder.build());
  };
  const auto key = GgufBuilder::text("k");
  const auto array = [](std::uint32_t type, std::uint64_t count) {
    return packed(type) + packed(count);
  };
  EXPECT_EQ(with_pair(key + packed<std::uint32_t>(8) + GgufBuilder::text("v")), "");
  EXPECT_EQ(with_pair(key + packed<std::uint32_t>(9) + array(9, 1) + array(4, 2) +
                      packed<std::uint64_t>(0)),
            "");
  EXPECT_THAT(with_pair(key + packed<std::uint32_t>(13)), HasSubstr("value type 13 is not known"));
  EXPECT_THAT(with_pair(key + packed<std::uint32_t>(8) + packed(std::uint64_t{1} << 62)),
              HasSubstr("a text leaves the file"));
  EXPECT_THAT(with_pair(key + packed<std::uint32_t>(9) + array(10, std::uint64_t{1} << 61)),
              HasSubstr("values leaves the file"));
  EXPECT_THAT(with_pair(key + packed<std::uint32_t>(9) + array(8, std::uint64_t{1} << 60)),
              HasSubstr("f.gguf: byte"));
  std::string nested;
  for (int level = 0; level < 100; ++level) nested += array(9, 1);
  EXPECT_THAT(with_pair(key + packed<std::uint32_t>(9) + nested), HasSubstr("nested too deep"));
  const auto twice = key + packed<std::uint32_t>(4) + packed<std::uint32_t>(1);
  auto builder = one_tensor();
  builder.extra_pairs = twice + twice;
  builder.extra_pair_count = 2;
  EXPECT_THAT(error_of_gguf(builder.build()), HasSubstr("key 'k' stands twice"));
}

TEST(Gguf, TensorsAreChecked) {
  const auto with_tensor = [](const std::vector<std::uint64_t>& dimensions, std::uint32_t type,
                              std::size_t bytes) {
    GgufBuilder builder;
    builder.add_tensor("w", dimensions, type, std::string(bytes, '\1'));
    return error_of_gguf(builder.build());
  };
  EXPECT_EQ(with_tensor({32, 3}, 39, 51), "");
  EXPECT_THAT(with_tensor({32, 2}, 40, 36),
              HasSubstr("tensor 'w': 32 columns are no multiple of 64"));
  EXPECT_THAT(with_tensor({64, 4}, 40, 72), AllOf(HasSubstr("tensor 'w' at data offset 0"),
                                                  HasSubstr("its 144 bytes leave the data")));
  EXPECT_THAT(with_tensor({1ull << 40, 1ull << 40}, 0, 8),
              HasSubstr("product of its dimensions is too large"));
  EXPECT_THAT(with_tensor({1, 1, 1, 1, 1, 1, 1, 1, 1}, 0, 4), HasSubstr("9 dimensions"));
  EXPECT_EQ(with_tensor({256}, 12, 144), "");  // a type of unknown size is listed and not read
  GgufBuilder builder;
  builder.add_tensor("w", {32, 1}, 39, std::string(17, '\1'));
  builder.add_tensor("w", {32, 1}, 39, std::string(17, '\1'));
  EXPECT_THAT(error_of_gguf(builder.build()), HasSubstr("tensor 'w' stands twice"));
  for (const auto& [offset, reason] : {std::pair{std::uint64_t{8}, "no multiple of the alignment"},
                                       std::pair{~std::uint64_t{31}, "leave the data"}}) {
    GgufBuilder moved;
    moved.false_offset = offset;
    moved.add_tensor("v", {32, 4}, 39, std::string(68, '\1'));
    moved.add_tensor("w", {32, 1}, 39, std::string(17, '\1'));
    EXPECT_THAT(error_of_gguf(moved.build()), HasSubstr(reason));
  }
  GgufBuilder over;
  over.false_offset = 32;
  over.add_tensor("v", {32, 4}, 39, std::string(68, '\1'));
  over.add_tensor("w", {32, 1}, 39, std::string(17, '\1'));
  EXPECT_THAT(error_of_gguf(over.build()), HasSubstr("lies over the tensor before it"));
}

}  // namespace
}  // namespace nibble
