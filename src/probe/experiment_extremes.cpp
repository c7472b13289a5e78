// SPDX-License-Identifier: Apache-2.0
// extremes: the ends of every range. Smallest and largest scales, zero blocks, NaN and infinities,
// alpha of zero, empty and one-block problems.
#include <fmt/format.h>

#include <limits>
#include <numeric>

#include "core/small_floats.h"
#include "probe/experiment_run.h"

namespace nibble {
namespace {

enum class Scale { small, large };

// Exponents of the scales of one operand. No product leaves the fp32 range: beyond it there is no
// answer to judge. Two ends of one side are drawn in, opposite ends balance each other.
int extreme_exponent(Activation of, Scale own, Scale other, Activation partner, bool subnormals) {
  const int sign = own == Scale::small ? -1 : 1;
  if (own == other) return sign * 52;
  const bool wide_partner = partner == Activation::mxfp4 || partner == Activation::bf16;
  if (of != Activation::mxfp4 || !wide_partner) return sign * 100;
  // The least leaves a code of 0.5 below the smallest normal float.
  return own == Scale::large ? 120 : (subnormals ? -126 : -125);
}

void set_scales(BlockTensor& tensor, Scale scale, int exponent) {
  std::uint8_t byte = scale == Scale::small ? 0x01 : 0x7E;
  if (tensor.format == Format::mxfp4) byte = scale_byte(Format::mxfp4, exponent);
  for (std::int64_t row = 0; row < tensor.rows; ++row) {
    for (std::int64_t block = 0; block < tensor.layout.blocks; ++block)
      set_scale(tensor, row, block, byte);
  }
}

// f16 at its smallest normal and largest power.
void set_scales(DenseTensor& tensor, Scale scale, int exponent) {
  if (tensor.type == DenseType::f16) exponent = scale == Scale::small ? -14 : 15;
  for (std::int64_t row = 0; row < tensor.rows; ++row) {
    for (std::int64_t column = 0; column < tensor.columns; ++column) {
      const float sign = (hash(7, row, column) >> 63) ? -1.0f : 1.0f;
      tensor.set(row, column, sign * exp2_float(exponent));
    }
  }
}

void set_scales(Q8Tensor& tensor, Scale scale, int) {
  for (std::int64_t row = 0; row < tensor.rows; ++row) {
    for (std::int64_t block = 0; block < tensor.columns / 32; ++block)
      tensor.set_scale(row, block, scale == Scale::small ? 0x0001 : 0x7BFF);
  }
}

Result<Operands> scaled(const Trial& trial, Scale a, Scale b, float alpha) {
  const GemmProblem& problem = trial.the_case.problem;
  auto operands = make_integer_operands(problem, trial.the_case.seed);
  if (!operands) return operands;
  const bool subnormals = !trial.contract.flushes_subnormals;
  const Activation of_b = activation_of(problem.b);
  const int exponent_of_a = extreme_exponent(problem.a, a, b, of_b, subnormals);
  std::visit([&](auto& tensor) { set_scales(tensor, a, exponent_of_a); }, operands->a);
  set_scales(operands->b, b, extreme_exponent(of_b, b, a, problem.a, subnormals));
  operands->alpha = alpha;
  return operands;
}

// Row 0 has codes of zero only; of the others every second block has a scale of zero (NVFP4) or
// codes of zero.
void clear_blocks(BlockTensor& tensor) {
  const int block_elements = block_size(tensor.format);
  for (std::int64_t row = 0; row < tensor.rows; ++row) {
    for (std::int64_t block = 0; block < tensor.layout.blocks; ++block) {
      if (row != 0 && (row + block) % 2 == 0) continue;
      if (row != 0 && tensor.format == Format::nvfp4) {
        set_scale(tensor, row, block, 0);
        continue;
      }
      for (int i = 0; i < block_elements; ++i)
        set_code(tensor, row, block * block_elements + i, i % 2 ? 0 : 8);
    }
  }
}

void clear_blocks(DenseTensor& tensor) {
  for (std::int64_t column = 0; tensor.rows > 0 && column < tensor.columns; ++column)
    tensor.set(0, column, column % 2 ? 0.0f : -0.0f);
}

void clear_blocks(Q8Tensor& tensor) {
  for (std::int64_t row = 0; row < tensor.rows; ++row) {
    for (std::int64_t block = 0; block < tensor.columns / 32; ++block) {
      if (row == 0 || (row + block) % 2) tensor.set_scale(row, block, 0);
    }
  }
}

Result<Operands> zero_blocks(const GemmProblem& problem, std::uint64_t seed) {
  auto operands = make_random_operands(problem, seed);
  if (!operands) return operands;
  std::visit([](auto& a) { clear_blocks(a); }, operands->a);
  clear_blocks(operands->b);
  return operands;
}

// In the last row and the last block, where a tail may be lost.
void set_nan_scale(BlockTensor& tensor) {
  if (tensor.rows == 0 || tensor.layout.blocks == 0) return;
  set_scale(tensor, tensor.rows - 1, tensor.layout.blocks - 1,
            tensor.format == Format::nvfp4 ? 0x7F : 0xFF);
}

Result<Operands> nan_in_a(const GemmProblem& problem, std::uint64_t seed) {
  auto operands = make_random_operands(problem, seed);
  if (operands) set_nan_scale(std::get<BlockTensor>(operands->a));
  return operands;
}

Result<Operands> nan_in_b(const GemmProblem& problem, std::uint64_t seed) {
  auto operands = make_random_operands(problem, seed);
  if (operands) set_nan_scale(operands->b);
  return operands;
}

Result<Operands> infinite_in_a(const GemmProblem& problem, std::uint64_t seed) {
  auto operands = make_random_operands(problem, seed);
  if (!operands) return operands;
  auto& a = std::get<DenseTensor>(operands->a);
  if (a.rows > 0 && a.columns > 0)
    a.set(a.rows - 1, a.columns - 1, std::numeric_limits<float>::quiet_NaN());
  if (a.rows > 1 && a.columns > 0) a.set(0, 0, std::numeric_limits<float>::infinity());
  return operands;
}

Result<Operands> with_alpha(Result<Operands> operands, float alpha) {
  if (operands) operands->alpha = alpha;
  return operands;
}

Finding try_scales(Trial& trial) {
  const GemmProblem& problem = trial.the_case.problem;
  const auto policy = bound_policy(trial);
  constexpr std::pair<Scale, const char*> kEnds[] = {{Scale::small, "smallest"},
                                                     {Scale::large, "largest"}};
  for (const auto& [a, a_name] : kEnds) {
    for (const auto& [b, b_name] : kEnds) {
      // The second alpha brings the largest NVFP4 products back into the f16 range.
      for (const float alpha : {1.0f, 0x1.8p-18f}) {
        const auto what = fmt::format("{} scales of A, {} of B, alpha {:g}", a_name, b_name, alpha);
        const auto operands = scaled(trial, a, b, alpha);
        if (auto wrong = try_product(trial, what, problem, operands, policy)) return wrong;
      }
    }
  }
  return std::nullopt;
}

Finding try_values(Trial& trial) {
  const GemmProblem& problem = trial.the_case.problem;
  const std::uint64_t seed = trial.the_case.seed;
  const auto policy = bound_policy(trial);
  const auto attempt = [&](const char* what, const Result<Operands>& operands) {
    return try_product(trial, what, problem, operands, policy);
  };
  if (auto wrong = attempt("zero blocks", zero_blocks(problem, seed))) return wrong;
  if (auto wrong = attempt("alpha of 0", with_alpha(make_random_operands(problem, seed), 0.0f)))
    return wrong;
  if (auto wrong = attempt("alpha of -3", with_alpha(make_random_operands(problem, seed), -3.0f)))
    return wrong;
  const bool dense = problem.a == Activation::bf16 || problem.a == Activation::f16;
  if (dense) {
    if (auto wrong = attempt("NaN and infinity in A", infinite_in_a(problem, seed))) return wrong;
  }
  if (!trial.contract.nan_block_scales) return std::nullopt;
  if (is_block_format(problem.a)) {
    if (auto wrong = attempt("NaN scale in one block of A", nan_in_a(problem, seed))) return wrong;
  }
  return attempt("NaN scale in one block of B", nan_in_b(problem, seed));
}

// Sizes that the backend refuses in words are passed over.
Finding try_sizes(Trial& trial) {
  const auto with = [&trial](auto set) {
    GemmProblem problem = trial.the_case.problem;
    set(problem.shape);
    return problem;
  };
  const std::int64_t block =
      std::lcm(trial.contract.k_multiple, trial.the_case.problem.a == Activation::nvfp4
                                              ? block_size(trial.the_case.problem.b)
                                              : std::int64_t{32});
  const std::pair<const char*, GemmProblem> problems[] = {
      {"m=0", with([](GemmShape& shape) { shape.m = 0; })},
      {"m=1", with([](GemmShape& shape) { shape.m = 1; })},
      {"n=1", with([](GemmShape& shape) { shape.n = 1; })},
      {"one block of k", with([block](GemmShape& shape) { shape.k = block; })},
      {"m=1 n=1, one block of k", with([block](GemmShape& shape) {
         shape = {1, 1, block};
       })},
      {"k=0", with([](GemmShape& shape) { shape.k = 0; })}};
  for (const auto& [what, problem] : problems) {
    if (!is_supported(trial, problem)) continue;
    const auto operands = make_integer_operands(problem, trial.the_case.seed);
    if (auto wrong = try_product(trial, what, problem, operands, sharp_policy(trial))) return wrong;
  }
  return std::nullopt;
}

}  // namespace

Finding try_extremes(Trial& trial) {
  if (auto wrong = try_values(trial)) return wrong;
  if (auto wrong = try_scales(trial)) return wrong;
  return try_sizes(trial);
}

}  // namespace nibble
