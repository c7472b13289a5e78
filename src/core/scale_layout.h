// SPDX-License-Identifier: Apache-2.0
// Where the block scale of row r, block c lies. Byte offsets, 64-bit.
// row_major:   r * blocks + c.
// tiled_128x4: cuBLASLt's and CUTLASS's 128x4 tiles, cuDNN F8_128x4, torch SWIZZLE_32_4_4 (cuBLAS
// manual, "1D block scaling"). tiled_8x4:   TensorRT-LLM's layout for small M. Bytes of a tiled
// buffer that belong to no row and block are pad: written as zero, never read into a result.
#pragma once

#include <cstdint>

#include "core/enum_names.h"

namespace nibble {

enum class ScaleOrder : std::uint8_t { row_major, tiled_128x4, tiled_8x4 };

template <>
struct EnumNames<ScaleOrder> {
  static constexpr std::array table{
      std::pair{ScaleOrder::row_major, std::string_view("row_major")},
      std::pair{ScaleOrder::tiled_128x4, std::string_view("tiled_128x4")},
      std::pair{ScaleOrder::tiled_8x4, std::string_view("tiled_8x4")}};
};

constexpr std::int64_t divide_up(std::int64_t value, std::int64_t by) {
  return (value + by - 1) / by;
}
constexpr std::int64_t round_up(std::int64_t value, std::int64_t to) {
  return divide_up(value, to) * to;
}

struct ScaleLayout {
  ScaleOrder order = ScaleOrder::row_major;
  std::int64_t rows = 0;    // R
  std::int64_t blocks = 0;  // C = ceil(K / block)

  constexpr std::int64_t offset(std::int64_t row, std::int64_t block) const {
    const std::int64_t column_tiles = divide_up(blocks, 4);
    switch (order) {
      case ScaleOrder::row_major:
        return row * blocks + block;
      case ScaleOrder::tiled_128x4:
        return (row / 128 * column_tiles + block / 4) * 512 + row % 32 * 16 + row % 128 / 32 * 4 +
               block % 4;
      case ScaleOrder::tiled_8x4:
        return (row / 8 * column_tiles + block / 4) * 32 + row % 8 * 4 + block % 4;
    }
    return 0;
  }

  constexpr std::int64_t bytes() const {
    switch (order) {
      case ScaleOrder::row_major:
        return rows * blocks;
      case ScaleOrder::tiled_128x4:
        return round_up(rows, 128) * round_up(blocks, 4);
      case ScaleOrder::tiled_8x4:
        return round_up(rows, 8) * round_up(blocks, 4);
    }
    return 0;
  }

  constexpr bool operator==(const ScaleLayout&) const = default;
};

}  // namespace nibble
