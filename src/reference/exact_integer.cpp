// SPDX-License-Identifier: Apache-2.0
#include "reference/exact_integer.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "reference/exact_integer_pack.h"
#include "reference/exact_integer_rounding.h"
#include "reference/exact_superaccumulator.h"
#include "reference/exact_threads.h"

namespace nibble {
namespace {

constexpr std::int64_t kRowsAtOnce = 256;
constexpr std::int64_t kPackedRowsBytes = std::int64_t{16} << 20;
constexpr int kUnitExponent = -20;  // of TileSums
constexpr double kUnit = 0x1p-20;

// From the sums of elements to the elements.
class Finish {
 public:
  Finish(const GemmInputs& inputs, ExactPanel& panel)
      : inputs_(inputs), alpha_(decode_alpha(inputs.alpha)), panel_(panel) {}

  // Row `panel_row` of the panel, `count` columns from `column` on.
  void row(const std::int64_t* sums, const double* absolute, std::int64_t panel_row,
           std::int64_t column, std::int64_t count) const {
    switch (panel_.out) {
      case OutType::bf16:
        return row_of<OutType::bf16>(sums, absolute, panel_row, column, count);
      case OutType::f16:
        return row_of<OutType::f16>(sums, absolute, panel_row, column, count);
      case OutType::f32:
        return row_of<OutType::f32>(sums, absolute, panel_row, column, count);
    }
  }

  void not_a_number(std::int64_t panel_row, std::int64_t column) const {
    store(special_element(std::nan(""), alpha_, panel_.out), index(panel_row, column), panel_);
  }

 private:
  static constexpr double kFp32Overflow = 0x1p128;
  // Makes up for kAbsoluteError, and for the roundings of the products below.
  static constexpr double kInflation = 8.0 / (1 << 24);
  static_assert((1 - kAbsoluteError) * (1 + kInflation) > 1 + 0x1p-26);

  std::int64_t index(std::int64_t panel_row, std::int64_t column) const {
    return panel_row * panel_.columns + column;
  }

  template <OutType kOut>
  void row_of(const std::int64_t* sums, const double* absolute, std::int64_t panel_row,
              std::int64_t column, std::int64_t count) const {
    const std::int64_t first = index(panel_row, column);
    const double alpha = alpha_.value;
    const double to_magnitude = (1 + kInflation) * std::fabs(alpha) * kUnit;
    std::uint32_t* rounded = panel_.rounded.data() + first;
    double* value = panel_.value.data() + first;
    double* magnitudes = panel_.magnitude.data() + first;
    for (std::int64_t i = 0; i < count; ++i) {
      const double magnitude = absolute[i] * to_magnitude;
      if (!alpha_.finite || std::abs(sums[i]) >= kMaxExactFactor || magnitude >= kFp32Overflow) {
        store(general(sums[i], magnitude, panel_row, column + i), first + i, panel_);
        continue;
      }
      const RoundedProduct product = multiply_once(sums[i], alpha_.value);
      rounded[i] = round_odd_to<kOut>(product.odd * kUnit);
      value[i] = product.nearest * kUnit;
      magnitudes[i] = magnitude;
    }
  }

  ExactElement general(std::int64_t sum, double magnitude, std::int64_t panel_row,
                       std::int64_t column) const {
    Magnitude exact;
    exact.limbs[0] = static_cast<std::uint64_t>(std::abs(sum));
    exact.count = 1;
    exact.exponent = kUnitExponent;
    ExactElement element = finish_value(sum < 0, exact, alpha_, panel_.out);
    if (!alpha_.finite) return element;
    element.magnitude = magnitude;
    element.outside_fp32 = magnitude * (1 - 2 * kInflation) >= kFp32Overflow;
    // In between, only an exact S says on which side of 2^128 it lies.
    if (magnitude < kFp32Overflow || element.outside_fp32) return element;
    return superaccumulator_element(inputs_, panel_.row_begin + panel_row, column, panel_.out);
  }

  const GemmInputs& inputs_;
  Alpha alpha_;
  ExactPanel& panel_;
};

// A chunk of rows of A, packed; every thread reads it.
struct PackedRows {
  std::int64_t begin = 0;  // counts from the panel's first row
  std::int64_t rows = 0, tiles = 0;
  std::vector<RowBlock> blocks;  // [tile][block]
  std::vector<std::array<bool, kTileRows>> has_nan;
};

// Whole tiles within the budget.
std::int64_t rows_at_once(std::int64_t blocks) {
  const std::int64_t tile_bytes = static_cast<std::int64_t>(sizeof(RowBlock)) * (blocks + 1);
  return std::clamp<std::int64_t>(kPackedRowsBytes / tile_bytes * kTileRows, kTileRows,
                                  kRowsAtOnce);
}

void pack(const BlockTensorView& a, const ExactPanel& panel, std::int64_t begin, std::int64_t rows,
          int threads, PackedRows& into) {
  const std::int64_t blocks = a.blocks();
  into.begin = begin;
  into.rows = rows;
  into.tiles = divide_up(rows, kTileRows);
  into.blocks.resize(static_cast<std::size_t>(into.tiles * blocks));
  into.has_nan.resize(static_cast<std::size_t>(into.tiles));
  const std::int64_t first = panel.row_begin + begin;
  for_each_piece(into.tiles, 4, threads, [&](std::int64_t tile, std::int64_t end) {
    for (; tile < end; ++tile) {
      const auto at = static_cast<std::size_t>(tile);
      into.has_nan[at] = pack_rows(
          a, first + tile * kTileRows, first + rows,
          std::span(into.blocks)
              .subspan(at * static_cast<std::size_t>(blocks), static_cast<std::size_t>(blocks)));
    }
  });
}

// What one thread needs for a tile of columns.
struct ColumnWork {
  std::vector<ColumnBlock> blocks;
  std::vector<TileSums> sums;
};

void column_tile(const BlockTensorView& b, const PackedRows& a, const Finish& finish,
                 std::int64_t first_column, ColumnWork& work) {
  work.blocks.resize(static_cast<std::size_t>(b.blocks()));
  work.sums.assign(static_cast<std::size_t>(a.tiles), TileSums{});
  const auto column_nan = pack_columns(b, first_column, work.blocks);
  add_tile_products(a.blocks.data(), a.tiles, work.blocks.data(), b.blocks(), work.sums.data());
  const std::int64_t columns = std::min<std::int64_t>(kTileColumns, b.rows - first_column);
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const auto tile = static_cast<std::size_t>(row / kTileRows);
    const auto lane = static_cast<std::size_t>(row % kTileRows);
    finish.row(work.sums[tile].sum[lane], work.sums[tile].absolute[lane], a.begin + row,
               first_column, columns);
    for (std::int64_t i = 0; i < columns; ++i) {
      if (a.has_nan[tile][lane] || column_nan[static_cast<std::size_t>(i)])
        finish.not_a_number(a.begin + row, first_column + i);
    }
  }
}

}  // namespace

std::int64_t max_integer_k() { return kMaxIntegerBlocks * 16; }

void integer_product(const GemmInputs& inputs, int threads, ExactPanel& panel) {
  const auto& a = std::get<BlockTensorView>(inputs.a);
  const Finish finish(inputs, panel);
  const std::int64_t chunk = rows_at_once(a.blocks());
  PackedRows rows;
  for (std::int64_t begin = 0; begin < panel.rows; begin += chunk) {
    pack(a, panel, begin, std::min(chunk, panel.rows - begin), threads, rows);
    for_each_piece(divide_up(panel.columns, kTileColumns), 4, threads,
                   [&](std::int64_t tile, std::int64_t end) {
                     ColumnWork work;
                     for (; tile < end; ++tile)
                       column_tile(inputs.b, rows, finish, tile * kTileColumns, work);
                   });
  }
}

}  // namespace nibble
