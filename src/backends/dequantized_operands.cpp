// SPDX-License-Identifier: Apache-2.0
#include "backends/dequantized_operands.h"

#include <array>
#include <cstring>

#include "core/e2m1.h"

namespace nibble {
namespace {

float scale_value(Format format, std::uint8_t byte) {
  return format == Format::nvfp4 ? e4m3_scale(byte) : e8m0_value(byte);
}

template <class T>
T narrowed(float value) {
  if constexpr (std::is_same_v<T, float>) {
    return value;
  } else {
    return bf16_encode(value);
  }
}

template <class T>
void dequantize_blocks(const BlockTensorView& tensor, T* out) {
  const int block_columns = block_size(tensor.format);
  for (std::int64_t row = 0; row < tensor.rows; ++row) {
    for (std::int64_t block = 0; block < tensor.blocks(); ++block) {
      const float scale = scale_value(tensor.format, tensor.scale(row, block));
      std::array<T, 16> value_of_code;
      for (int code = 0; code < 16; ++code) {
        value_of_code[code] = narrowed<T>(e2m1_value(static_cast<std::uint8_t>(code)) * scale);
      }
      const std::uint8_t* bytes = &tensor.codes[static_cast<std::size_t>(
          row * tensor.code_stride_bytes + block * block_columns / 2)];
      for (int i = 0; i < block_columns / 2; ++i) {
        *out++ = value_of_code[bytes[i] & 15];
        *out++ = value_of_code[bytes[i] >> 4];
      }
    }
  }
}

template <class T>
void dequantize(const ActivationView& a, T* out) {
  if (const auto* blocks = std::get_if<BlockTensorView>(&a)) return dequantize_blocks(*blocks, out);
  auto copy_values = [out](const auto& tensor) mutable {
    for (std::int64_t row = 0; row < tensor.rows; ++row) {
      for (std::int64_t column = 0; column < tensor.columns; ++column)
        *out++ = narrowed<T>(tensor.value(row, column));
    }
  };
  if (const auto* dense = std::get_if<DenseTensorView>(&a)) return copy_values(*dense);
  copy_values(std::get<Q8TensorView>(a));
}

template <class Encode>
void store_rows(std::span<const float> sums, const GemmShape& shape, const GemmArguments& arguments,
                Encode encode) {
  const float alpha = arguments.alpha ? *arguments.alpha : 1.0f;
  for (std::int64_t row = 0; row < shape.m; ++row) {
    std::byte* to = arguments.output.data() + row * arguments.out_row_stride_bytes;
    for (std::int64_t column = 0; column < shape.n; ++column) {
      const auto value = encode(alpha * sums[static_cast<std::size_t>(row * shape.n + column)]);
      std::memcpy(to + column * static_cast<std::int64_t>(sizeof(value)), &value, sizeof(value));
    }
  }
}

}  // namespace

void dequantize_f32(const ActivationView& a, std::span<float> out) { dequantize(a, out.data()); }
void dequantize_f32(const BlockTensorView& b, std::span<float> out) {
  dequantize_blocks(b, out.data());
}
void dequantize_bf16(const ActivationView& a, std::span<std::uint16_t> out) {
  dequantize(a, out.data());
}
void dequantize_bf16(const BlockTensorView& b, std::span<std::uint16_t> out) {
  dequantize_blocks(b, out.data());
}

void store_scaled(std::span<const float> sums, const GemmShape& shape,
                  const GemmArguments& arguments) {
  switch (arguments.out) {
    case OutType::f32:
      return store_rows(sums, shape, arguments, [](float value) { return value; });
    case OutType::bf16:
      return store_rows(sums, shape, arguments, bf16_encode);
    case OutType::f16:
      return store_rows(sums, shape, arguments, f16_encode);
  }
}

}  // namespace nibble
