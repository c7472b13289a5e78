// SPDX-License-Identifier: Apache-2.0
// The operands of one GEMM in host memory, as views; and its output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "core/block_tensor.h"
#include "core/gemm_problem.h"
#include "core/small_floats.h"

namespace nibble {

enum class DenseType : std::uint8_t { bf16, f16, f32 };
constexpr int dense_bytes(DenseType type) { return type == DenseType::f32 ? 4 : 2; }

// A [rows, columns] of bf16, f16 or f32, row after row.
struct DenseTensorView {
  DenseType type = DenseType::bf16;
  std::int64_t rows = 0, columns = 0;
  std::int64_t row_stride_bytes = 0;
  std::span<const std::byte> data;

  float value(std::int64_t row, std::int64_t column) const;  // exact
};

// A [rows, columns] in llama.cpp's Q8_0: 34 bytes hold 32 elements, an f16 scale d and then 32 int8
// q; value d * q.
struct Q8TensorView {
  std::int64_t rows = 0, columns = 0;  // columns a multiple of 32
  std::span<const std::byte> data;     // rows * columns / 32 * 34 bytes

  float value(std::int64_t row, std::int64_t column) const;  // exact
};

using ActivationView = std::variant<BlockTensorView, DenseTensorView, Q8TensorView>;

// alpha is the one fp32 factor of the product: tensor scales inside the views are not applied
// again.
struct GemmInputs {
  ActivationView a;
  BlockTensorView b;
  float alpha = 1.0f;
};

GemmShape shape_of(const GemmInputs& inputs);

// Errors name the operand: sizes, strides, spans, k of A and B that differ.
Status check(const DenseTensorView& view);
Status check(const Q8TensorView& view);
Status check(const GemmInputs& inputs);

// D [rows, columns] in host memory.
struct OutputView {
  OutType type = OutType::bf16;
  std::int64_t rows = 0, columns = 0;
  std::int64_t row_stride_bytes = 0;
  std::span<const std::byte> data;

  std::uint32_t bits(std::int64_t row, std::int64_t column) const;  // bf16 and f16 in the low half
  float value(std::int64_t row, std::int64_t column) const;
};

// The value that `bits` stand for in `type`; exact.
float out_value(OutType type, std::uint32_t bits);

}  // namespace nibble
