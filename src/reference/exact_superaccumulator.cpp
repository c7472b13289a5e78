// SPDX-License-Identifier: Apache-2.0
#include "reference/exact_superaccumulator.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "reference/exact_threads.h"
#include "reference/superaccumulator.h"
#include "reference/superaccumulator_operands.h"

namespace nibble {
namespace {

// Rows of A that share one decoding of a row of B; 64 rows of k = 6144 take 3 MiB.
constexpr std::int64_t kRowsAtOnce = 64;
constexpr std::int64_t kElementsAtOnce = std::int64_t{1} << 22;
constexpr std::int64_t kColumnsAPiece = 16;

struct Dots {
  std::int64_t sum, absolute;
};

Dots dot(const std::int64_t* integers, const std::int8_t* codes) {
  Dots dots{0, 0};
  for (int i = 0; i < kGroup; ++i) {
    const std::int64_t product = integers[i] * codes[i];
    dots.sum += product;
    dots.absolute += std::abs(product);
  }
  return dots;
}

template <class Sum>
void add_row(const RowPlanes& a, const WeightRow& b, Sum& sum, Sum& absolute) {
  const std::int64_t* integers = a.integers.data();
  for (const Plane& plane : a.planes) {
    const auto group = static_cast<std::size_t>(plane.group);
    const Dots dots = dot(integers, b.doubled_codes.data() + group * kGroup);
    integers += kGroup;
    if (dots.absolute == 0 || b.significands[group] == 0) continue;
    const int exponent = plane.exponent + b.exponents[group];
    sum.add(dots.sum * b.significands[group], exponent);
    absolute.add(dots.absolute * b.significands[group], exponent);
  }
}

// Products with 0 < |ab| < 2^-126.
std::int64_t count_tiny_products(const RowPlanes& a, const WeightRow& b) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < a.integers.size(); ++i) {
    const Plane& plane = a.planes[i / kGroup];
    const auto group = static_cast<std::size_t>(plane.group);
    const auto product = static_cast<std::uint64_t>(std::abs(
        a.integers[i] * b.doubled_codes[group * kGroup + i % kGroup] * b.significands[group]));
    const int top = plane.exponent + b.exponents[group] + static_cast<int>(std::bit_width(product));
    if (product != 0 && top <= -126) ++count;
  }
  return count;
}

// What infinities in A add up to: 0 (none), +-inf or NaN.
double sum_of_infinities(const RowPlanes& a, const WeightRow& b) {
  double sum = 0;
  for (const SpecialElement& each : a.infinities) {
    const int code = b.doubled_codes[static_cast<std::size_t>(each.column)];
    const bool zero =
        code == 0 || b.significands[static_cast<std::size_t>(each.column / kGroup)] == 0;
    if (zero) return std::numeric_limits<double>::quiet_NaN();
    const double infinity = std::numeric_limits<double>::infinity();
    sum += (code < 0) != each.negative ? -infinity : infinity;
  }
  return sum;
}

template <class Sum>
ExactElement sum_element(const RowPlanes& a, const WeightRow& b, Sum sum, const Alpha& alpha,
                         OutType out) {
  Sum absolute = sum;
  add_row(a, b, sum, absolute);
  const Magnitude total = absolute.magnitude();
  // The count can matter only where the whole sum is this small.
  const auto products = static_cast<std::int64_t>(a.integers.size());
  std::int64_t tiny = 0;
  if (tiny_products_matter(total, products)) tiny = count_tiny_products(a, b);
  return finish_element(sum.negative(), sum.magnitude(), total, tiny, alpha, out);
}

ExactElement element(const RowPlanes& a, const WeightRow& b, std::int64_t k, const Alpha& alpha,
                     OutType out) {
  if (a.has_nan || b.has_nan) return special_element(std::nan(""), alpha, out);
  if (!a.infinities.empty()) return special_element(sum_of_infinities(a, b), alpha, out);
  const int least = a.least_exponent + b.least_exponent;
  // |ab| < 2^(a.top + b.top + 4): a doubled code is below 2^4. k of them fit below `top`.
  const int top = a.top_exponent + b.top_exponent + 4 +
                  static_cast<int>(std::bit_width(static_cast<std::uint64_t>(k)));
  NIBBLE_CHECK(least >= kLeastTermExponent && top <= kGreatestSumExponent,
               "an operand lies outside the exponents of its format");
  if (top - least < 127) return sum_element(a, b, NarrowSum(least), alpha, out);
  return sum_element(a, b, WideSum(), alpha, out);
}

}  // namespace

void superaccumulator_product(const GemmInputs& inputs, int threads, ExactPanel& panel) {
  const Alpha alpha = decode_alpha(inputs.alpha);
  const std::int64_t chunk = std::clamp<std::int64_t>(
      kElementsAtOnce / std::max<std::int64_t>(panel.k, 1), 1, kRowsAtOnce);
  for (std::int64_t begin = 0; begin < panel.rows; begin += chunk) {
    const std::int64_t rows = std::min(chunk, panel.rows - begin);
    std::vector<RowPlanes> a(static_cast<std::size_t>(rows));
    for_each_piece(rows, 1, threads, [&](std::int64_t row, std::int64_t) {
      a[static_cast<std::size_t>(row)] =
          decode_activation_row(inputs.a, panel.row_begin + begin + row);
    });
    for_each_piece(
        panel.columns, kColumnsAPiece, threads, [&](std::int64_t first, std::int64_t last) {
          WeightRow b;
          for (std::int64_t column = first; column < last; ++column) {
            decode_weight_row(inputs.b, column, b);
            for (std::int64_t row = 0; row < rows; ++row) {
              store(element(a[static_cast<std::size_t>(row)], b, panel.k, alpha, panel.out),
                    (begin + row) * panel.columns + column, panel);
            }
          }
        });
  }
}

ExactElement superaccumulator_element(const GemmInputs& inputs, std::int64_t row,
                                      std::int64_t column, OutType out) {
  WeightRow b;
  decode_weight_row(inputs.b, column, b);
  return element(decode_activation_row(inputs.a, row), b, inputs.b.columns,
                 decode_alpha(inputs.alpha), out);
}

}  // namespace nibble
