// SPDX-License-Identifier: Apache-2.0
#include "reference/superaccumulator.h"

namespace nibble {

Magnitude NarrowSum::magnitude() const {
  const auto bits =
      sum_ < 0 ? -static_cast<unsigned __int128>(sum_) : static_cast<unsigned __int128>(sum_);
  Magnitude result;
  result.exponent = least_exponent_;
  result.count = 2;
  result.limbs[0] = static_cast<std::uint64_t>(bits);
  result.limbs[1] = static_cast<std::uint64_t>(bits >> 64);
  return result;
}

void WideSum::add(std::int64_t term, int exponent) {
  const int position = exponent - kLeastTermExponent;
  const auto digit = static_cast<std::size_t>(position >> 5);
  // At most 62 + 31 bits: three digits, of which the last carries the sign.
  const __int128 shifted = static_cast<__int128>(term) << (position & 31);
  digits_[digit] += static_cast<std::int64_t>(static_cast<std::uint64_t>(shifted) & 0xFFFFFFFFu);
  digits_[digit + 1] += static_cast<std::int64_t>(static_cast<std::uint64_t>(shifted) >> 32);
  digits_[digit + 2] += static_cast<std::int64_t>(shifted >> 64);
  if (++terms_ == kTermsBeforeCarry) {
    carry(digits_);
    terms_ = 0;
  }
}

void WideSum::carry(std::array<std::int64_t, kDigits>& digits) {
  for (std::size_t i = 0; i + 1 < digits.size(); ++i) {
    digits[i + 1] += digits[i] >> 32;
    digits[i] &= 0xFFFFFFFF;
  }
}

bool WideSum::negative() const {
  auto digits = digits_;
  carry(digits);
  return digits.back() < 0;
}

Magnitude WideSum::magnitude() const {
  auto digits = digits_;
  carry(digits);
  if (digits.back() < 0) {
    for (auto& digit : digits) digit = -digit;
    carry(digits);
  }
  Magnitude result;
  result.exponent = kLeastTermExponent;
  result.count = kDigits / 2;
  for (std::size_t i = 0; i < digits.size() / 2; ++i) {
    result.limbs[i] = static_cast<std::uint64_t>(digits[2 * i]) |
                      (static_cast<std::uint64_t>(digits[2 * i + 1]) << 32);
  }
  while (result.count > 1 && result.limbs[static_cast<std::size_t>(result.count - 1)] == 0)
    --result.count;
  return result;
}

}  // namespace nibble
