// SPDX-License-Identifier: Apache-2.0
// `nibble worker`, hidden: the child of a probe. Its cases and answers go over descriptors that the
// parent opened.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.h"
#include "core/worker_channel.h"
#include "probe/worker.h"

namespace nibble {

void add_worker_command(CLI::App& app, CommandContext& context) {
  auto* command = app.add_subcommand("worker", "run the cases that a probe sends");
  command->group("");
  auto environment = std::make_shared<bool>(false);
  command->add_flag("--environment", *environment, "say what is on this machine instead");
  command->callback([&context, environment] {
    context.run = [environment] {
      return *environment ? run_environment_worker(kWorkerResultFd)
                          : run_worker(kWorkerCaseFd, kWorkerResultFd);
    };
  });
}

}  // namespace nibble
