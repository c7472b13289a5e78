// SPDX-License-Identifier: Apache-2.0
// Flags whose value is one of a few names. A wrong value is one line with the flag, the value and
// the allowed ones.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/enum_names.h"

namespace CLI {
class App;
}

namespace nibble {

// `chosen` gets the index into `names`. `list`: several values, comma-separated or repeated.
void add_choice_flag(CLI::App& app, const std::string& flag, const std::string& help,
                     std::vector<std::string> names, bool list,
                     std::function<void(std::size_t)> chosen);

template <class E>
std::vector<std::string> names_of() {
  std::vector<std::string> names;
  for (const auto& entry : EnumNames<E>::table) names.emplace_back(entry.second);
  return names;
}

// --flag NAME, the last one wins.
template <class E>
void add_choice_flag(CLI::App& app, const std::string& flag, E& value, const std::string& help) {
  add_choice_flag(app, flag, help, names_of<E>(), false,
                  [&value](std::size_t index) { value = EnumNames<E>::table[index].first; });
}

// --flag NAME,NAME, repeatable.
template <class E>
void add_choice_flag(CLI::App& app, const std::string& flag, std::vector<E>& values,
                     const std::string& help) {
  add_choice_flag(app, flag, help, names_of<E>(), true, [&values](std::size_t index) {
    values.push_back(EnumNames<E>::table[index].first);
  });
}

}  // namespace nibble
