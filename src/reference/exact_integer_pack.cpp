// SPDX-License-Identifier: Apache-2.0
#include "reference/exact_integer_pack.h"

#include <algorithm>
#include <cstring>

#include "core/e2m1.h"
#include "core/small_floats.h"

namespace nibble {
namespace {

// What a byte of two codes becomes; even code first.
struct BytePair {
  std::array<std::int8_t, 2> codes, absolute;
  std::array<std::uint8_t, 2> codes_plus_12;
};

constexpr std::array<BytePair, 256> make_byte_pairs() {
  std::array<BytePair, 256> table{};
  for (std::size_t byte = 0; byte < table.size(); ++byte) {
    for (std::size_t i = 0; i < 2; ++i) {
      const int code = e2m1_doubled(unpack_code(static_cast<std::uint8_t>(byte), i == 1));
      table[byte].codes[i] = static_cast<std::int8_t>(code);
      table[byte].absolute[i] = static_cast<std::int8_t>(code < 0 ? -code : code);
      table[byte].codes_plus_12[i] = static_cast<std::uint8_t>(code + 12);
    }
  }
  return table;
}

constexpr std::array<float, 256> make_scales() {
  std::array<float, 256> table{};
  for (std::size_t byte = 0; byte < table.size(); ++byte) {
    table[byte] = static_cast<float>(e4m3_units(static_cast<std::uint8_t>(byte)));
  }
  return table;
}

constexpr std::array<BytePair, 256> kBytePairs = make_byte_pairs();
constexpr std::array<float, 256> kScales = make_scales();
constexpr std::int64_t kBlockBytes = 8;

void pack_block(const std::uint8_t* codes, int row, RowBlock& into) {
  int sum = 0;
  for (int i = 0; i < kBlockBytes; ++i) {
    const BytePair& pair = kBytePairs[codes[i]];
    std::memcpy(&into.codes[i / 2][row][i % 2 * 2], pair.codes.data(), 2);
    std::memcpy(&into.absolute[i / 2][row][i % 2 * 2], pair.absolute.data(), 2);
    sum += pair.codes[0] + pair.codes[1];
  }
  into.correction[row] = -12 * sum;
}

void pack_block(const std::uint8_t* codes, int column, ColumnBlock& into) {
  for (int i = 0; i < kBlockBytes; ++i) {
    const BytePair& pair = kBytePairs[codes[i]];
    std::memcpy(&into.codes_plus_12[i / 2][column][i % 2 * 2], pair.codes_plus_12.data(), 2);
    std::memcpy(&into.absolute[i / 2][column][i % 2 * 2], pair.absolute.data(), 2);
  }
}

// Row `row` of the tensor becomes row or column `lane` of the packed blocks.
template <class Block>
bool pack_lane(const BlockTensorView& tensor, std::int64_t row, int lane, std::span<Block> into) {
  const std::uint8_t* codes = tensor.codes.data() + row * tensor.code_stride_bytes;
  bool has_nan = false;
  for (std::size_t block = 0; block < into.size(); ++block) {
    const std::uint8_t scale = tensor.scale(row, static_cast<std::int64_t>(block));
    has_nan |= e4m3_is_nan(scale);
    into[block].scales[lane] = kScales[scale];
    pack_block(codes + static_cast<std::int64_t>(block) * kBlockBytes, lane, into[block]);
  }
  return has_nan;
}

template <std::size_t kLanes, class Block>
std::array<bool, kLanes> pack_lanes(const BlockTensorView& tensor, std::int64_t row,
                                    std::int64_t rows_end, std::span<Block> into) {
  std::array<bool, kLanes> has_nan{};
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    const std::int64_t at = row + static_cast<std::int64_t>(lane);
    if (at < rows_end) {
      has_nan[lane] = pack_lane(tensor, at, static_cast<int>(lane), into);
    } else {  // Codes of an earlier tile do no harm under a zero scale.
      for (Block& block : into) block.scales[lane] = 0;
    }
  }
  return has_nan;
}

}  // namespace

std::array<bool, kTileRows> pack_rows(const BlockTensorView& a, std::int64_t row,
                                      std::int64_t rows_end, std::span<RowBlock> into) {
  return pack_lanes<kTileRows>(a, row, rows_end, into);
}

std::array<bool, kTileColumns> pack_columns(const BlockTensorView& b, std::int64_t column,
                                            std::span<ColumnBlock> into) {
  return pack_lanes<kTileColumns>(b, column, b.rows, into);
}

}  // namespace nibble
