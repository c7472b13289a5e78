// SPDX-License-Identifier: Apache-2.0
// The inner loops of the integer path (NVFP4 x NVFP4): exact sums and S of tiles of 4 rows by 16
// columns. Run-time dispatch picks the best instructions of this CPU.
#pragma once

#include <cstdint>

namespace nibble {

inline constexpr int kTileRows = 4, kTileColumns = 16;

// Doubled codes are integers c in [-12, 12]. With columns held as c + 12 >= 0 one instruction
// multiplies unsigned by signed bytes; the surplus 12 * sum(row codes) starts the sum negated.
// Index [k / 4][row or column][k % 4]. Scales are in units of 2^-9, as floats.
struct RowBlock {  // one block of 16 along k, of 4 rows of A
  std::int8_t codes[4][kTileRows][4];
  std::int8_t absolute[4][kTileRows][4];
  std::int32_t correction[kTileRows];  // -12 * sum of the row's codes
  float scales[kTileRows];
};

struct alignas(64) ColumnBlock {  // one block of 16 along k, of 16 columns (rows of B)
  std::uint8_t codes_plus_12[4][kTileColumns][4];
  std::int8_t absolute[4][kTileColumns][4];
  float scales[kTileColumns];
};

// Sums of one tile, in units of 2^-20 (quarters of 2^-18).
//   sum: exact while blocks <= kMaxIntegerBlocks.
//   absolute: sum|ab| with a relative error of at most kAbsoluteError, either way.
struct alignas(64) TileSums {
  std::int64_t sum[kTileRows][kTileColumns];
  double absolute[kTileRows][kTileColumns];
};

// |block term| <= 16 * 12 * 12 * 229376^2 < 2^46.79, and 76000 of them stay below 2^63.
inline constexpr std::int64_t kMaxIntegerBlocks = 76000;

// Blocks summed in floating point before the sums move to TileSums. Signed sums: the terms have 20
// significant bits (12 of the dot, 4 of each scale), so each is an exact float, and 8 of them stay
// below 2^49.8: exact doubles. sum|ab|: 8 terms are 7 rounded float additions.
inline constexpr int kPanelBlocks = 8;
// 7 roundings of 2^-24 each, then at most 9500 of 2^-53; 7.1 covers second-order terms.
inline constexpr double kAbsoluteError = 7.1 / (1 << 24);

// Adds the products of `row_tiles` x one column tile over `blocks` blocks to sums[row tile]. rows
// is [row tile][block], columns is [block].
void add_tile_products(const RowBlock* rows, std::int64_t row_tiles, const ColumnBlock* columns,
                       std::int64_t blocks, TileSums* sums);

// What run-time dispatch chose: "AVX3_DL" (AVX-512 with VNNI), "AVX3", "AVX2", "SSE4", "SSSE3",
// "NEON", "EMU128" or "SCALAR".
const char* integer_kernel_target();

// The targets that are compiled in and run here, as Highway's bits, for
// hwy::SetSupportedTargetsForTest.
std::int64_t integer_kernel_targets();

}  // namespace nibble
