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

constexpr std::size_t kWidth = 100, kIndent = 2, kNameColumns = 29;
constexpr const char* kRareGroup = "rare";

// What it says, how it is called, its commands or flags, three examples.
class HelpFormat : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string program,
                        CLI::AppFormatMode mode) const override {
    std::string positionals, positional_lines, flag_lines, command_lines;
    int left_out = 0;
    for (const CLI::Option* option : app->get_options()) {
      if (option->get_positional()) {
        positionals += " [" + option->get_name(true, false) + " ...]";
        add_line(option->get_name(true, false), option->get_description(), positional_lines);
      } else if (option->get_group() == kRareGroup && mode != CLI::AppFormatMode::All) {
        ++left_out;
      } else if (option != app->get_help_all_ptr()) {
        add_line(flag_of(option), option->get_description(), flag_lines);
      }
    }
    const auto commands =
        app->get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
    for (const CLI::App* command : commands)
      add_line(command->get_name(), command->get_description(), command_lines);
    if (left_out > 0)
      add_line("--help-all", "the same with " + std::to_string(left_out) + " more flags",
               flag_lines);

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
  app.set_help_all_flag("--help-all", "print this and exit");
}

void leave_to_help_all(CLI::App& app, std::initializer_list<const char*> flags) {
  for (const char* flag : flags) app.get_option(flag)->group(kRareGroup);
}

int usage_error(const std::string& message) {
  std::string line = sanitize(message);
  line.erase(line.find_last_not_of(' ') + 1);
  fmt::print(stderr, "nibble: {}\n", line);
  return kExitUsage;
}

}  // namespace nibble
