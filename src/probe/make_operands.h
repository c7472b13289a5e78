// SPDX-License-Identifier: Apache-2.0
// The operands of a case, made from its seed: the same bytes on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "core/block_tensor.h"
#include "core/error.h"
#include "core/gemm_operands.h"
#include "core/gemm_problem.h"

namespace nibble {

// Rows without padding.
struct DenseTensor {
  DenseType type = DenseType::bf16;
  std::int64_t rows = 0, columns = 0;
  std::vector<std::byte> data;

  DenseTensorView view() const;
  void set(std::int64_t row, std::int64_t column, float value);  // rounded to nearest even
};

// llama.cpp's Q8_0: 34 bytes a block of 32.
struct Q8Tensor {
  std::int64_t rows = 0, columns = 0;
  std::vector<std::byte> data;

  Q8TensorView view() const;
  void set_scale(std::int64_t row, std::int64_t block, std::uint16_t f16_bits);
  void set_code(std::int64_t row, std::int64_t column, std::int8_t code);
};

using ActivationTensor = std::variant<BlockTensor, DenseTensor, Q8Tensor>;

struct Operands {
  ActivationTensor a;
  BlockTensor b;
  float alpha = 1.0f;

  GemmInputs inputs() const;  // views: the operands must outlive them
};

// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators).
class RandomBits {
 public:
  explicit RandomBits(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  std::int64_t below(std::int64_t count);  // in [0, count)
  // Near to a standard normal by the sum of twelve uniforms: no libm, so no machine differs.
  float normal();

 private:
  std::uint64_t state_;
};

// A function of its arguments alone, equally spread.
std::uint64_t hash(std::uint64_t seed, std::int64_t row, std::int64_t column);

// Zero codes and scales in the layouts of the problem. Errors: k no multiple of the blocks, sizes.
Result<Operands> make_zero_operands(const GemmProblem& problem);

// ---- Helpers for patterns; `value` of an activation is taken as it is for dense ones.

void set_code(BlockTensor& tensor, std::int64_t row, std::int64_t column, std::uint8_t code);
void set_scale(BlockTensor& tensor, std::int64_t row, std::int64_t block, std::uint8_t byte);

// The byte of a scale 2^exponent: NVFP4 has exponents -9..8, MXFP4 -127..127.
std::uint8_t scale_byte(Format format, int exponent);

// ---- The experiments' operands. Errors as make_zero_operands, and of the quantizers.

// Every partial sum in any order, and alpha times it, is an integer multiple of one power of two,
// below 2^24 of it.
Result<Operands> make_integer_operands(const GemmProblem& problem, std::uint64_t seed);

// Normal data quantized by `rn` (NVFP4) and `floor` (MXFP4), alpha = fl(gA * gB). Where there is no
// tensor scale its place takes a factor in [1, 2) that is no power of two.
Result<Operands> make_random_operands(const GemmProblem& problem, std::uint64_t seed);

// A as in `random`, B given; b's layout becomes the problem's.
Result<Operands> make_random_operands_for(const GemmProblem& problem, const BlockTensorView& b,
                                          std::uint64_t seed);

// Any codes, any scale bytes from 1 to 126 (E4M3), E8M0 within 2^+-20 but for one row in sixteen,
// where anything from 2^-127 to 2^52 stands.
Result<Operands> make_wide_operands(const GemmProblem& problem, std::uint64_t seed);

}  // namespace nibble
