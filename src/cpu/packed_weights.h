// SPDX-License-Identifier: Apache-2.0
// B in the order in which the CPU kernels read it: panels of 16 columns of the product (rows of B),
// groups of 16 along k. Nothing but the codes and the scale bytes, and the same on every CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "core/block_tensor.h"

namespace nibble {

inline constexpr int kPanelColumns = 16;
inline constexpr int kGroupElements = 16;
inline constexpr int kGroupCodeBytes = kPanelColumns * kGroupElements / 2;

// On a 64-byte boundary.
class AlignedBytes {
 public:
  AlignedBytes() = default;
  // size() is 0 afterwards where there is no such memory.
  explicit AlignedBytes(std::int64_t size);

  std::uint8_t* data() { return bytes_.get(); }
  const std::uint8_t* data() const { return bytes_.get(); }
  std::int64_t size() const { return size_; }

 private:
  struct Free {
    void operator()(std::uint8_t* bytes) const { std::free(bytes); }
  };
  std::unique_ptr<std::uint8_t, Free> bytes_;
  std::int64_t size_ = 0;
};

// codes  [panel][group][2][column][4]: byte i of half h holds the codes of k = 8 h + i (low) and
//        8 h + 4 + i (high), counted within the group. Columns past the last are zero.
// scales [panel][block][column]: 16 elements a block for NVFP4, 32 for MXFP4.
struct PackedWeights {
  Format format = Format::nvfp4;
  std::int64_t columns = 0, k = 0;
  AlignedBytes codes, scales;
  std::vector<std::int64_t> nan_columns;  // with a NaN scale; ascending

  std::int64_t panels() const { return divide_up(columns, kPanelColumns); }
  std::int64_t groups() const { return k / kGroupElements; }
  std::int64_t blocks() const { return k / block_size(format); }
  const std::uint8_t* panel_codes(std::int64_t panel) const {
    return codes.data() + panel * groups() * kGroupCodeBytes;
  }
  const std::uint8_t* panel_scales(std::int64_t panel) const {
    return scales.data() + panel * blocks() * kPanelColumns;
  }
  std::uint8_t code(std::int64_t column, std::int64_t element) const;
  std::uint8_t scale(std::int64_t column, std::int64_t block) const {
    return panel_scales(column / kPanelColumns)[block * kPanelColumns + column % kPanelColumns];
  }
};

// `b` passed check(). Error of kind failed where there is too little memory.
Result<PackedWeights> pack_weights(const BlockTensorView& b);

}  // namespace nibble
