// SPDX-License-Identifier: Apache-2.0
#include "reference/exact_integer_pack.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/e2m1.h"
#include "core/small_floats.h"

namespace nibble {
namespace {

static_assert(std::endian::native == std::endian::little);

// What a byte of two codes becomes: two bytes each, the even code first.
struct BytePair {
  std::uint16_t codes, absolute;
};

constexpr std::uint16_t two_bytes(int even, int odd) {
  return static_cast<std::uint16_t>((even & 0xFF) | ((odd & 0xFF) << 8));
}

// `offset` is added to the codes.
constexpr std::array<BytePair, 256> make_byte_pairs(int offset) {
  std::array<BytePair, 256> table{};
  for (int byte = 0; byte < 256; ++byte) {
    const int even = e2m1_doubled(static_cast<std::uint8_t>(byte & 15));
    const int odd = e2m1_doubled(static_cast<std::uint8_t>(byte >> 4));
    table[static_cast<std::size_t>(byte)] = {
        two_bytes(even + offset, odd + offset),
        two_bytes(even < 0 ? -even : even, odd < 0 ? -odd : odd)};
  }
  return table;
}

constexpr std::array<std::int8_t, 256> make_pair_sums() {
  std::array<std::int8_t, 256> table{};
  for (int byte = 0; byte < 256; ++byte) {
    table[static_cast<std::size_t>(byte)] =
        static_cast<std::int8_t>(e2m1_doubled(static_cast<std::uint8_t>(byte & 15)) +
                                 e2m1_doubled(static_cast<std::uint8_t>(byte >> 4)));
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

constexpr auto kRowPairs = make_byte_pairs(0);
constexpr auto kColumnPairs = make_byte_pairs(12);
constexpr auto kPairSums = make_pair_sums();
constexpr auto kScales = make_scales();
constexpr std::int64_t kBlockBytes = 8;

// Four codes, of two bytes of the tensor, to both places.
template <class Byte>
void put_four(const std::array<BytePair, 256>& table, const std::uint8_t* from, Byte* codes,
              std::int8_t* absolute) {
  const BytePair first = table[from[0]], second = table[from[1]];
  const std::uint32_t four_codes = first.codes | (std::uint32_t{second.codes} << 16);
  const std::uint32_t four_absolute = first.absolute | (std::uint32_t{second.absolute} << 16);
  std::memcpy(codes, &four_codes, 4);
  std::memcpy(absolute, &four_absolute, 4);
}

void pack_block(const std::uint8_t* codes, std::size_t row, RowBlock& into) {
  int sum = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    put_four(kRowPairs, codes + 2 * i, into.codes[i][row], into.absolute[i][row]);
    sum += kPairSums[codes[2 * i]] + kPairSums[codes[2 * i + 1]];
  }
  into.correction[row] = -12 * sum;
}

void pack_block(const std::uint8_t* codes, std::size_t column, ColumnBlock& into) {
  for (std::size_t i = 0; i < 4; ++i) {
    put_four(kColumnPairs, codes + 2 * i, into.codes_plus_12[i][column], into.absolute[i][column]);
  }
}

// A few blocks of all lanes before the next few: what is written stays in the L1 cache.
constexpr std::int64_t kBlocksAtOnce = 32;

// Blocks [begin, begin + count) of row `row` of the tensor become row or column `lane` of `into`.
// Offsets of scale layouts are a part of the row plus a part of the block, here `offsets`.
template <class Block>
bool pack_lane(const BlockTensorView& tensor, std::int64_t row, std::size_t lane,
               std::int64_t begin, std::size_t count,
               const std::array<std::int64_t, kBlocksAtOnce>& offsets, Block* into) {
  const std::uint8_t* codes =
      tensor.codes.data() + row * tensor.code_stride_bytes + begin * kBlockBytes;
  const std::uint8_t* scales = tensor.scales.data() + tensor.layout.offset(row, 0);
  bool has_nan = false;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t scale = scales[offsets[i]];
    has_nan |= e4m3_is_nan(scale);
    into[i].scales[lane] = kScales[scale];
    pack_block(codes + i * kBlockBytes, lane, into[i]);
  }
  return has_nan;
}

template <std::size_t kLanes, class Block>
std::array<bool, kLanes> pack_lanes(const BlockTensorView& tensor, std::int64_t row,
                                    std::int64_t rows_end, std::span<Block> into) {
  const auto blocks = static_cast<std::int64_t>(into.size());
  std::array<bool, kLanes> has_nan{};
  std::array<std::int64_t, kBlocksAtOnce> offsets{};
  for (std::int64_t begin = 0; begin < blocks; begin += kBlocksAtOnce) {
    const auto count = static_cast<std::size_t>(std::min(kBlocksAtOnce, blocks - begin));
    Block* first = into.data() + begin;
    for (std::size_t i = 0; i < count; ++i) {
      offsets[i] = tensor.layout.offset(0, begin + static_cast<std::int64_t>(i));
    }
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const std::int64_t at = row + static_cast<std::int64_t>(lane);
      if (at < rows_end) {
        has_nan[lane] |= pack_lane(tensor, at, lane, begin, count, offsets, first);
      } else {  // Codes of an earlier tile do no harm under a zero scale.
        for (std::size_t i = 0; i < count; ++i) first[i].scales[lane] = 0;
      }
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
