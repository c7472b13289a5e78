// SPDX-License-Identifier: Apache-2.0
// Random and adversarial operands for the tests of the exact product.
#pragma once

#include <cstring>
#include <random>
#include <vector>

#include "core/gemm_operands.h"

namespace nibble::test {

using Random = std::mt19937_64;

inline std::int64_t between(Random& random, std::int64_t least, std::int64_t greatest) {
  return std::uniform_int_distribution<std::int64_t>(least, greatest)(random);
}

// A block tensor whose rows of codes may lie further apart than they are long.
struct BlockOperand {
  BlockTensor tensor;
  std::vector<std::uint8_t> spread_codes;
  std::int64_t stride = 0;

  BlockTensorView view() const {
    BlockTensorView view = tensor.view();
    view.code_stride_bytes = stride;
    view.codes = spread_codes;
    return view;
  }
};

// Moves the codes of `tensor` to a stride `extra` bytes longer; the gap holds 0xEE.
inline BlockOperand spread(BlockTensor tensor, std::int64_t extra) {
  BlockOperand operand{std::move(tensor), {}, 0};
  const auto row_bytes = static_cast<std::size_t>(operand.tensor.columns / 2);
  operand.stride = static_cast<std::int64_t>(row_bytes) + extra;
  operand.spread_codes.assign(static_cast<std::size_t>(operand.tensor.rows * operand.stride), 0xEE);
  for (std::int64_t row = 0; row < operand.tensor.rows && row_bytes > 0; ++row) {
    std::memcpy(operand.spread_codes.data() + row * operand.stride,
                operand.tensor.codes.data() + static_cast<std::size_t>(row) * row_bytes, row_bytes);
  }
  return operand;
}

// Any codes; scale bytes in [least, greatest], with any sign bit where the format is nvfp4. Pad
// bytes of the scales are NaN.
inline BlockTensor random_block_tensor(Random& random, Format format, std::int64_t rows,
                                       std::int64_t columns, ScaleOrder order, int least,
                                       int greatest) {
  BlockTensor tensor = *make_block_tensor(format, rows, columns, order);
  for (auto& byte : tensor.codes) byte = static_cast<std::uint8_t>(random());
  for (auto& byte : tensor.scales) byte = 0xFF;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t block = 0; block < tensor.layout.blocks; ++block) {
      auto byte = static_cast<std::uint8_t>(between(random, least, greatest));
      if (format == Format::nvfp4 && (random() & 1)) byte |= 0x80;
      tensor.scales[static_cast<std::size_t>(tensor.layout.offset(row, block))] = byte;
    }
  }
  return tensor;
}

inline void set_code(BlockTensor& tensor, std::int64_t row, std::int64_t column,
                     std::uint8_t code) {
  std::uint8_t& byte =
      tensor.codes[static_cast<std::size_t>(row * (tensor.columns / 2) + column / 2)];
  byte =
      static_cast<std::uint8_t>((column & 1) ? (byte & 0x0F) | (code << 4) : (byte & 0xF0) | code);
}

inline void set_scale(BlockTensor& tensor, std::int64_t row, std::int64_t block,
                      std::uint8_t byte) {
  tensor.scales[static_cast<std::size_t>(tensor.layout.offset(row, block))] = byte;
}

inline BlockTensor filled(Format format, std::int64_t rows, std::int64_t columns, std::uint8_t code,
                          std::uint8_t scale) {
  BlockTensor tensor = *make_block_tensor(format, rows, columns);
  for (auto& byte : tensor.codes) byte = static_cast<std::uint8_t>(code | (code << 4));
  for (auto& byte : tensor.scales) byte = scale;
  return tensor;
}

}  // namespace nibble::test
