// SPDX-License-Identifier: Apache-2.0
#include "reference/exact_element.h"

#include <bit>
#include <cmath>
#include <limits>

namespace nibble {
namespace {

constexpr int kFp32Overflow = 128;  // 2^128 and beyond is no float, whatever the rounding

bool leaves_fp32(const Magnitude& value) {
  return !is_zero(value) && leading_exponent(value) >= kFp32Overflow;
}

}  // namespace

Alpha decode_alpha(float alpha) {
  Alpha result;
  result.value = alpha;
  result.finite = std::isfinite(alpha);
  result.negative = std::signbit(alpha);
  const auto bits = std::bit_cast<std::uint32_t>(alpha);
  const std::uint32_t biased = (bits >> 23) & 0xFF, mantissa = bits & 0x7FFFFF;
  result.significand = biased == 0 ? mantissa : mantissa | 0x800000;
  result.exponent = static_cast<int>(biased == 0 ? 1 : biased) - 150;
  return result;
}

bool tiny_products_matter(const Magnitude& absolute, std::int64_t tiny_products) {
  if (tiny_products == 0 || is_zero(absolute)) return false;
  // The right side is a double, so cutting the left one down keeps the comparison exact.
  return to_double(absolute, RoundingMode::down) <
         std::ldexp(static_cast<double>(tiny_products), -102);
}

ExactElement finish_value(bool negative, Magnitude sum, const Alpha& alpha, OutType out) {
  if (!alpha.finite)
    return special_element(is_zero(sum) ? 0.0 : (negative ? -1.0 : 1.0), alpha, out);
  ExactElement element;
  multiply(sum, alpha.significand, alpha.exponent);
  if (is_zero(sum)) return element;
  negative = negative != alpha.negative;
  const double value = to_double(sum, RoundingMode::nearest_even);
  element.value = negative ? -value : value;
  element.rounded = round_to(out, negative, sum);
  return element;
}

ExactElement finish_element(bool negative, const Magnitude& sum, Magnitude absolute,
                            std::int64_t tiny_products, const Alpha& alpha, OutType out) {
  ExactElement element = finish_value(negative, sum, alpha, out);
  element.outside_fp32 = leaves_fp32(absolute) || tiny_products_matter(absolute, tiny_products);
  if (!alpha.finite) return element;
  multiply(absolute, alpha.significand, alpha.exponent);
  element.outside_fp32 |= leaves_fp32(absolute);
  if (!is_zero(absolute)) element.magnitude = to_double(absolute, RoundingMode::up);
  return element;
}

ExactElement special_element(double sum, const Alpha& alpha, OutType out) {
  ExactElement element;
  element.value = sum * static_cast<double>(alpha.value);
  if (std::isnan(element.value)) {
    element.value = element.magnitude = std::numeric_limits<double>::quiet_NaN();
    element.rounded = nan_bits(out);
  } else {
    element.magnitude = std::numeric_limits<double>::infinity();
    element.rounded = infinity_bits(out, element.value < 0);
  }
  return element;
}

void store(const ExactElement& element, std::int64_t index, ExactPanel& panel) {
  const auto i = static_cast<std::size_t>(index);
  panel.rounded[i] = element.rounded;
  panel.value[i] = element.value;
  panel.magnitude[i] = element.magnitude;
  panel.outside_fp32[i] = element.outside_fp32 ? 1 : 0;
}

}  // namespace nibble
