// SPDX-License-Identifier: Apache-2.0
// locate: one operand holds a code of its own in every place, the other selects single places of
// it. Each output is a few exact numbers, so any swizzle, transposition, stride or dropped tail
// shows.
#include <fmt/format.h>

#include <algorithm>

#include "core/small_floats.h"
#include "probe/experiment_run.h"

namespace nibble {
namespace {

constexpr std::uint8_t kOne = 2;  // the E2M1 code of 1
constexpr std::uint16_t kOneF16 = 0x3C00;

std::uint8_t one_byte(Format format) { return scale_byte(format, 0); }

// 64 values for NVFP4 (2^-3 .. 30), 12 for MXFP4: sums of a thousand of them are exact in fp32.
std::uint8_t coded_scale(Format format, std::uint64_t bits) {
  if (format == Format::nvfp4) return static_cast<std::uint8_t>(0x20 + (bits >> 58));
  return static_cast<std::uint8_t>(127 - 6 + (bits >> 32) % 12);
}

void set_all_scales_to_one(BlockTensor& tensor) {
  std::fill(tensor.scales.begin(), tensor.scales.end(), std::uint8_t{0});
  for (std::int64_t row = 0; row < tensor.rows; ++row) {
    for (std::int64_t block = 0; block < tensor.layout.blocks; ++block)
      set_scale(tensor, row, block, one_byte(tensor.format));
  }
}

// ---- Scales coded by row and block, every code 1.

void code_scales(BlockTensor& tensor, std::uint64_t seed) {
  for (std::int64_t row = 0; row < tensor.rows; ++row) {
    for (std::int64_t block = 0; block < tensor.layout.blocks; ++block)
      set_scale(tensor, row, block, coded_scale(tensor.format, hash(seed, row, block)));
    for (std::int64_t column = 0; column < tensor.columns; ++column)
      set_code(tensor, row, column, kOne);
  }
}

void code_scales(DenseTensor& tensor, std::uint64_t seed) {
  for (std::int64_t row = 0; row < tensor.rows; ++row) {
    for (std::int64_t column = 0; column < tensor.columns; ++column) {
      const std::uint64_t bits = hash(seed, row, column);
      tensor.set(row, column, static_cast<float>(1 + (bits >> 58)) * 0.25f);
    }
  }
}

void code_scales(Q8Tensor& tensor, std::uint64_t seed) {
  for (std::int64_t row = 0; row < tensor.rows; ++row) {
    for (std::int64_t block = 0; block < tensor.columns / 32; ++block) {
      const float scale = static_cast<float>(1 + (hash(seed, row, block) >> 58)) * 0.25f;
      tensor.set_scale(row, block, f16_encode(scale));
    }
    for (std::int64_t column = 0; column < tensor.columns; ++column)
      tensor.set_code(row, column, 1);
  }
}

// ---- Selections: row r holds 1 where (k / unit) % rows == r, so that every unit is selected once
// at least, by one row.

bool selected(std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t unit) {
  return column % unit == 0 && column / unit % rows == row;
}

void select(BlockTensor& tensor, std::int64_t unit) {
  set_all_scales_to_one(tensor);
  const std::int64_t units = tensor.columns / unit;
  for (std::int64_t row = 0; row < tensor.rows; ++row) {
    // Where there are fewer units than rows, rows from there on select again from the start.
    for (std::int64_t column = 0; column < tensor.columns; ++column) {
      const std::int64_t rows = std::min(tensor.rows, units);
      if (selected(row % rows, rows, column, unit)) set_code(tensor, row, column, kOne);
    }
  }
}

void select(DenseTensor& tensor, std::int64_t unit) {
  const std::int64_t rows = std::min(tensor.rows, tensor.columns / unit);
  for (std::int64_t row = 0; row < tensor.rows; ++row) {
    for (std::int64_t column = 0; column < tensor.columns; ++column) {
      if (selected(row % rows, rows, column, unit)) tensor.set(row, column, 1.0f);
    }
  }
}

void select(Q8Tensor& tensor, std::int64_t unit) {
  const std::int64_t rows = std::min(tensor.rows, tensor.columns / unit);
  for (std::int64_t row = 0; row < tensor.rows; ++row) {
    for (std::int64_t block = 0; block < tensor.columns / 32; ++block)
      tensor.set_scale(row, block, kOneF16);
    for (std::int64_t column = 0; column < tensor.columns; ++column) {
      if (selected(row % rows, rows, column, unit)) tensor.set_code(row, column, 1);
    }
  }
}

// Every code but the zeros, by row and column.
void code_elements(BlockTensor& tensor, std::uint64_t seed) {
  set_all_scales_to_one(tensor);
  for (std::int64_t row = 0; row < tensor.rows; ++row) {
    for (std::int64_t column = 0; column < tensor.columns; ++column) {
      const std::uint64_t bits = hash(seed, row, column);
      const auto magnitude = static_cast<std::uint8_t>(1 + (bits >> 32) % 7);
      set_code(tensor, row, column, static_cast<std::uint8_t>(magnitude | (bits >> 60 & 8)));
    }
  }
}

std::int64_t activation_block(Activation a) {
  if (a == Activation::nvfp4) return 16;
  return is_block_format(a) || a == Activation::q8_0 ? 32 : 1;
}

Result<Operands> coded_a(const GemmProblem& problem, std::uint64_t seed) {
  auto operands = make_zero_operands(problem);
  if (!operands || problem.shape.n == 0 || problem.shape.k == 0) return operands;
  std::visit([seed](auto& a) { code_scales(a, seed); }, operands->a);
  select(operands->b, activation_block(problem.a));
  return operands;
}

Result<Operands> coded_b(const GemmProblem& problem, std::uint64_t seed, std::int64_t unit) {
  auto operands = make_zero_operands(problem);
  if (!operands || problem.shape.m == 0 || problem.shape.k == 0) return operands;
  std::visit([unit](auto& a) { select(a, unit); }, operands->a);
  if (unit == 1)
    code_elements(operands->b, seed);
  else
    code_scales(operands->b, seed);
  return operands;
}

// The last row of A and of B alone hold anything: one output is not zero.
Result<Operands> last_rows(const GemmProblem& problem, std::uint64_t seed) {
  auto operands = make_integer_operands(problem, seed);
  if (!operands) return operands;
  const auto clear = [](auto& bytes, std::int64_t rows) {
    const auto row_bytes = rows == 0 ? 0 : static_cast<std::int64_t>(bytes.size()) / rows;
    std::fill_n(bytes.begin(), row_bytes * std::max<std::int64_t>(rows - 1, 0),
                typename std::decay_t<decltype(bytes)>::value_type{});
  };
  std::visit(
      [&clear](auto& a) {
        if constexpr (requires { a.codes; })
          clear(a.codes, a.rows);
        else
          clear(a.data, a.rows);
      },
      operands->a);
  clear(operands->b.codes, operands->b.rows);
  return operands;
}

}  // namespace

Finding try_locate(Trial& trial) {
  const GemmProblem& problem = trial.the_case.problem;
  const std::uint64_t seed = trial.the_case.seed;
  const auto policy = sharp_policy(trial);
  const struct {
    const char* what;
    Result<Operands> operands;
  } patterns[] = {
      {"A's scales coded by row and block", coded_a(problem, seed)},
      {"B's scales coded by row and block", coded_b(problem, seed, block_size(problem.b))},
      {"B's elements coded, one of each k block at a time", coded_b(problem, seed, 1)},
      {"only the last rows of A and B not zero", last_rows(problem, seed)}};
  for (const auto& pattern : patterns) {
    if (auto wrong = try_product(trial, pattern.what, problem, pattern.operands, policy))
      return wrong;
  }
  return std::nullopt;
}

}  // namespace nibble
