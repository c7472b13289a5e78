// SPDX-License-Identifier: Apache-2.0
// Operands whose every partial sum is exact in fp32, in any order: a right kernel has one answer.
#include <algorithm>
#include <array>

#include "core/e2m1.h"
#include "probe/make_operands.h"

namespace nibble {
namespace {

// Both operands are integer multiples of 1/2, at most `magnitude` of them; alpha is
// alpha_significand * 2^-alpha_shift.
struct IntegerRange {
  int largest_code;     // magnitudes 0..7 of E2M1
  int scale_exponents;  // scales 2^0 .. 2^(scale_exponents - 1)
  int alpha_significand, alpha_shift;

  std::int64_t magnitude() const {
    return std::int64_t{kE2m1Doubled[largest_code]} << (scale_exponents - 1);
  }
};

constexpr std::array kRanges{IntegerRange{7, 2, 3, 2}, IntegerRange{7, 2, 1, 1},
                             IntegerRange{7, 1, 1, 1}, IntegerRange{4, 1, 1, 1},
                             IntegerRange{1, 1, 1, 1}};

Result<IntegerRange> range_for(std::int64_t k) {
  for (const auto& range : kRanges) {
    const std::int64_t term = range.magnitude() * range.magnitude() * range.alpha_significand;
    if (k < (std::int64_t{1} << 24) / term) return range;
  }
  return fail(ErrorKind::unsupported,
              "k=" + std::to_string(k) + ": no integer operands whose sums all fit 24 bits");
}

void fill(BlockTensor& tensor, const IntegerRange& range, RandomBits& random) {
  for (std::int64_t row = 0; row < tensor.rows; ++row) {
    for (std::int64_t block = 0; block < tensor.layout.blocks; ++block) {
      set_scale(tensor, row, block,
                scale_byte(tensor.format, static_cast<int>(random.below(range.scale_exponents))));
    }
    for (std::int64_t column = 0; column < tensor.columns; ++column) {
      const std::uint64_t sign = (random.next() >> 60) & 8;
      set_code(tensor, row, column,
               static_cast<std::uint8_t>(
                   sign | static_cast<std::uint64_t>(random.below(range.largest_code + 1))));
    }
  }
}

void fill(DenseTensor& tensor, const IntegerRange& range, RandomBits& random) {
  for (std::int64_t row = 0; row < tensor.rows; ++row) {
    for (std::int64_t column = 0; column < tensor.columns; ++column) {
      const std::int64_t halves = random.below(2 * range.magnitude() + 1) - range.magnitude();
      tensor.set(row, column, 0.5f * static_cast<float>(halves));
    }
  }
}

void fill(Q8Tensor& tensor, const IntegerRange& range, RandomBits& random) {
  constexpr std::uint16_t kHalf = 0x3800;  // 0.5 in f16; the exponent field begins at bit 10
  const int largest = kE2m1Doubled[range.largest_code];
  for (std::int64_t row = 0; row < tensor.rows; ++row) {
    for (std::int64_t block = 0; block < tensor.columns / 32; ++block) {
      tensor.set_scale(
          row, block,
          static_cast<std::uint16_t>(kHalf + (random.below(range.scale_exponents) << 10)));
    }
    for (std::int64_t column = 0; column < tensor.columns; ++column) {
      tensor.set_code(row, column,
                      static_cast<std::int8_t>(random.below(2 * largest + 1) - largest));
    }
  }
}

}  // namespace

Result<Operands> make_integer_operands(const GemmProblem& problem, std::uint64_t seed) {
  const auto range = range_for(problem.shape.k);
  if (!range) return tl::unexpected(range.error());
  auto operands = make_zero_operands(problem);
  if (!operands) return operands;
  RandomBits random(seed);
  std::visit([&](auto& a) { fill(a, *range, random); }, operands->a);
  fill(operands->b, *range, random);
  operands->alpha =
      static_cast<float>(range->alpha_significand) / static_cast<float>(1 << range->alpha_shift);
  return operands;
}

}  // namespace nibble
