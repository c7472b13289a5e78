// SPDX-License-Identifier: Apache-2.0
#include "core/dequantize.h"

#include <limits>

#include "core/e2m1.h"
#include "core/small_floats.h"

namespace nibble {
namespace {

float scale_value(Format format, std::uint8_t byte) {
  return format == Format::nvfp4 ? e4m3_scale(byte) : e8m0_value(byte);
}

float gguf_scale(Format format, std::uint8_t byte) {
  if (format == Format::mxfp4)
    return e8m0_is_nan(byte) ? std::numeric_limits<float>::infinity() : e8m0_value(byte);
  if (byte == 0x7F) return 0.0f;
  return byte == 0xFF ? 480.0f : e4m3_scale(byte);
}

// The one fp32 factor of a block, as the producer forms it.
float block_factor(const BlockTensorView& tensor, std::uint8_t byte, Convention convention) {
  if (convention == Convention::gguf) return gguf_scale(tensor.format, byte);
  if (tensor.format == Format::mxfp4) return e8m0_value(byte);
  const float scale = e4m3_value(byte);
  if (convention == Convention::compressed_tensors && tensor.tensor_scale.divisor)
    return scale / *tensor.tensor_scale.divisor;
  return scale * tensor.tensor_scale.multiplier;
}

template <class Element>
std::vector<float> map_elements(const BlockTensorView& tensor, Element element) {
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(tensor.rows * tensor.columns));
  const int block = block_size(tensor.format);
  for (std::int64_t row = 0; row < tensor.rows; ++row) {
    for (std::int64_t column = 0; column < tensor.columns; ++column) {
      values.push_back(element(tensor.code(row, column), tensor.scale(row, column / block)));
    }
  }
  return values;
}

}  // namespace

std::vector<float> dequantize_exact(const BlockTensorView& tensor) {
  // Code and scale have seven significant bits together, the tensor scale 24: exact in double until
  // the last rounding.
  const double multiplier = static_cast<double>(tensor.tensor_scale.multiplier);
  return map_elements(tensor, [&](std::uint8_t code, std::uint8_t scale) {
    return static_cast<float>(static_cast<double>(e2m1_value(code)) *
                              static_cast<double>(scale_value(tensor.format, scale)) * multiplier);
  });
}

std::vector<float> dequantize_as(const BlockTensorView& tensor, Convention convention) {
  const bool positive_zero = convention == Convention::gguf ||
                             (convention == Convention::modelopt && tensor.format == Format::nvfp4);
  return map_elements(tensor, [&](std::uint8_t code, std::uint8_t scale) {
    const float value = code == 8 && positive_zero ? 0.0f : e2m1_value(code);
    return value * block_factor(tensor, scale, convention);
  });
}

}  // namespace nibble
