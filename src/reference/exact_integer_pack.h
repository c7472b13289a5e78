// SPDX-License-Identifier: Apache-2.0
// NVFP4 operands in the order in which the integer kernel reads them.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/block_tensor.h"
#include "reference/exact_integer_kernel.h"

namespace nibble {

// Rows [row, row + kTileRows) of an NVFP4 tensor, blocks() entries; rows past `rows_end` are zero.
// Says which rows hold a NaN scale; its blocks count as zero.
std::array<bool, kTileRows> pack_rows(const BlockTensorView& a, std::int64_t row,
                                      std::int64_t rows_end, std::span<RowBlock> into);

// The same for rows [column, column + kTileColumns) of B.
std::array<bool, kTileColumns> pack_columns(const BlockTensorView& b, std::int64_t column,
                                            std::span<ColumnBlock> into);

}  // namespace nibble
