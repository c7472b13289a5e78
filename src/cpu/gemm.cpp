// SPDX-License-Identifier: Apache-2.0
#include "cpu/gemm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "cpu/activation_records.h"
#include "cpu/gemm_kernel.h"
#include "cpu/wide_dot.h"
#include "cpu/worker_pool.h"

namespace nibble {
namespace {

// Rows whose records are made at once, and rows of one piece of work.
constexpr std::int64_t kBatchRows = 1024, kPieceRows = 256;
// Groups of two panels that are decoded at once: 15 KiB, beside them rows stream through L1.
constexpr std::int64_t kDecodedGroups = 24;
// Below this many multiply-adds waking a thread costs more than it brings.
constexpr double kWorthThreads = 1 << 18;
// One row alone reads this much of B a piece.
constexpr std::int64_t kPieceBytes = 128 << 10;

// Rows [begin, begin + rows) of A.
struct Batch {
  std::int64_t begin = 0, rows = 0;
  std::vector<RowKind> kinds;
  std::vector<std::vector<ExtraDenseRecord>> extra;
};

template <class R>
class Multiplication {
 public:
  Multiplication(const CpuGemm& gemm, const PackedWeights& b, std::int64_t m, std::span<R> records)
      : gemm_(gemm), b_(b), m_(m), records_(records), kernels_(gemm_kernels()) {
    const double multiply_adds = static_cast<double>(m) * static_cast<double>(b.columns * b.k);
    threads_ = multiply_adds < kWorthThreads ? 1 : gemm.threads;
  }

  void run() {
    for (std::int64_t begin = 0; begin < m_; begin += kBatchRows) {
      make_batch(begin);
      m_ == 1 ? run_row() : run_batch();
    }
  }

 private:
  static constexpr bool kDense = std::is_same_v<R, DenseRecord>;

  void make_batch(std::int64_t begin) {
    batch_.begin = begin;
    batch_.rows = std::min(kBatchRows, m_ - begin);
    batch_.kinds.assign(static_cast<std::size_t>(batch_.rows), RowKind::records);
    batch_.extra.resize(static_cast<std::size_t>(batch_.rows));
    const std::int64_t tiles = m_ == 1 ? 1 : divide_up(batch_.rows, kTileRows);
    WorkerPool::shared().run(threads_, tiles, [&](std::int64_t tile) { make_tile(tile); });
  }

  void make_tile(std::int64_t tile) {
    const std::int64_t groups = b_.groups();
    const int width = m_ == 1 ? 1 : kTileRows;
    std::vector<R> row_records(static_cast<std::size_t>(groups));
    for (int r = 0; r < width; ++r) {
      const std::int64_t row = tile * width + r;
      if (row < batch_.rows) {
        make_row(row, row_records);
      } else {
        std::fill(row_records.begin(), row_records.end(), R{});
      }
      for (std::int64_t begin = 0; begin < groups; begin += kDecodedGroups) {
        R* to = tile_records(tile, begin);
        const std::int64_t end = std::min(groups, begin + kDecodedGroups);
        for (std::int64_t group = begin; group < end; ++group, to += width) {
          to[r] = row_records[static_cast<std::size_t>(group)];
        }
      }
    }
  }

  // The records of a tile from group `begin`, the first of a chunk of kDecodedGroups, as [group -
  // begin][row % kTileRows]. Chunks, and in them tiles, follow in the order in which a piece reads
  // them. A problem of one row has just [group].
  R* tile_records(std::int64_t tile, std::int64_t begin) const {
    if (m_ == 1) return records_.data() + begin;
    const std::int64_t tiles = divide_up(batch_.rows, kTileRows);
    const std::int64_t count = std::min(kDecodedGroups, b_.groups() - begin);
    return records_.data() + (begin * tiles + tile * count) * kTileRows;
  }

  void make_row(std::int64_t row, std::span<R> into) {
    const auto i = static_cast<std::size_t>(row);
    if constexpr (kDense) {
      batch_.kinds[i] = make_records(std::get<DenseTensorView>(gemm_.a), batch_.begin + row,
                                     b_.format, into, batch_.extra[i]);
    } else {
      batch_.kinds[i] =
          make_records(std::get<BlockTensorView>(gemm_.a), batch_.begin + row, b_.format, into);
    }
  }

  PanelView panel(std::int64_t index, std::int64_t group, std::int64_t groups) const {
    return {b_.format, b_.panel_codes(index) + group * kGroupCodeBytes,
            b_.panel_scales(index) + group * kGroupElements / block_size(b_.format) * kPanelColumns,
            groups};
  }

  void run_row() {
    const std::int64_t panel_bytes = std::max<std::int64_t>(1, b_.groups() * kGroupCodeBytes);
    const std::int64_t panels_a_piece = std::max<std::int64_t>(1, kPieceBytes / panel_bytes);
    WorkerPool::shared().run(
        threads_, divide_up(b_.panels(), panels_a_piece), [&](std::int64_t piece) {
          const std::int64_t end = std::min(b_.panels(), (piece + 1) * panels_a_piece);
          for (std::int64_t p = piece * panels_a_piece; p < end; ++p) run_panel_of_row(p);
        });
  }

  void run_panel_of_row(std::int64_t index) {
    alignas(64) float sums[kPanelColumns] = {};
    if constexpr (kDense) {
      kernels_.add_dense(records_.data(), panel(index, 0, b_.groups()), sums);
    } else {
      kernels_.add_codes(records_.data(), panel(index, 0, b_.groups()), sums);
    }
    add_extra(0, index, sums);
    finish(0, index * kPanelColumns, kPanelColumns, sums);
  }

  void add_extra(std::int64_t row, std::int64_t index, float* sums) const {
    if constexpr (kDense) {
      DecodedGroup decoded;
      std::int64_t at = -1;
      for (const auto& [group, record] : batch_.extra[static_cast<std::size_t>(row)]) {
        if (group != at) kernels_.decode(panel(index, group, 1), &decoded);
        at = group;
        kernels_.add_dense_group(record, decoded, sums);
      }
    }
  }

  void run_batch() {
    const std::int64_t row_pieces = divide_up(batch_.rows, kPieceRows);
    const std::int64_t column_pieces = divide_up(b_.panels(), kTilePanels);
    WorkerPool::shared().run(threads_, row_pieces * column_pieces, [&](std::int64_t piece) {
      run_piece(piece % row_pieces * kPieceRows, piece / row_pieces * kTilePanels);
    });
  }

  // Rows [row, row + kPieceRows) of the batch and two panels.
  void run_piece(std::int64_t row, std::int64_t first_panel) {
    const std::int64_t rows = std::min(kPieceRows, batch_.rows - row), groups = b_.groups();
    const std::int64_t tiles = divide_up(rows, kTileRows);
    std::vector<float> sums(static_cast<std::size_t>(tiles * kTileRows * kTileColumns));
    std::array<DecodedGroup, kTilePanels * kDecodedGroups> decoded{};
    for (std::int64_t begin = 0; begin < groups; begin += kDecodedGroups) {
      const std::int64_t count = std::min(kDecodedGroups, groups - begin);
      for (std::int64_t p = 0; p < kTilePanels && first_panel + p < b_.panels(); ++p) {
        kernels_.decode(panel(first_panel + p, begin, count), decoded.data() + p * kDecodedGroups);
      }
      for (std::int64_t tile = 0; tile < tiles; ++tile) {
        const R* records = tile_records(row / kTileRows + tile, begin);
        float* to = sums.data() + tile * kTileRows * kTileColumns;
        if constexpr (kDense) {
          kernels_.add_dense_tile(records, decoded.data(), kDecodedGroups, count, to);
        } else {
          kernels_.add_code_tile(records, decoded.data(), kDecodedGroups, count, to);
        }
      }
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      float* of_row = sums.data() + r * kTileColumns;
      for (std::int64_t p = 0; p < kTilePanels && first_panel + p < b_.panels(); ++p) {
        add_extra(row + r, first_panel + p, of_row + p * kPanelColumns);
      }
      finish(row + r, first_panel * kPanelColumns, kTileColumns, of_row);
    }
  }

  void write(std::int64_t row, std::int64_t column, float value) const {
    std::byte* to = gemm_.output + (batch_.begin + row) * gemm_.out_row_stride_bytes +
                    column * out_bytes(gemm_.out);
    const std::uint16_t narrow =
        gemm_.out == OutType::bf16 ? bf16_encode(value) : f16_encode(value);
    gemm_.out == OutType::f32 ? std::memcpy(to, &value, 4) : std::memcpy(to, &narrow, 2);
  }

  // `sums` of columns [column, column + at most `width`). What overflowed on the way stays inf or
  // becomes NaN, and is computed again in double: exponents of MXFP4 may cancel.
  void finish(std::int64_t row, std::int64_t column, std::int64_t width, const float* sums) const {
    const std::int64_t end = std::min(column + width, b_.columns);
    const RowKind kind = batch_.kinds[static_cast<std::size_t>(row)];
    const OutputRow to{gemm_.out,
                       gemm_.output + (batch_.begin + row) * gemm_.out_row_stride_bytes +
                           column * out_bytes(gemm_.out),
                       end - column, gemm_.alpha};
    const bool finite = kernels_.store(sums, to);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (std::int64_t c = column; c < end && (kind != RowKind::records || !finite); ++c) {
      if (kind == RowKind::nan) {
        write(row, c, nan);
      } else if (kind == RowKind::not_finite || !std::isfinite(sums[c - column])) {
        const double sum = wide_dot(gemm_.a, batch_.begin + row, b_, c);
        write(row, c, static_cast<float>(static_cast<double>(gemm_.alpha) * sum));
      }
    }
    const auto& nans = b_.nan_columns;
    for (auto c = std::lower_bound(nans.begin(), nans.end(), column); c != nans.end() && *c < end;
         ++c) {
      write(row, *c, nan);
    }
  }

  const CpuGemm& gemm_;
  const PackedWeights& b_;
  std::int64_t m_;
  std::span<R> records_;
  const GemmKernels& kernels_;
  int threads_ = 1;
  Batch batch_;
};

std::int64_t record_count(const GemmShape& shape) {
  const std::int64_t rows =
      shape.m <= 1 ? shape.m : round_up(std::min(shape.m, kBatchRows), kTileRows);
  return rows * (shape.k / kGroupElements);
}

template <class R>
void multiply(const CpuGemm& gemm, const PackedWeights& b, std::int64_t m,
              std::span<std::byte> workspace) {
  void* start = workspace.data();
  std::size_t space = workspace.size();
  const auto count = static_cast<std::size_t>(record_count({m, b.columns, b.k}));
  NIBBLE_CHECK(count == 0 || std::align(alignof(R), count * sizeof(R), start, space) != nullptr,
               "the workspace is as long as was asked for");
  Multiplication<R>(gemm, b, m, {static_cast<R*>(start), count}).run();
}

}  // namespace

std::int64_t cpu_gemm_workspace_bytes(const GemmShape& shape, Activation a) {
  const std::size_t record = is_block_format(a) ? sizeof(CodeRecord) : sizeof(DenseRecord);
  return record_count(shape) * static_cast<std::int64_t>(record) + 64;
}

void cpu_gemm(const CpuGemm& gemm, const PackedWeights& b, std::span<std::byte> workspace) {
  const std::int64_t m = std::visit([](const auto& a) { return a.rows; }, gemm.a);
  if (m == 0 || b.columns == 0) return;
  if (std::holds_alternative<BlockTensorView>(gemm.a)) {
    multiply<CodeRecord>(gemm, b, m, workspace);
  } else {
    multiply<DenseRecord>(gemm, b, m, workspace);
  }
}

}  // namespace nibble
