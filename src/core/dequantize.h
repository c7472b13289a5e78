// SPDX-License-Identifier: Apache-2.0
// A block tensor as f32, in two ways: the exact value rounded once, and the producer's own sequence
// of roundings.
#pragma once

#include <cstdint>
#include <vector>

#include "core/block_tensor.h"
#include "core/enum_names.h"

namespace nibble {

// Whose checkpoint it is: they differ in the order of rounding, in the sign of code 8 and in
// special scale bytes.
enum class Convention : std::uint8_t { modelopt, compressed_tensors, torchao, gguf };

template <>
struct EnumNames<Convention> {
  static constexpr std::array table{
      std::pair{Convention::modelopt, std::string_view("modelopt")},
      std::pair{Convention::compressed_tensors, std::string_view("compressed_tensors")},
      std::pair{Convention::torchao, std::string_view("torchao")},
      std::pair{Convention::gguf, std::string_view("gguf")}};
};

// code * block scale * tensor scale (the multiplier), rounded once. [rows, columns]. `tensor`
// passed check().
std::vector<float> dequantize_exact(const BlockTensorView& tensor);

// As the producer's own library decodes it (docs/checkpoints.md): fl(code * fl(s * g)), or fl(code
// * fl(s / G)) for compressed_tensors. modelopt's NVFP4 and gguf give +0 for code 8. All but gguf
// decode the sign of an E4M3 scale, which dequantize_exact ignores as FP4 units do. gguf applies
// no tensor scale, and reads the scale bytes 0x7F as 0, 0xFF as 480 (NVFP4) and 0xFF as inf
// (MXFP4).
std::vector<float> dequantize_as(const BlockTensorView& tensor, Convention convention);

}  // namespace nibble
