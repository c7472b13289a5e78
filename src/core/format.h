// SPDX-License-Identifier: Apache-2.0
// The formats, operand kinds and output types that a GEMM problem is made of.
#pragma once

#include <cstdint>

#include "core/enum_names.h"

namespace nibble {

// nvfp4: 16 codes share an E4M3 block scale. mxfp4: 32 codes share an E8M0 block scale.
enum class Format : std::uint8_t { nvfp4, mxfp4 };

// What A is. nvfp4 and mxfp4: W4A4. bf16 and f16: W4A16. q8_0: llama.cpp's 8-bit blocks (32 int8
// and one f16 scale).
enum class Activation : std::uint8_t { nvfp4, mxfp4, bf16, f16, q8_0 };

enum class OutType : std::uint8_t { bf16, f16, f32 };

constexpr int block_size(Format format) { return format == Format::nvfp4 ? 16 : 32; }
constexpr int out_bytes(OutType type) { return type == OutType::f32 ? 4 : 2; }
constexpr bool is_block_format(Activation a) {
  return a == Activation::nvfp4 || a == Activation::mxfp4;
}
constexpr Activation activation_of(Format format) {
  return format == Format::nvfp4 ? Activation::nvfp4 : Activation::mxfp4;
}

template <>
struct EnumNames<Format> {
  static constexpr std::array table{std::pair{Format::nvfp4, std::string_view("nvfp4")},
                                    std::pair{Format::mxfp4, std::string_view("mxfp4")}};
};
template <>
struct EnumNames<Activation> {
  static constexpr std::array table{std::pair{Activation::nvfp4, std::string_view("nvfp4")},
                                    std::pair{Activation::mxfp4, std::string_view("mxfp4")},
                                    std::pair{Activation::bf16, std::string_view("bf16")},
                                    std::pair{Activation::f16, std::string_view("f16")},
                                    std::pair{Activation::q8_0, std::string_view("q8_0")}};
};
template <>
struct EnumNames<OutType> {
  static constexpr std::array table{std::pair{OutType::bf16, std::string_view("bf16")},
                                    std::pair{OutType::f16, std::string_view("f16")},
                                    std::pair{OutType::f32, std::string_view("f32")}};
};

}  // namespace nibble
