// SPDX-License-Identifier: Apache-2.0
#include "probe/run_case.h"

#include <fmt/format.h>

#include <exception>

#include "backends/registry.h"
#include "device/environment.h"
#include "probe/experiment_run.h"
#include "probe/load_weights.h"

namespace nibble {
namespace {

Finding run_experiment(Trial& trial) {
  switch (trial.the_case.experiment) {
    case Experiment::integer:
      return try_integer(trial);
    case Experiment::random:
      return try_random(trial);
    case Experiment::wide:
      return try_wide(trial);
    case Experiment::locate:
      return try_locate(trial);
    case Experiment::pads:
      return try_pads(trial);
    case Experiment::canary:
      return try_canary(trial);
    case Experiment::contract:
      return try_contract(trial);
    case Experiment::repeat:
      return try_repeat(trial);
    case Experiment::extremes:
      return try_extremes(trial);
    case Experiment::edges:
      return try_edges(trial);
  }
  return failed("", "experiment", {ErrorKind::invalid_argument, "unknown"});
}

bool is_refusal(ErrorKind kind) {
  return kind == ErrorKind::not_found || kind == ErrorKind::unsupported;
}

void fill(const Backend& backend, const Case& the_case, const BlockTensor* weights,
          Outcome& outcome) {
  outcome.note = backend.contract().note;
  const auto version = backend.version();
  if (!version) {
    if (is_refusal(version.error().kind))
      outcome.verdict = Unsupported{version.error().message};
    else
      outcome.verdict = failed("", "version", version.error());
    return;
  }
  outcome.version = *version;
  Trial trial{backend, the_case, backend.contract(), read_cpu()};
  const Support support = backend.supports(the_case.problem, trial.cpu);
  if (const auto* refused = std::get_if<Unsupported>(&support)) {
    outcome.verdict = *refused;
    return;
  }
  std::optional<Weights> from_file;
  if (weights == nullptr && !the_case.weights_file.empty()) {
    auto loaded = load_weights(the_case.weights_file, the_case.tensor, the_case.declared_scales);
    if (!loaded) {
      outcome.verdict = failed("", "weights", loaded.error());
      return;
    }
    from_file = std::move(*loaded);
    weights = &from_file->tensor;
    const bool both = !outcome.note.empty() && !from_file->note.empty();
    outcome.note += (both ? "; " : "") + from_file->note;
    if (from_file->nan_scales && !trial.contract.nan_block_scales) {
      outcome.verdict = Unsupported{"the tensor has block scales of NaN, which it reads otherwise"};
      return;
    }
  }
  trial.weights = weights;
  Finding finding = run_experiment(trial);
  outcome.verdict = finding ? std::move(*finding)
                            : Verdict(Correct{trial.accuracy.value_or(Accuracy{}), std::nullopt});
  outcome.kernel = trial.kernel;
  outcome.stats = trial.stats;
}

}  // namespace

Outcome run_case(const Backend& backend, const Case& the_case, const BlockTensor* weights) {
  Outcome outcome;
  outcome.backend = the_case.backend;
  outcome.experiment = the_case.experiment;
  outcome.problem = the_case.problem;
  outcome.seed = the_case.seed;
  try {
    fill(backend, the_case, weights, outcome);
  } catch (const std::exception& exception) {
    outcome.verdict = failed("", "exception", {ErrorKind::failed, exception.what()});
  } catch (...) {
    outcome.verdict = failed("", "exception", {ErrorKind::failed, "of no known type"});
  }
  return outcome;
}

Outcome run_case(const Case& the_case) {
  if (const Backend* backend = find_backend(the_case.backend)) return run_case(*backend, the_case);
  Outcome outcome;
  outcome.backend = the_case.backend;
  outcome.experiment = the_case.experiment;
  outcome.problem = the_case.problem;
  outcome.seed = the_case.seed;
  outcome.verdict =
      Failed{{ErrorKind::not_found, "no backend '" + the_case.backend + "' in this build"}};
  return outcome;
}

}  // namespace nibble
