// SPDX-License-Identifier: Apache-2.0
// What a subcommand is to main: it adds its flags to the parser, and leaves behind what to run.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace nibble {

// The process's exit codes.
inline constexpr int kExitRight = 0;  // nothing wrong found
inline constexpr int kExitFault = 1;  // a verdict is incorrect, failed, crashed or timed_out
inline constexpr int kExitUsage =
    2;  // the command line cannot be served, or its output not written
inline constexpr int kExitNothing = 3;        // nothing could run here
inline constexpr int kExitInterrupted = 130;  // Ctrl-C: what was done so far is written

struct CommandContext {
  std::vector<std::string> argv;  // the whole command line, for Report::argv
  std::function<int()> run;       // set by the subcommand that was parsed; returns the exit code
};

// Each adds one subcommand. Flags are only parsed in there: work belongs in `context.run`.
void add_probe_command(CLI::App& app, CommandContext& context);
void add_doctor_command(CLI::App& app, CommandContext& context);
void add_list_command(CLI::App& app, CommandContext& context);
void add_worker_command(CLI::App& app, CommandContext& context);

// "nibble: MESSAGE" on stderr, one line; returns kExitUsage.
int usage_error(const std::string& message);

}  // namespace nibble
