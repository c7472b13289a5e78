// SPDX-License-Identifier: Apache-2.0
// A matrix [rows, columns] in NVFP4 or MXFP4: codes, block scales with their layout, tensor scale.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/error.h"
#include "core/format.h"
#include "core/scale_layout.h"

namespace nibble {

// The fp32 factor of a whole tensor. Inside nibble it multiplies; `divisor` keeps what a checkpoint
// stored where the producer divides (compressed-tensors), because fl(s / G) and fl(s * fl(1/G))
// differ.
struct TensorScale {
  float multiplier = 1.0f;
  std::optional<float> divisor;
};

// Does not own. `columns` is a multiple of the block size.
struct BlockTensorView {
  Format format = Format::nvfp4;
  std::int64_t rows = 0, columns = 0;
  std::int64_t code_stride_bytes = 0;   // from one row of codes to the next, at least columns / 2
  std::span<const std::uint8_t> codes;  // two a byte, low nibble even
  std::span<const std::uint8_t> scales;
  ScaleLayout layout;
  TensorScale tensor_scale;  // not applied by a GEMM: its alpha carries it

  std::int64_t blocks() const { return layout.blocks; }
  std::uint8_t code(std::int64_t row, std::int64_t column) const {
    const std::uint8_t byte = codes[static_cast<std::size_t>(row * code_stride_bytes + column / 2)];
    return (column & 1) ? static_cast<std::uint8_t>(byte >> 4)
                        : static_cast<std::uint8_t>(byte & 15);
  }
  std::uint8_t scale(std::int64_t row, std::int64_t block) const {
    return scales[static_cast<std::size_t>(layout.offset(row, block))];
  }
};

// Owns its bytes; rows are packed without padding.
struct BlockTensor {
  Format format = Format::nvfp4;
  std::int64_t rows = 0, columns = 0;
  std::vector<std::uint8_t> codes;
  std::vector<std::uint8_t> scales;
  ScaleLayout layout;
  TensorScale tensor_scale;

  BlockTensorView view() const;
};

// Zero codes and zero scales of the right sizes. Errors: negative sizes, columns no multiple of the
// block, more than 2^62 bytes.
Result<BlockTensor> make_block_tensor(Format format, std::int64_t rows, std::int64_t columns,
                                      ScaleOrder order = ScaleOrder::row_major);

// Errors name the field: sizes that contradict each other, a stride below the row, spans that are
// too short.
Status check(const BlockTensorView& view);

// The same tensor with its scales in another layout; pad bytes are zero. Errors as check().
Result<BlockTensor> relayout(const BlockTensorView& view, ScaleOrder order);

}  // namespace nibble
