// SPDX-License-Identifier: Apache-2.0
#include "cpu/packed_weights.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "core/small_floats.h"

namespace nibble {
namespace {

// Pages of 2 MiB spare a stream over many megabytes most of its address translations, which are
// dear in a virtual machine.
constexpr std::int64_t kCacheLine = 64, kHugePage = 2 << 20;

std::uint8_t* allocate(std::int64_t size) {
  const std::int64_t alignment = size >= 2 * kHugePage ? kHugePage : kCacheLine;
  const auto rounded =
      static_cast<std::size_t>(round_up(std::max<std::int64_t>(size, 1), alignment));
  void* bytes = std::aligned_alloc(static_cast<std::size_t>(alignment), rounded);
#ifdef MADV_HUGEPAGE
  if (bytes != nullptr && alignment == kHugePage) madvise(bytes, rounded, MADV_HUGEPAGE);
#endif
  if (bytes != nullptr) std::memset(bytes, 0, rounded);
  return static_cast<std::uint8_t*>(bytes);
}

// 16 codes of one row into the bytes of its column.
void pack_group(const std::uint8_t* row_codes, int column, std::uint8_t* group) {
  for (int half = 0; half < 2; ++half) {
    std::uint8_t* to = group + half * kGroupCodeBytes / 2 + column * 4;
    const std::uint8_t* from = row_codes + 4 * half;
    for (int pair = 0; pair < 2; ++pair) {
      const std::uint8_t first = from[pair], second = from[pair + 2];  // k = 2 pair, and 4 later
      to[2 * pair] = static_cast<std::uint8_t>((first & 0x0F) | (second << 4));
      to[2 * pair + 1] = static_cast<std::uint8_t>((first >> 4) | (second & 0xF0));
    }
  }
}

void pack_row(const BlockTensorView& b, std::int64_t row, PackedWeights& packed) {
  const std::int64_t panel = row / kPanelColumns;
  const int column = static_cast<int>(row % kPanelColumns);
  std::uint8_t* codes = packed.codes.data() + panel * packed.groups() * kGroupCodeBytes;
  std::uint8_t* scales = packed.scales.data() + panel * packed.blocks() * kPanelColumns;
  for (std::int64_t group = 0; group < packed.groups(); ++group) {
    pack_group(b.codes.data() + row * b.code_stride_bytes + group * kGroupElements / 2, column,
               codes + group * kGroupCodeBytes);
  }
  bool has_nan = false;
  for (std::int64_t block = 0; block < packed.blocks(); ++block) {
    const std::uint8_t byte = b.scale(row, block);
    has_nan |= b.format == Format::nvfp4 ? e4m3_is_nan(byte) : e8m0_is_nan(byte);
    scales[block * kPanelColumns + column] = byte;
  }
  if (has_nan) packed.nan_columns.push_back(row);
}

}  // namespace

AlignedBytes::AlignedBytes(std::int64_t size) : bytes_(allocate(size)), size_(bytes_ ? size : 0) {}

std::uint8_t PackedWeights::code(std::int64_t column, std::int64_t element) const {
  const std::uint8_t* group =
      panel_codes(column / kPanelColumns) + element / kGroupElements * kGroupCodeBytes;
  const std::int64_t within = element % kGroupElements;
  const std::uint8_t byte =
      group[within / 8 * kGroupCodeBytes / 2 + column % kPanelColumns * 4 + within % 4];
  return static_cast<std::uint8_t>((within & 4) ? byte >> 4 : byte & 15);
}

Result<PackedWeights> pack_weights(const BlockTensorView& b) {
  PackedWeights packed{.format = b.format, .columns = b.rows, .k = b.columns};
  const std::int64_t code_bytes = packed.panels() * packed.groups() * kGroupCodeBytes;
  const std::int64_t scale_bytes = packed.panels() * packed.blocks() * kPanelColumns;
  packed.codes = AlignedBytes(code_bytes);
  packed.scales = AlignedBytes(scale_bytes);
  if (packed.codes.size() != code_bytes || packed.scales.size() != scale_bytes) {
    return fail(ErrorKind::failed, fmt::format("prepack: no memory for {} bytes of weights",
                                               code_bytes + scale_bytes));
  }
  for (std::int64_t row = 0; row < b.rows; ++row) pack_row(b, row, packed);
  return packed;
}

}  // namespace nibble
