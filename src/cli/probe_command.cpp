// SPDX-License-Identifier: Apache-2.0
// `nibble probe`: plans the cases, runs them in children, writes the report.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "backends/registry.h"
#include "cli/build_info.h"
#include "cli/command.h"
#include "cli/probe_flags.h"
#include "cli/progress.h"
#include "device/environment.h"
#include "probe/interrupt.h"
#include "probe/isolated_environment.h"
#include "probe/run_isolated.h"

namespace nibble {
namespace {

// Every backend of the report, and those that only a name finds.
std::vector<const Backend*> candidates(const ProbeRequest& request) {
  std::vector<const Backend*> result;
  for (const auto& backend : backends()) result.push_back(backend.get());
  for (const std::string& wanted : request.backends) {
    const Backend* hidden = find_backend(wanted);
    if (hidden != nullptr && std::find(result.begin(), result.end(), hidden) == result.end())
      result.push_back(hidden);
  }
  return result;
}

// Its library is not here: one case has said so, the others would say the same.
bool is_absent(const Outcome& outcome) {
  return std::holds_alternative<Unsupported>(outcome.verdict) && outcome.version.empty();
}

// One run over all cases: the first of each backend, then the rest of those that are here.
class Run {
 public:
  Run(const std::vector<Case>& cases, const ProbeFlags& flags, Report& report)
      : cases_(cases),
        flags_(flags),
        report_(report),
        progress_(static_cast<std::int64_t>(cases.size()), flags.output.quiet) {}

  Status run() {
    auto stream = OutcomeStream::open(flags_.output, report_);
    if (!stream) return tl::unexpected(stream.error());
    stream_ = &*stream;
    std::vector<std::size_t> firsts, rest;
    std::set<std::string> seen, absent;
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      if (seen.insert(cases_[i].backend).second) firsts.push_back(i);
    }
    run_some(firsts);
    for (const auto& [index, outcome] : outcomes_) {
      if (is_absent(outcome)) absent.insert(outcome.backend);
    }
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      if (!outcomes_.contains(i) && !absent.contains(cases_[i].backend)) rest.push_back(i);
    }
    progress_.drop(static_cast<std::int64_t>(cases_.size() - firsts.size() - rest.size()));
    if (!report_.partial) run_some(rest);
    for (auto& [index, outcome] : outcomes_) report_.outcomes.push_back(std::move(outcome));
    return stream_status_;
  }

 private:
  void run_some(const std::vector<std::size_t>& indices) {
    if (indices.empty()) return;
    std::vector<Case> cases;
    for (const std::size_t index : indices) cases.push_back(cases_[index]);
    IsolationOptions options;
    options.child_per_case = flags_.isolate == IsolateMode::one_case;
    options.stop_fd = interrupt_.fd();
    std::size_t done = 0;
    options.on_outcome = [&](const Outcome& outcome) {
      progress_.step(case_name(cases[done++]) + ": " + verdict_name(outcome.verdict));
      if (stream_status_) stream_status_ = stream_->add(outcome);
    };
    IsolatedRun result = run_isolated(cases, options);
    for (std::size_t i = 0; i < result.outcomes.size(); ++i)
      outcomes_.emplace(indices[i], std::move(result.outcomes[i]));
    report_.partial = report_.partial || result.stopped;
  }

  const std::vector<Case>& cases_;
  const ProbeFlags& flags_;
  Report& report_;
  Progress progress_;
  Interrupt interrupt_;
  OutcomeStream* stream_ = nullptr;
  Status stream_status_;
  std::map<std::size_t, Outcome> outcomes_;
};

int print_plan(const std::vector<Case>& cases) {
  for (const Case& each : cases) fmt::print("{}\n", case_name(each));
  return kExitRight;
}

int run_probe(const ProbeFlags& flags, const std::vector<std::string>& argv) {
  if (auto ok = check_outputs(flags.output); !ok) return usage_error(ok.error().message);
  const auto request = to_request(flags);
  if (!request) return usage_error(request.error().message);
  const auto cases = make_cases(*request, candidates(*request), read_cpu());
  if (!cases) return usage_error(cases.error().message);
  if (cases->empty()) return usage_error("no case is left; --dry-run without --filter lists them");
  if (flags.dry_run) return print_plan(*cases);
  Report report;
  report.argv = argv;
  report.git = git_state();
  report.environment = read_environment_isolated();
  Run run(*cases, flags, report);
  const auto streamed = run.run();
  const auto written = write_outputs(report, flags.output);
  if (!streamed) return usage_error(streamed.error().message);
  if (!written) return usage_error(written.error().message);
  return exit_code_of(report, report.partial);
}

}  // namespace

void add_probe_command(CLI::App& app, CommandContext& context) {
  CLI::App* probe = app.add_subcommand(
      "probe", "Which implementations compute right here, and how are others wrong?");
  auto flags = std::make_shared<ProbeFlags>();
  add_probe_flags(*probe, *flags);
  probe->footer(
      "Examples:\n"
      "  nibble probe\n"
      "  nibble probe --backend cpu --experiment pads,canary --shape 1,16x4096x6144\n"
      "  nibble probe --weights model.safetensors --tensor layers.0.up_proj.weight");
  probe->callback([flags, &context] {
    context.run = [flags, argv = context.argv] { return run_probe(*flags, argv); };
  });
}

}  // namespace nibble
