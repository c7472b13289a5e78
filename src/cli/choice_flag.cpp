// SPDX-License-Identifier: Apache-2.0
#include "cli/choice_flag.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

namespace nibble {
namespace {

std::string join(const std::vector<std::string>& names, const char* separator) {
  std::string joined;
  for (const std::string& each : names) {
    if (!joined.empty()) joined += separator;
    joined += each;
  }
  return joined;
}

}  // namespace

void add_choice_flag(CLI::App& app, const std::string& flag, const std::string& help,
                     std::vector<std::string> names, bool list,
                     std::function<void(std::size_t)> chosen) {
  const auto index_of = [names](const std::string& value) {
    return static_cast<std::size_t>(std::find(names.begin(), names.end(), value) - names.begin());
  };
  auto* option = app.add_option(
      flag,
      [index_of, chosen = std::move(chosen)](const CLI::results_t& values) {
        for (const std::string& value : values) chosen(index_of(value));
        return true;
      },
      help);
  option->check([index_of, names](const std::string& value) {
    if (index_of(value) < names.size()) return std::string();
    return "'" + value + "' is not one of " + join(names, ", ");
  });
  option->type_name(join(names, "|"));
  if (list)
    option->expected(1, CLI::detail::expected_max_vector_size)
        ->delimiter(',')
        ->allow_extra_args(false);
  else
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

}  // namespace nibble
