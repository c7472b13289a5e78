// SPDX-License-Identifier: Apache-2.0
// The inner loops of the CPU GEMM, one table of functions for each instruction set.
//
// All of them compute, group after group along k,
//   sum[n] = fma(float(dot) * record.scale, block scale of B, sum[n])
// where dot is an exact integer. For W4A4 the first product is exact too, so that a group costs one
// rounding of the running sum; for W4A16 dot is rounded once more where it exceeds 24 bits. As the
// order along k is fixed, neither threads nor tiles nor the instruction set change a bit (without
// FMA, SSE4 and below, the second product is rounded apart, which matters for W4A16 only).
//
// bf16 dot products (vdpbf16ps) are not used: they flush subnormals and round to odd on the way.
#pragma once

#include <cstdint>

#include "cpu/activation_records.h"
#include "cpu/packed_weights.h"

namespace nibble {

// Two neighbouring panels, as far as the tile functions go; rows that share a pass over B.
inline constexpr int kTileRows = 4, kTilePanels = 2;
inline constexpr int kTileColumns = kTilePanels * kPanelColumns;

// A group of a panel, decoded once for many rows: index [k / 4][column][k % 4].
struct alignas(64) DecodedGroup {
  std::uint8_t codes_plus_12[4][kPanelColumns][4];
  float scales[kPanelColumns];
};

struct PanelView {
  Format format = Format::nvfp4;
  const std::uint8_t* codes = nullptr;   // at a group, on a 64-byte boundary
  const std::uint8_t* scales = nullptr;  // at the block of that group
  std::int64_t groups = 0;
};

// Where the values of one row go: `count` of `type`, not aligned.
struct OutputRow {
  OutType type = OutType::bf16;
  std::byte* to = nullptr;
  std::int64_t count = 0;
  float alpha = 1;
};

struct GemmKernels {
  // sums[16] += row * panel, codes decoded on the way: for one row.
  void (*add_codes)(const CodeRecord* row, const PanelView& panel, float* sums);
  void (*add_dense)(const DenseRecord* row, const PanelView& panel, float* sums);
  // A single group.
  void (*add_dense_group)(const DenseRecord& record, const DecodedGroup& group, float* sums);
  // The first group of the panel has an even index.
  void (*decode)(const PanelView& panel, DecodedGroup* groups);
  // sums[kTileRows][kTileColumns] += rows * panels. rows is [group][kTileRows]; panels 0 and 1 are
  // columns[0 ..] and columns[panel_stride ..].
  void (*add_code_tile)(const CodeRecord* rows, const DecodedGroup* columns,
                        std::int64_t panel_stride, std::int64_t groups, float* sums);
  void (*add_dense_tile)(const DenseRecord* rows, const DecodedGroup* columns,
                         std::int64_t panel_stride, std::int64_t groups, float* sums);
  // Writes alpha * sums rounded to nearest even. False where a sum is inf or NaN.
  bool (*store)(const float* sums, const OutputRow& row);
  const char* target;  // "AVX3_DL" is AVX-512 with VNNI
};

// Of the best instruction set of this CPU.
const GemmKernels& gemm_kernels();

// The instruction sets that are compiled in and run here, as Highway's bits, for
// hwy::SetSupportedTargetsForTest.
std::int64_t gemm_kernel_targets();

}  // namespace nibble
