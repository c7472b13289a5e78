// SPDX-License-Identifier: Apache-2.0
#include "cli/choice_flag.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

namespace nibble {
namespace {

constexpr std::size_t kShortChoices = 20;  // columns that fit behind a flag in --help
constexpr std::size_t kLongChoices = 60;   // beyond it --help does not list them

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
  const std::string choices = join(names, "|");
  const bool is_positional = !flag.starts_with("--");
  const bool is_short = choices.size() <= kShortChoices && !is_positional;
  const bool is_long = choices.size() > kLongChoices;
  auto* option = app.add_option(
      flag,
      [index_of, chosen = std::move(chosen)](const CLI::results_t& values) {
        for (const std::string& value : values) chosen(index_of(value));
        return true;
      },
      is_short || is_long ? help : help + ": " + join(names, ", "));
  option->check([index_of, names](const std::string& value) {
    if (index_of(value) < names.size()) return std::string();
    return "'" + value + "' is not one of " + join(names, ", ");
  });
  option->type_name(is_short ? choices : list ? "NAME,..." : "NAME");
  if (!list)
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  else
    option->expected(is_positional ? 0 : 1, CLI::detail::expected_max_vector_size)
        ->delimiter(',')
        ->allow_extra_args(is_positional);
}

}  // namespace nibble
