// SPDX-License-Identifier: Apache-2.0
// What the experiments share: one product from prepare() to its judgement. A step that goes wrong
// is a verdict already, so experiments read as the list of what they try.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "backends/backend.h"
#include "probe/case.h"
#include "probe/experiment_launch.h"
#include "reference/comparison.h"

namespace nibble {

// One case while it runs. `accuracy` is the worst over the sub-runs that were right.
struct Trial {
  const Backend& backend;
  const Case& the_case;
  Contract contract;
  CpuInfo cpu;
  const BlockTensor* weights = nullptr;  // B of a checkpoint; else operands are generated

  std::optional<Accuracy> accuracy;
  std::optional<OutputStats> stats;  // of the last output that was judged
  std::string kernel;
};

using Finding = std::optional<Verdict>;  // nothing: right so far
template <class T>
using Attempt = tl::expected<T, Verdict>;

// ---- Verdicts in words. `what` names the sub-run; empty where the case has only one.

Verdict failed(const std::string& what, const char* step, const Error& error);
Verdict incorrect(const std::string& what, const std::string& why);
Verdict with_prefix(Verdict verdict, const std::string& what);

// The worst of both; counts are added.
void merge(std::optional<Accuracy>& into, const Accuracy& accuracy);

// ---- Policies. `sharp`: the result is one number, whatever the order of the sum.
ComparisonPolicy bound_policy(const Trial& trial);
ComparisonPolicy noise_policy(const Trial& trial);
ComparisonPolicy sharp_policy(const Trial& trial);

// ---- Steps.

// As `random`, with the checkpoint's B where there is one.
Result<Operands> trial_operands(const Trial& trial, const GemmProblem& problem, std::uint64_t seed);

bool is_supported(const Trial& trial, const GemmProblem& problem);

// A kernel with its weights prepacked and a workspace of the size that it asked for.
struct Gemm {
  GemmProblem problem;
  std::unique_ptr<PreparedGemm> kernel;
  std::optional<PlacedOperand> b;
  GuardedBuffer workspace;
};

Attempt<Gemm> prepare_gemm(Trial& trial, const GemmProblem& problem, const BlockTensor& b,
                           const Placement& placement = {}, std::uint8_t workspace_fill = 0xFF);

// `alpha` nullptr: left out. `pattern`: which poison the output holds before. Looks for stray
// writes and changed inputs; changes nothing of the trial, so that threads may call it.
Attempt<Output> launch(const Trial& trial, Gemm& gemm, const ActivationTensor& a,
                       const float* alpha, const Placement& placement = {}, int pattern = 0);

// Compares with the exact product, and says how it is wrong where it is.
Finding judge_output(Trial& trial, const std::string& what, const Operands& operands,
                     const Output& output, const ComparisonPolicy& policy);

// All of it: prepare, prepack, launch, judge.
Finding try_product(Trial& trial, const std::string& what, const GemmProblem& problem,
                    const Result<Operands>& operands, const ComparisonPolicy& policy);

// ---- The experiments, one file each.
Finding try_integer(Trial& trial);
Finding try_random(Trial& trial);
Finding try_wide(Trial& trial);
Finding try_locate(Trial& trial);
Finding try_pads(Trial& trial);
Finding try_canary(Trial& trial);
Finding try_contract(Trial& trial);
Finding try_repeat(Trial& trial);
Finding try_extremes(Trial& trial);
Finding try_edges(Trial& trial);

}  // namespace nibble
