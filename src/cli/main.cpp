// SPDX-License-Identifier: Apache-2.0
// The program: parses the command line, runs one subcommand, returns its exit code.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <exception>

#include "cli/build_info.h"
#include "cli/command.h"
#include "cli/help_format.h"
#include "report/summary.h"

namespace nibble {
namespace {

std::string version_line() {
  const std::string git = git_text(git_state());
  return fmt::format("nibble {}{}", version_text(), git.empty() ? "" : " (git " + git + ")");
}

// The parser itself does not say which word is no command.
std::string command_trouble(const CLI::App& app, const std::vector<std::string>& argv) {
  const std::string word = argv.size() < 2 ? "" : argv[1];
  if (word.starts_with("-")) return "";
  std::string known;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == word) return "";
    if (command->get_group().empty()) continue;  // hidden
    known += (known.empty() ? "" : ", ") + command->get_name();
  }
  if (word.empty()) return "a command is required: " + known;
  return "'" + word + "' is no command; the commands are " + known;
}

int parse_and_run(int argc, char** argv) {
  CommandContext context;
  context.argv.assign(argv, argv + argc);
  CLI::App app("nibble tells the truth about FP4 matrix multiplication: NVFP4 and MXFP4.",
               "nibble");
  use_help_format(app);
  app.set_version_flag("--version", version_line, "print the version and exit");
  app.require_subcommand(1);
  add_probe_command(app, context);
  add_doctor_command(app, context);
  add_list_command(app, context);
  add_worker_command(app, context);
  app.footer(
      "Examples:\n"
      "  nibble probe\n"
      "  nibble doctor\n"
      "  nibble list hypotheses\n"
      "\n"
      "`nibble COMMAND --help` says more.");
  if (const std::string trouble = command_trouble(app, context.argv); !trouble.empty())
    return usage_error(trouble);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help and --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    return usage_error(std::string(error.what()) + "; `nibble --help` helps");
  }
  return context.run();
}

}  // namespace
}  // namespace nibble

int main(int argc, char** argv) {
  try {
    return nibble::parse_and_run(argc, argv);
  } catch (const std::exception& error) {
    return nibble::usage_error(error.what());
  }
}
