// SPDX-License-Identifier: Apache-2.0
// Quantizers on the CPU, written as the specification: each rule is one sequence of operations
// (docs/formats.md).
#pragma once

#include <cstdint>
#include <span>

#include "core/block_tensor.h"
#include "core/error.h"

namespace nibble {

enum class Nvfp4Rule : std::uint8_t { rn, modelopt, torchao, compressed_tensors, flashinfer };
enum class Mxfp4Rule : std::uint8_t {
  floor,
  ceil,
  even,
  modelopt,
  compressed_tensors,
  torchao_floor,
  gguf
};

template <>
struct EnumNames<Nvfp4Rule> {
  static constexpr std::array table{
      std::pair{Nvfp4Rule::rn, std::string_view("rn")},
      std::pair{Nvfp4Rule::modelopt, std::string_view("modelopt")},
      std::pair{Nvfp4Rule::torchao, std::string_view("torchao")},
      std::pair{Nvfp4Rule::compressed_tensors, std::string_view("compressed_tensors")},
      std::pair{Nvfp4Rule::flashinfer, std::string_view("flashinfer")}};
};

struct Quantized {
  BlockTensor tensor;                   // row_major scales
  std::int64_t lost_to_zero_scale = 0;  // non-zero elements in blocks whose scale rounded to zero
};

// x is [rows, columns], row-major. Errors: columns no multiple of the block; NaN or inf, naming row
// and column.
Result<Quantized> quantize_nvfp4(std::span<const float> x, std::int64_t rows, std::int64_t columns,
                                 Nvfp4Rule rule);
Result<Quantized> quantize_mxfp4(std::span<const float> x, std::int64_t rows, std::int64_t columns,
                                 Mxfp4Rule rule);

}  // namespace nibble
