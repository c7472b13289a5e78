// SPDX-License-Identifier: Apache-2.0
// repeat: two sets of activations in turn, a larger problem between them in the same workspace,
// then two threads at once. Every result must be the bits of the first run, and the first run
// right.
#include <fmt/format.h>

#include <array>
#include <exception>
#include <thread>

#include "probe/experiment_run.h"

namespace nibble {
namespace {

constexpr int kRounds = 4;

struct Series {
  Operands operands;
  std::optional<Output> first;
};

Finding launch_again(const Trial& trial, Gemm& gemm, const Series& series, const std::string& what,
                     int pattern) {
  const auto output = launch(trial, gemm, series.operands.a, &series.operands.alpha, {}, pattern);
  if (!output) return with_prefix(output.error(), what);
  if (const auto changed = difference(series.first->view(), output->view()); !changed.empty())
    return incorrect(what, "the same operands again " + changed);
  return std::nullopt;
}

// Judges the first launch of a series and keeps its bits.
Finding launch_first(Trial& trial, Gemm& gemm, Series& series, const std::string& what) {
  auto output = launch(trial, gemm, series.operands.a, &series.operands.alpha);
  if (!output) return with_prefix(output.error(), what);
  if (auto wrong = judge_output(trial, what, series.operands, *output, noise_policy(trial)))
    return wrong;
  series.first = std::move(*output);
  return std::nullopt;
}

// Nothing where the backend does not take twice the size.
Result<std::optional<Operands>> larger_operands(const Trial& trial, GemmProblem& problem) {
  problem.shape.m *= 2;
  if (!trial.weights) problem.shape.n *= 2;
  if (!is_supported(trial, problem)) return std::optional<Operands>();
  auto operands = trial_operands(trial, problem, trial.the_case.seed + 2);
  if (!operands) return tl::unexpected(operands.error());
  return std::optional<Operands>(std::move(*operands));
}

// Runs `launch_it` with the one workspace that both problems use.
template <class Launch>
Finding in_workspace(Gemm& gemm, GuardedBuffer& shared, const Launch& launch_it) {
  std::swap(gemm.workspace, shared);
  auto finding = launch_it();
  std::swap(gemm.workspace, shared);
  return finding;
}

Finding run_rounds(Trial& trial, Gemm& gemm, std::array<Series, 2>& series) {
  GemmProblem larger_problem = trial.the_case.problem;
  auto made = larger_operands(trial, larger_problem);
  if (!made) return failed("larger problem", "operands", made.error());
  Series larger;
  std::optional<Gemm> larger_gemm;
  GuardedBuffer* shared = &gemm.workspace;
  if (*made) {
    larger.operands = std::move(**made);
    auto prepared = prepare_gemm(trial, larger_problem, larger.operands.b);
    if (!prepared) return with_prefix(prepared.error(), "larger problem");
    larger_gemm = std::move(*prepared);
    if (larger_gemm->workspace.bytes().size() > shared->bytes().size())
      shared = &larger_gemm->workspace;
  }
  for (int round = 0; round < kRounds; ++round) {
    const int pattern = round % 2;
    if (larger_gemm) {
      const std::string what = fmt::format("larger problem, round {}", round + 1);
      auto wrong = in_workspace(*larger_gemm, *shared, [&] {
        return larger.first ? launch_again(trial, *larger_gemm, larger, what, pattern)
                            : launch_first(trial, *larger_gemm, larger, what);
      });
      if (wrong) return wrong;
    }
    for (std::size_t i = 0; i < series.size(); ++i) {
      const std::string what = fmt::format("round {}, activations {}", round + 1, i + 1);
      auto wrong = in_workspace(
          gemm, *shared, [&] { return launch_again(trial, gemm, series[i], what, pattern); });
      if (wrong) return wrong;
    }
  }
  return std::nullopt;
}

Finding run_thread(const Trial& trial, Gemm& gemm, const Series& series, std::size_t thread) {
  const std::string what = fmt::format("two threads at once, thread {}", thread + 1);
  try {
    for (int round = 0; round < kRounds; ++round) {
      if (auto wrong = launch_again(trial, gemm, series, what, round % 2)) return wrong;
    }
  } catch (const std::exception& exception) {
    return failed(what, "exception", {ErrorKind::failed, exception.what()});
  } catch (...) {
    return failed(what, "exception", {ErrorKind::failed, "of no known type"});
  }
  return std::nullopt;
}

Finding run_threads(Trial& trial, const std::array<Series, 2>& series) {
  std::array<std::optional<Gemm>, 2> gemms;
  for (std::size_t i = 0; i < 2; ++i) {
    auto prepared = prepare_gemm(trial, trial.the_case.problem, series[i].operands.b);
    if (!prepared) return with_prefix(prepared.error(), "two threads at once");
    gemms[i] = std::move(*prepared);
  }
  std::array<Finding, 2> findings;
  {
    const auto run = [&](std::size_t i) {
      findings[i] = run_thread(trial, *gemms[i], series[i], i);
    };
    std::jthread other(run, 1);
    run(0);
  }
  return findings[0] ? findings[0] : findings[1];
}

}  // namespace

Finding try_repeat(Trial& trial) {
  const GemmProblem& problem = trial.the_case.problem;
  std::array<Series, 2> series;
  auto first = trial_operands(trial, problem, trial.the_case.seed);
  if (!first) return failed("", "operands", first.error());
  auto second = make_random_operands_for(problem, first->b.view(), trial.the_case.seed + 1);
  if (!second) return failed("", "operands", second.error());
  series[0].operands = std::move(*first);
  series[1].operands = std::move(*second);
  auto gemm = prepare_gemm(trial, problem, series[0].operands.b);
  if (!gemm) return gemm.error();
  for (std::size_t i = 0; i < series.size(); ++i) {
    const std::string what = fmt::format("first run, activations {}", i + 1);
    if (auto wrong = launch_first(trial, *gemm, series[i], what)) return wrong;
  }
  if (auto wrong = run_rounds(trial, *gemm, series)) return wrong;
  return run_threads(trial, series);
}

}  // namespace nibble
