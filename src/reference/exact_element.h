// SPDX-License-Identifier: Apache-2.0
// From exact sums to one element of an ExactPanel: alpha, the one rounding, S, what has no fp32
// answer.
#pragma once

#include <cstdint>

#include "reference/exact_product.h"
#include "reference/exact_rounding.h"

namespace nibble {

// alpha = (-1)^negative * significand * 2^exponent where it is finite.
struct Alpha {
  float value = 1;
  bool finite = true, negative = false;
  std::uint32_t significand = 1;
  int exponent = 0;
};

Alpha decode_alpha(float alpha);

struct ExactElement {
  std::uint32_t rounded = 0;
  double value = 0, magnitude = 0;
  bool outside_fp32 = false;
};

// sum|ab| < tiny_products * 2^-102, that is: flushing each product below 2^-126 could move the sum
// by more than 2^-24 of sum|ab|.
bool tiny_products_matter(const Magnitude& absolute, std::int64_t tiny_products);

// alpha * (-1)^negative * sum: rounded and value; magnitude only where alpha makes it NaN or inf.
ExactElement finish_value(bool negative, Magnitude sum, const Alpha& alpha, OutType out);

// The same and the rest. `sum` is |sum ab|, `absolute` is sum|ab|, both exact.
ExactElement finish_element(bool negative, const Magnitude& sum, Magnitude absolute,
                            std::int64_t tiny_products, const Alpha& alpha, OutType out);

// A sum that infinities or NaN among the operands make NaN or infinite.
ExactElement special_element(double sum, const Alpha& alpha, OutType out);

void store(const ExactElement& element, std::int64_t index, ExactPanel& panel);

}  // namespace nibble
