// SPDX-License-Identifier: Apache-2.0
// A block tensor in llama.cpp's own interleaved blocks (GGUF types 39 and 40; docs/formats.md).
// NVFP4: 64 elements in 36 bytes, four scale bytes and then four groups of 8; byte j of a group
// holds its elements j (low) and j + 8 (high). MXFP4: 32 elements in 17 bytes, the scale byte and
// then 16; byte j holds j (low) and j + 16.
#pragma once

#include <cstdint>
#include <vector>

#include "core/block_tensor.h"

namespace nibble {

inline constexpr std::int64_t kGgmlNvfp4Elements = 64, kGgmlNvfp4Bytes = 36;
inline constexpr std::int64_t kGgmlMxfp4Elements = 32, kGgmlMxfp4Bytes = 17;

std::int64_t ggml_row_bytes(Format format, std::int64_t columns);

// `b` passed check(); its columns are a multiple of 64 (NVFP4) or 32 (MXFP4). The sign bit of an
// E4M3 scale is dropped.
std::vector<std::uint8_t> to_ggml_blocks(const BlockTensorView& b);

}  // namespace nibble
