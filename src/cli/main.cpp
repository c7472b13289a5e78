// SPDX-License-Identifier: Apache-2.0
// The program: parses the command line, runs one subcommand, returns its exit code.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "cli/build_info.h"
#include "cli/command.h"
#include "cli/help_format.h"
#include "report/summary.h"
#include "report/text.h"

namespace nibble {

int usage_error(const std::string& message) {
  fmt::print(stderr, "nibble: {}\n", sanitize(message));
  return kExitUsage;
}

namespace {

std::string version_line() {
  const std::string git = git_text(git_state());
  return fmt::format("nibble {}{}", version_text(), git.empty() ? "" : " (git " + git + ")");
}

int parse_and_run(int argc, char** argv) {
  CommandContext context;
  context.argv.assign(argv, argv + argc);
  CLI::App app("nibble tells the truth about FP4 matrix multiplication: NVFP4 and MXFP4.",
               "nibble");
  use_help_format(app);
  app.set_version_flag("--version", version_line, "print the version and exit");
  app.require_subcommand(1);
  add_doctor_command(app, context);
  add_list_command(app, context);
  app.footer(
      "Examples:\n"
      "  nibble probe\n"
      "  nibble doctor\n"
      "  nibble list hypotheses\n"
      "\n"
      "`nibble COMMAND --help` says more.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help and --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    return usage_error(one_line(error.what()) + "; `nibble --help` helps");
  }
  return context.run();
}

}  // namespace
}  // namespace nibble

int main(int argc, char** argv) {
  try {
    return nibble::parse_and_run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "nibble: {}\n", nibble::sanitize(error.what()));
    return nibble::kExitUsage;
  }
}
