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

// From the sums of an element to the element.
class Finish {
 public:
  Finish(const GemmInputs& inputs, OutType out)
      : inputs_(inputs), alpha_(decode_alpha(inputs.alpha)), out_(out) {}

  ExactElement operator()(std::int64_t sum, double absolute, std::int64_t row,
                          std::int64_t column) const {
    ExactElement element = value(sum);
    if (!alpha_.finite) return element;
    element.magnitude =
        absolute * (1 + kInflation) * (std::fabs(static_cast<double>(alpha_.value)) * kUnit);
    if (element.magnitude < kFp32Overflow) return element;
    // Only an exact S says on which side of the limit it lies.
    if (element.magnitude * (1 - 2 * kInflation) < kFp32Overflow)
      return superaccumulator_element(inputs_, row, column, out_);
    element.outside_fp32 = true;
    return element;
  }

  ExactElement not_a_number() const { return special_element(std::nan(""), alpha_, out_); }

 private:
  static constexpr double kFp32Overflow = 0x1p128;
  // Makes up for kAbsoluteError, and for the roundings of the product above.
  static constexpr double kInflation = 8.0 / (1 << 24);
  static_assert((1 - kAbsoluteError) * (1 + kInflation) > 1 + 0x1p-26);

  ExactElement value(std::int64_t sum) const {
    if (!alpha_.finite || std::abs(sum) >= kMaxExactFactor) {
      Magnitude exact;
      exact.limbs[0] = static_cast<std::uint64_t>(std::abs(sum));
      exact.count = 1;
      exact.exponent = kUnitExponent;
      return finish_value(sum < 0, exact, alpha_, out_);
    }
    ExactElement element;
    if (sum == 0 || alpha_.value == 0) return element;
    const RoundedProduct product = multiply_once(sum, alpha_.value);
    element.value = product.nearest * kUnit;
    element.rounded = round_odd_to(out_, product.odd * kUnit);
    return element;
  }

  const GemmInputs& inputs_;
  Alpha alpha_;
  OutType out_;
};

// A chunk of rows of A, packed; every thread reads it.
struct PackedRows {
  std::int64_t begin = 0, rows = 0, tiles = 0;  // begin counts from the panel's first row
  std::vector<RowBlock> blocks;                 // [tile][block]
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

void column_tile(const GemmInputs& inputs, const PackedRows& a, const Finish& finish,
                 std::int64_t first_column, ColumnWork& work, ExactPanel& panel) {
  work.blocks.resize(static_cast<std::size_t>(inputs.b.blocks()));
  work.sums.assign(static_cast<std::size_t>(a.tiles), TileSums{});
  const auto column_nan = pack_columns(inputs.b, first_column, work.blocks);
  add_tile_products(a.blocks.data(), a.tiles, work.blocks.data(), inputs.b.blocks(),
                    work.sums.data());
  const std::int64_t columns = std::min<std::int64_t>(kTileColumns, panel.columns - first_column);
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const auto tile = static_cast<std::size_t>(row / kTileRows);
    const auto lane = static_cast<std::size_t>(row % kTileRows);
    for (std::int64_t i = 0; i < columns; ++i) {
      const auto c = static_cast<std::size_t>(i);
      const bool nan = a.has_nan[tile][lane] || column_nan[c];
      const std::int64_t panel_row = a.begin + row, column = first_column + i;
      store(nan ? finish.not_a_number()
                : finish(work.sums[tile].sum[lane][c], work.sums[tile].absolute[lane][c],
                         panel.row_begin + panel_row, column),
            panel_row * panel.columns + column, panel);
    }
  }
}

}  // namespace

std::int64_t max_integer_k() { return kMaxIntegerBlocks * 16; }

void integer_product(const GemmInputs& inputs, int threads, ExactPanel& panel) {
  const auto& a = std::get<BlockTensorView>(inputs.a);
  const Finish finish(inputs, panel.out);
  const std::int64_t chunk = rows_at_once(a.blocks());
  PackedRows rows;
  for (std::int64_t begin = 0; begin < panel.rows; begin += chunk) {
    pack(a, panel, begin, std::min(chunk, panel.rows - begin), threads, rows);
    for_each_piece(divide_up(panel.columns, kTileColumns), 4, threads,
                   [&](std::int64_t tile, std::int64_t end) {
                     ColumnWork work;
                     for (; tile < end; ++tile)
                       column_tile(inputs, rows, finish, tile * kTileColumns, work, panel);
                   });
  }
}

}  // namespace nibble
