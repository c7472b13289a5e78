// SPDX-License-Identifier: Apache-2.0
// Each enumeration that flags, JSON and tables show has one table of names; both directions read
// it.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace nibble {

// Specialised beside each enumeration: `static constexpr std::array table{std::pair{E::x,
// std::string_view("x")}, ...}`.
template <class E>
struct EnumNames;

template <class E>
constexpr std::string_view name(E value) {
  for (const auto& [each, text] : EnumNames<E>::table) {
    if (each == value) return text;
  }
  return "?";
}

template <class E>
constexpr std::optional<E> parse_enum(std::string_view text) {
  for (const auto& [each, known] : EnumNames<E>::table) {
    if (known == text) return each;
  }
  return std::nullopt;
}

// "a, b, c": for the message that names the allowed values.
template <class E>
std::string all_names() {
  std::string joined;
  for (const auto& [each, text] : EnumNames<E>::table) {
    if (!joined.empty()) joined += ", ";
    joined += text;
  }
  return joined;
}

}  // namespace nibble
