// SPDX-License-Identifier: Apache-2.0
#include "cli/help_format.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/command.h"
#include "report/text.h"

namespace nibble {
namespace {

constexpr std::size_t kWidth = 100, kIndent = 2, kNameColumns = 26;

// What it says, how it is called, its commands or flags, three examples.
class HelpFormat : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string program,
                        CLI::AppFormatMode) const override {
    const auto options =
        app->get_options([](const CLI::Option* option) { return !option->get_group().empty(); });
    const auto commands =
        app->get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
    std::string positionals, positional_lines, flag_lines, command_lines;
    for (const CLI::Option* option : options) {
      if (option->get_positional()) {
        positionals += " [" + option->get_name(true, false) + " ...]";
        add_line(option->get_name(true, false), option->get_description(), positional_lines);
      } else {
        add_line(flag_of(option), option->get_description(), flag_lines);
      }
    }
    for (const CLI::App* command : commands)
      add_line(command->get_name(), command->get_description(), command_lines);

    std::string help = app->get_description() + "\n\nUsage: " + program;
    help += commands.empty() ? positionals + " [flags]" : " COMMAND [flags]";
    help += "\n";
    if (!command_lines.empty()) help += "\nCommands:\n" + command_lines;
    if (!positional_lines.empty()) help += "\nArguments:\n" + positional_lines;
    help += "\nFlags:\n" + flag_lines;
    return help + "\n" + app->get_footer() + "\n";
  }

 private:
  static std::string flag_of(const CLI::Option* option) {
    std::string names = option->get_name(false, true);
    if (const std::size_t comma = names.find(','); comma != std::string::npos)
      names.insert(comma + 1, " ");
    const bool takes_value = option->get_type_size() != 0 && option->get_expected_max() > 0;
    return takes_value ? names + " " + option->get_type_name() : names;
  }

  static void add_line(const std::string& left, const std::string& right, std::string& lines) {
    const bool own_line = columns_of(left) > kNameColumns - 1;
    lines += std::string(kIndent, ' ');
    if (own_line)
      lines += left + "\n" + std::string(kIndent + kNameColumns, ' ');
    else
      lines += pad_right(left, kNameColumns);
    std::string separator;
    for (const std::string& line : wrap(right, kWidth - kIndent - kNameColumns)) {
      lines += separator + line;
      separator = "\n" + std::string(kIndent + kNameColumns, ' ');
    }
    lines += "\n";
  }
};

}  // namespace

void use_help_format(CLI::App& app) {
  app.formatter(std::make_shared<HelpFormat>());
  app.set_help_flag("--help", "print this and exit");
}

int usage_error(const std::string& message) {
  std::string line = sanitize(message);
  line.erase(line.find_last_not_of(' ') + 1);
  fmt::print(stderr, "nibble: {}\n", line);
  return kExitUsage;
}

}  // namespace nibble
