// SPDX-License-Identifier: Apache-2.0
// `nibble doctor`: what is on this machine, and what that allows.
#include <CLI/CLI.hpp>
#include <memory>

#include "backends/registry.h"
#include "cli/build_info.h"
#include "cli/command.h"
#include "cli/output_flags.h"
#include "probe/isolated_environment.h"
#include "report/machine.h"

namespace nibble {
namespace {

BackendInfo info_of(const Backend& backend) {
  BackendInfo info;
  info.name = backend.name();
  info.summary = backend.summary();
  if (auto version = backend.version())
    info.version = *version;
  else
    info.why = version.error().message;
  const Contract contract = backend.contract();
  info.activations = contract.activations;
  info.formats = contract.formats;
  info.outs = contract.outs;
  info.note = contract.note;
  return info;
}

int run_doctor(const OutputFlags& flags) {
  Machine machine;
  machine.nibble_version = version_text();
  machine.git = git_state();
  machine.environment = read_environment_isolated();
  for (const auto& backend : backends()) machine.backends.push_back(info_of(*backend));
  return print_result(flags.json ? write_machine_json(machine)
                                 : write_machine(machine, stdout_style(flags.colour)));
}

}  // namespace

void add_doctor_command(CLI::App& app, CommandContext& context) {
  CLI::App* doctor = app.add_subcommand(
      "doctor", "What is on this machine: CPU, GPUs, libraries; and what that allows.");
  auto flags = std::make_shared<OutputFlags>();
  add_output_flags(*doctor, *flags, false);
  doctor->footer(
      "Examples:\n"
      "  nibble doctor\n"
      "  nibble doctor --json | jq '.backends[] | {name, version}'\n"
      "  NIBBLE_GGML_LIBRARY=/opt/xllamacpp.abi3.so nibble doctor");
  doctor->callback([flags, &context] { context.run = [flags] { return run_doctor(*flags); }; });
}

}  // namespace nibble
