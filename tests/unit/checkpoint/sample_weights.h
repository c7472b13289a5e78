// SPDX-License-Identifier: Apache-2.0
// Small weights in memory, for the tests of what is loaded from a checkpoint.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "checkpoint/block_weights.h"
#include "support/checkpoint_builder.h"

namespace nibble {

inline std::string codes(std::int64_t rows, std::int64_t columns) {
  std::string text;
  for (std::int64_t i = 0; i < rows * columns / 2; ++i) text += static_cast<char>(i * 37 + 11);
  return text;
}

inline std::string text_of_scales(const std::vector<std::uint8_t>& scales) {
  return {scales.begin(), scales.end()};
}

struct Built {
  std::string file;
  Checkpoint checkpoint;
};

inline std::unique_ptr<Built> parse(const SafetensorsBuilder& builder) {
  auto built = std::make_unique<Built>();
  built->file = builder.build();
  auto checkpoint = parse_safetensors(bytes_of(built->file), "f.st");
  EXPECT_TRUE(checkpoint) << (checkpoint ? "" : checkpoint.error().message);
  if (checkpoint) built->checkpoint = std::move(*checkpoint);
  return built;
}

inline std::string error_of(const SafetensorsBuilder& builder, const std::string& name,
                            const LoadOptions& options = {}) {
  const auto built = parse(builder);
  const auto weights = load_block_weights(built->checkpoint, name, options);
  return weights ? "" : weights.error().message;
}

// x of ModelOpt, [rows, columns], every block scale 1.
inline SafetensorsBuilder modelopt(std::int64_t rows = 4, std::int64_t columns = 32,
                                   float multiplier = 0.5f) {
  SafetensorsBuilder builder;
  builder.add("x.weight", "U8", {rows, columns / 2}, codes(rows, columns));
  builder.add("x.weight_scale", "F8_E4M3", {rows, columns / 16},
              std::string(static_cast<std::size_t>(rows * columns / 16), '\x38'));
  builder.add("x.weight_scale_2", "F32", {}, packed(multiplier));
  return builder;
}

}  // namespace nibble
