// SPDX-License-Identifier: Apache-2.0
#include "reference/exact_rounding.h"

#include <bit>
#include <cmath>

#include "core/error.h"

namespace nibble {
namespace {

// Precision counts the leading bit; least_exponent is that of the last bit of a subnormal.
struct TypeShape {
  int precision, least_exponent, greatest_exponent;
};

constexpr TypeShape shape_of_type(OutType type) {
  switch (type) {
    case OutType::bf16:
      return {8, -133, 127};
    case OutType::f16:
      return {11, -24, 15};
    case OutType::f32:
      return {24, -149, 127};
  }
  return {};
}

struct Rounded {
  std::uint64_t significand;
  int exponent;  // of the significand's last bit
};

bool bit_at(const Magnitude& value, int position) {
  if (position < 0 || position >= 64 * value.count) return false;
  return (value.limbs[static_cast<std::size_t>(position / 64)] >> (position % 64)) & 1;
}

bool any_below(const Magnitude& value, int position) {
  for (int i = 0; i < value.count && 64 * i < position; ++i) {
    const int bits = position - 64 * i;
    const std::uint64_t mask = bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
    if (value.limbs[static_cast<std::size_t>(i)] & mask) return true;
  }
  return false;
}

// The 64 bits from `position` (at least 0) up.
std::uint64_t bits_from(const Magnitude& value, int position) {
  const int limb = position / 64, shift = position % 64;
  const auto at = [&](int i) {
    return i < value.count ? value.limbs[static_cast<std::size_t>(i)] : std::uint64_t{0};
  };
  return shift == 0 ? at(limb) : (at(limb) >> shift) | (at(limb + 1) << (64 - shift));
}

// Rounds to `precision` bits (at most 53), but to no bit below 2^least_exponent.
Rounded round_bits(const Magnitude& value, int precision, int least_exponent, RoundingMode mode) {
  if (is_zero(value)) return {0, least_exponent};
  const int last = std::max(leading_exponent(value) - precision + 1, least_exponent);
  const int position = last - value.exponent;
  if (position <= 0) return {bits_from(value, 0) << -position, last};
  const std::uint64_t kept = position >= 64 * value.count ? 0 : bits_from(value, position);
  const bool half = bit_at(value, position - 1);
  bool away = false;
  if (mode == RoundingMode::up) away = half || any_below(value, position - 1);
  if (mode == RoundingMode::nearest_even)
    away = half && ((kept & 1) || any_below(value, position - 1));
  return {kept + (away ? 1 : 0), last};
}

std::uint32_t sign_bit(OutType type, bool negative) {
  return negative ? (type == OutType::f32 ? 0x80000000u : 0x8000u) : 0u;
}

}  // namespace

bool is_zero(const Magnitude& value) { return !any_below(value, 64 * value.count); }

int leading_exponent(const Magnitude& value) {
  for (int i = value.count - 1; i >= 0; --i) {
    const std::uint64_t limb = value.limbs[static_cast<std::size_t>(i)];
    if (limb != 0) return value.exponent + 64 * i + 63 - std::countl_zero(limb);
  }
  check_failed(__FILE__, __LINE__, "value != 0", "leading bit of zero");
}

void multiply(Magnitude& value, std::uint32_t factor, int exponent) {
  std::uint64_t carry = 0;
  for (int i = 0; i < value.count; ++i) {
    auto& limb = value.limbs[static_cast<std::size_t>(i)];
    const auto product = static_cast<unsigned __int128>(limb) * factor + carry;
    limb = static_cast<std::uint64_t>(product);
    carry = static_cast<std::uint64_t>(product >> 64);
  }
  if (carry != 0) {
    NIBBLE_CHECK(value.count < Magnitude::kMaxLimbs, "an exact sum outgrew its limbs");
    value.limbs[static_cast<std::size_t>(value.count++)] = carry;
  }
  value.exponent += exponent;
}

double to_double(const Magnitude& value, RoundingMode mode) {
  const Rounded r = round_bits(value, 53, -1022, mode);
  return std::ldexp(static_cast<double>(r.significand), r.exponent);
}

std::uint32_t round_to(OutType type, bool negative, const Magnitude& value) {
  const TypeShape shape = shape_of_type(type);
  const Rounded r =
      round_bits(value, shape.precision, shape.least_exponent, RoundingMode::nearest_even);
  const int mantissa_bits = shape.precision - 1;
  // A significand without its leading bit sits at the least exponent and is its own encoding; one
  // that rounding carried to 2^precision runs over into the exponent field, as it should.
  const std::uint64_t hidden = std::uint64_t{1} << mantissa_bits;
  std::uint64_t bits = r.significand;
  if (r.significand >= hidden) {
    const auto biased = static_cast<std::uint64_t>(r.exponent - shape.least_exponent + 1);
    bits = (biased << mantissa_bits) + (r.significand - hidden);
  }
  const std::uint32_t infinity = infinity_bits(type, false);
  const bool overflow = r.significand != 0 && r.exponent + mantissa_bits > shape.greatest_exponent;
  const std::uint32_t magnitude =
      overflow || bits > infinity ? infinity : static_cast<std::uint32_t>(bits);
  return magnitude | sign_bit(type, negative);
}

std::uint32_t infinity_bits(OutType type, bool negative) {
  const std::uint32_t magnitude =
      type == OutType::f32 ? 0x7F800000u : (type == OutType::bf16 ? 0x7F80u : 0x7C00u);
  return magnitude | sign_bit(type, negative);
}

std::uint32_t nan_bits(OutType type) {
  return type == OutType::f32 ? 0x7FC00000u : (type == OutType::bf16 ? 0x7FC0u : 0x7E00u);
}

}  // namespace nibble
