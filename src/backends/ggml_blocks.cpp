// SPDX-License-Identifier: Apache-2.0
#include "backends/ggml_blocks.h"

#include "core/e2m1.h"

namespace nibble {
namespace {

// `half` codes from `column` on become low nibbles, the next `half` high ones.
void interleave_codes(const BlockTensorView& b, std::int64_t row, std::int64_t column, int half,
                      std::uint8_t* to) {
  for (int j = 0; j < half; ++j)
    to[j] = pack_codes(b.code(row, column + j), b.code(row, column + j + half));
}

}  // namespace

std::int64_t ggml_row_bytes(Format format, std::int64_t columns) {
  return format == Format::nvfp4 ? columns / kGgmlNvfp4Elements * kGgmlNvfp4Bytes
                                 : columns / kGgmlMxfp4Elements * kGgmlMxfp4Bytes;
}

std::vector<std::uint8_t> to_ggml_blocks(const BlockTensorView& b) {
  std::vector<std::uint8_t> blocks(
      static_cast<std::size_t>(b.rows * ggml_row_bytes(b.format, b.columns)));
  std::uint8_t* to = blocks.data();
  for (std::int64_t row = 0; row < b.rows; ++row) {
    if (b.format == Format::nvfp4) {
      for (std::int64_t column = 0; column < b.columns;
           column += kGgmlNvfp4Elements, to += kGgmlNvfp4Bytes) {
        for (int group = 0; group < 4; ++group) {
          to[group] = b.scale(row, column / 16 + group) & 0x7F;
          interleave_codes(b, row, column + group * 16, 8, to + 4 + group * 8);
        }
      }
    } else {
      for (std::int64_t column = 0; column < b.columns;
           column += kGgmlMxfp4Elements, to += kGgmlMxfp4Bytes) {
        to[0] = b.scale(row, column / 32);
        interleave_codes(b, row, column, 16, to + 1);
      }
    }
  }
  return blocks;
}

}  // namespace nibble
