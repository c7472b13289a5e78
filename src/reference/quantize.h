// SPDX-License-Identifier: Apache-2.0
// Quantizers on the CPU, written as the specification: each rule is one sequence of operations
// (docs/formats.md, section 6).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/block_tensor.h"
#include "core/error.h"

namespace nibble {

// rn and floor, ceil, even are nibble's own; the others are the sequences of the producers they are
// named after.
enum class Nvfp4Rule : std::uint8_t { rn, modelopt, torchao, compressed_tensors, flashinfer };
enum class Mxfp4Rule : std::uint8_t {
  floor,
  ceil,
  even,
  modelopt,
  compressed_tensors,
  torchao_floor,
  torchao_rceil,
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
template <>
struct EnumNames<Mxfp4Rule> {
  static constexpr std::array table{
      std::pair{Mxfp4Rule::floor, std::string_view("floor")},
      std::pair{Mxfp4Rule::ceil, std::string_view("ceil")},
      std::pair{Mxfp4Rule::even, std::string_view("even")},
      std::pair{Mxfp4Rule::modelopt, std::string_view("modelopt")},
      std::pair{Mxfp4Rule::compressed_tensors, std::string_view("compressed_tensors")},
      std::pair{Mxfp4Rule::torchao_floor, std::string_view("torchao_floor")},
      std::pair{Mxfp4Rule::torchao_rceil, std::string_view("torchao_rceil")},
      std::pair{Mxfp4Rule::gguf, std::string_view("gguf")}};
};

struct QuantizeOptions {
  // NVFP4: the largest magnitude that the tensor scale is made of, where x is a part of a larger
  // tensor (q, k and v that share one scale). Default: that of x. Finite, not negative.
  std::optional<float> tensor_amax;
  // NVFP4: the tensor scale itself, then tensor_amax must be absent. Rules that divide
  // (compressed_tensors, flashinfer) take `divisor`, the others `multiplier`: from 2^-126 up. A
  // multiplier of 1 gives torchao's one-level form.
  std::optional<TensorScale> tensor_scale;
  // compressed_tensors computes in the weights' type: where that was bf16, so are its divisor and
  // bm / 6, and the quotient of MXFP4. Other rules ignore it.
  bool source_is_bf16 = false;
  // Rows from here on are not read; their codes and scales are zero. Default: rows.
  std::optional<std::int64_t> live_rows;
};

struct Quantized {
  BlockTensor tensor;                   // row_major scales
  std::int64_t lost_to_zero_scale = 0;  // non-zero elements in blocks whose scale rounded to zero
};

// x is [rows, columns], row-major; -0 and subnormals are values like others. Values beyond what the
// tensor scale reaches saturate. Errors: sizes (columns no multiple of the block, x too short); NaN
// or inf under every rule, naming row and column; options out of their range.
Result<Quantized> quantize_nvfp4(std::span<const float> x, std::int64_t rows, std::int64_t columns,
                                 Nvfp4Rule rule, const QuantizeOptions& options = {});
Result<Quantized> quantize_mxfp4(std::span<const float> x, std::int64_t rows, std::int64_t columns,
                                 Mxfp4Rule rule, const QuantizeOptions& options = {});

}  // namespace nibble
