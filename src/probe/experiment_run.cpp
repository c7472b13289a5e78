// SPDX-License-Identifier: Apache-2.0
#include "probe/experiment_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reference/hypotheses.h"

namespace nibble {
namespace {

std::string prefixed(const std::string& what, const std::string& text) {
  return what.empty() ? text : what + ": " + text;
}

template <class Worse>
void keep_worse(std::optional<double>& into, const std::optional<double>& value,
                const Worse& worse) {
  if (value && (!into || worse(*value, *into))) into = value;
}

ComparisonPolicy policy_of(const Trial& trial) {
  ComparisonPolicy policy;
  policy.accept = trial.the_case.accept;
  policy.flushes_subnormals = trial.contract.flushes_subnormals;
  return policy;
}

}  // namespace

Verdict failed(const std::string& what, const char* step, const Error& error) {
  return Failed{{error.kind, prefixed(what, fmt::format("{}: {}", step, error.message))}};
}

Verdict incorrect(const std::string& what, const std::string& why) {
  Incorrect verdict;
  verdict.why = prefixed(what, why);
  verdict.accuracy.why_wrong = verdict.why;
  return verdict;
}

Verdict with_prefix(Verdict verdict, const std::string& what) {
  if (auto* wrong = std::get_if<Incorrect>(&verdict)) wrong->why = prefixed(what, wrong->why);
  if (auto* failure = std::get_if<Failed>(&verdict))
    failure->error.message = prefixed(what, failure->error.message);
  return verdict;
}

void merge(std::optional<Accuracy>& into, const Accuracy& accuracy) {
  if (!into) {
    into = accuracy;
    return;
  }
  const auto larger = [](double x, double y) { return x > y; };
  const auto farther_from_one = [](double x, double y) {
    return std::fabs(x - 1) > std::fabs(y - 1);
  };
  const auto larger_magnitude = [](double x, double y) { return std::fabs(x) > std::fabs(y); };
  into->accumulation = std::max(into->accumulation, accuracy.accumulation);
  keep_worse(into->worst_fraction_of_bound, accuracy.worst_fraction_of_bound, larger);
  if (accuracy.noise && (!into->noise || *accuracy.noise > *into->noise)) {
    into->noise = accuracy.noise;
    into->noise_limit = accuracy.noise_limit;
  }
  if (accuracy.gain && (!into->gain || farther_from_one(*accuracy.gain, *into->gain))) {
    into->gain = accuracy.gain;
    into->gain_tolerance = accuracy.gain_tolerance;
  }
  keep_worse(into->signed_error, accuracy.signed_error, larger_magnitude);
  into->checked += accuracy.checked;
  into->wrong += accuracy.wrong;
  into->outside_fp32 += accuracy.outside_fp32;
  into->flushed += accuracy.flushed;
  for (std::size_t bin = 0; bin < into->ulp_histogram.size(); ++bin)
    into->ulp_histogram[bin] += accuracy.ulp_histogram[bin];
}

ComparisonPolicy bound_policy(const Trial& trial) { return policy_of(trial); }

ComparisonPolicy noise_policy(const Trial& trial) {
  ComparisonPolicy policy = policy_of(trial);
  policy.judge_noise = true;
  return policy;
}

ComparisonPolicy sharp_policy(const Trial& trial) {
  ComparisonPolicy policy = policy_of(trial);
  if (policy.accept == AccumulationClass::fp32) policy.accept = AccumulationClass::exact;
  return policy;
}

Result<Operands> trial_operands(const Trial& trial, const GemmProblem& problem,
                                std::uint64_t seed) {
  return trial.weights ? make_random_operands_for(problem, trial.weights->view(), seed)
                       : make_random_operands(problem, seed);
}

bool is_supported(const Trial& trial, const GemmProblem& problem) {
  return std::holds_alternative<Supported>(trial.backend.supports(problem, trial.cpu));
}

Attempt<Gemm> prepare_gemm(Trial& trial, const GemmProblem& problem, const BlockTensor& b,
                           const Placement& placement, std::uint8_t workspace_fill) {
  const MemoryKind memory = trial.contract.memory;
  auto kernel = trial.backend.prepare(problem);
  if (!kernel) return tl::unexpected(failed("", "prepare", kernel.error()));
  if (trial.kernel.empty()) trial.kernel = (*kernel)->kernel_name();
  GuardOptions options;
  options.pattern = placement.guard_pattern + 10;
  options.misalignment = placement.misaligned ? 1 : 0;
  auto placed = PlacedOperand::place(memory, b, placement.b, options);
  if (!placed) return tl::unexpected(failed("", "B", placed.error()));
  if (auto ok = (*kernel)->prepack(std::get<BlockTensorView>(placed->view())); !ok)
    return tl::unexpected(failed("", "prepack", ok.error()));
  if (const auto damage = placed->damage("B"); !damage.empty())
    return tl::unexpected(incorrect("prepack", damage));
  options.pattern = placement.guard_pattern + 20;
  auto workspace =
      GuardedBuffer::create(memory, (*kernel)->workspace_bytes(), workspace_fill, options);
  if (!workspace) return tl::unexpected(failed("", "workspace", workspace.error()));
  return Gemm{problem, std::move(*kernel), std::move(*placed), std::move(*workspace)};
}

Attempt<Output> launch(const Trial& trial, Gemm& gemm, const ActivationTensor& a,
                       const float* alpha, const Placement& placement, int pattern) {
  const MemoryKind memory = trial.contract.memory;
  GuardOptions options;
  options.pattern = placement.guard_pattern;
  const auto* dense = std::get_if<DenseTensor>(&a);
  if (placement.misaligned) options.misalignment = dense ? dense_bytes(dense->type) : 1;
  auto placed = PlacedOperand::place(memory, a, placement.a, options);
  if (!placed) return tl::unexpected(failed("", "A", placed.error()));
  auto output = make_output(memory, gemm.problem, placement, pattern);
  if (!output) return tl::unexpected(failed("", "output", output.error()));
  GemmArguments arguments;
  arguments.a = placed->view();
  arguments.alpha = alpha;
  arguments.out = gemm.problem.out;
  arguments.out_row_stride_bytes = output->row_stride_bytes;
  arguments.output = output->buffer.bytes();
  arguments.workspace = gemm.workspace.bytes();
  arguments.threads = trial.the_case.threads;
  if (auto ok = gemm.kernel->launch(arguments); !ok)
    return tl::unexpected(failed("", "launch", ok.error()));
  std::string damage = output->damage();
  if (damage.empty()) damage = placed->damage("A");
  if (damage.empty() && gemm.b) damage = gemm.b->damage("B");
  if (damage.empty()) {
    damage = gemm.workspace.damage();
    if (!damage.empty()) damage = "memory round the workspace: " + damage;
  }
  if (!damage.empty()) return tl::unexpected(incorrect("launch", damage));
  return std::move(*output);
}

Finding judge_output(Trial& trial, const std::string& what, const Operands& operands,
                     const Output& output, const ComparisonPolicy& policy) {
  trial.stats = output_stats(output.view());
  const GemmInputs inputs = operands.inputs();
  ExactOptions options;
  options.threads = trial.the_case.threads;
  const auto accuracy = compare(inputs, output.view(), policy, options);
  if (!accuracy) return failed(what, "comparison", accuracy.error());
  Verdict verdict = judge(*accuracy);
  if (std::holds_alternative<Correct>(verdict)) {
    merge(trial.accuracy, *accuracy);
    return std::nullopt;
  }
  if (auto* wrong = std::get_if<Incorrect>(&verdict)) {
    const auto diagnosis = diagnose({inputs, output.view(), output.poison, policy});
    if (diagnosis) wrong->diagnosis = *diagnosis;
  }
  return with_prefix(std::move(verdict), what);
}

Finding try_product(Trial& trial, const std::string& what, const GemmProblem& problem,
                    const Result<Operands>& operands, const ComparisonPolicy& policy) {
  if (!operands) return failed(what, "operands", operands.error());
  auto gemm = prepare_gemm(trial, problem, operands->b);
  if (!gemm) return with_prefix(std::move(gemm.error()), what);
  const auto output = launch(trial, *gemm, operands->a, &operands->alpha);
  if (!output) return with_prefix(output.error(), what);
  return judge_output(trial, what, *operands, *output, policy);
}

}  // namespace nibble
