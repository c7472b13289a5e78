// SPDX-License-Identifier: Apache-2.0
// Sums of t * 2^e that never round: a 128-bit window where the operands' exponents allow it, and
// one that holds every product of finite operands.
#pragma once

#include <array>
#include <cstdint>

#include "reference/exact_rounding.h"

namespace nibble {

// Terms are below 2^62 in magnitude.
inline constexpr int kMaxTermBits = 62;

// Least exponent e of any term: f32 subnormals (2^-149) times half an E8M0 unit (2^-128), with
// room.
inline constexpr int kLeastTermExponent = -288;
// Every sum stays below 2^this: 6 * 2^127 twice, and 2^63 of them.
inline constexpr int kGreatestSumExponent = 352;

// A fixed-point window from 2^least_exponent up; the caller has proven that every partial sum fits
// 127 bits.
class NarrowSum {
 public:
  explicit NarrowSum(int least_exponent) : least_exponent_(least_exponent) {}
  void add(std::int64_t term, int exponent) {
    sum_ += static_cast<__int128>(term) << (exponent - least_exponent_);
  }
  bool negative() const { return sum_ < 0; }
  Magnitude magnitude() const;

 private:
  __int128 sum_ = 0;
  int least_exponent_;
};

// Digits of 32 bits in 64-bit words: carries wait in the upper halves until carry().
class WideSum {
 public:
  void add(std::int64_t term, int exponent);
  bool negative() const;
  Magnitude magnitude() const;

 private:
  static constexpr int kDigits = 24;
  static_assert(32 * (kDigits - 1) > kGreatestSumExponent - kLeastTermExponent + kMaxTermBits);
  // A term adds less than 2^32 to a digit: 2^20 of them stay far below 2^63.
  static constexpr std::int64_t kTermsBeforeCarry = std::int64_t{1} << 20;

  // Afterwards every digit but the last lies in [0, 2^32); the last one holds the sign.
  static void carry(std::array<std::int64_t, kDigits>& digits);

  std::array<std::int64_t, kDigits> digits_{};
  std::int64_t terms_ = 0;
};

}  // namespace nibble
