// SPDX-License-Identifier: Apache-2.0
// What the backends share that multiply ordinary floats: operands as f32 or bf16 matrices, the fp32
// sums as the output.
#pragma once

#include <cstdint>
#include <span>

#include "backends/backend.h"

namespace nibble {

// code * block scale, or the dense or Q8_0 value: exact in f32 but for MXFP4 beyond the fp32 range,
// where it is inf. `out` has rows * columns elements.
void dequantize_f32(const ActivationView& a, std::span<float> out);
void dequantize_f32(const BlockTensorView& b, std::span<float> out);

// The same as bf16: exact for block formats (at most six significant bits) and for bf16 itself.
void dequantize_bf16(const ActivationView& a, std::span<std::uint16_t> out);
void dequantize_bf16(const BlockTensorView& b, std::span<std::uint16_t> out);

// D = round(fl32(alpha * sum)); sums is [m, n].
void store_scaled(std::span<const float> sums, const GemmShape& shape,
                  const GemmArguments& arguments);

}  // namespace nibble
