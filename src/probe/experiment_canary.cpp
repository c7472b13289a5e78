// SPDX-License-Identifier: Apache-2.0
// canary: the same product twice, with all that must not matter different: what output, workspace
// and the memory round every buffer held before, gaps between output rows, pointers off their
// boundary, and B overwritten once it was prepacked.
#include "probe/experiment_run.h"

namespace nibble {

Finding try_canary(Trial& trial) {
  const GemmProblem& problem = trial.the_case.problem;
  const auto operands = trial_operands(trial, problem, trial.the_case.seed);
  if (!operands) return failed("", "operands", operands.error());

  auto gemm = prepare_gemm(trial, problem, operands->b, {}, 0xFF);
  if (!gemm) return gemm.error();
  const auto first = launch(trial, *gemm, operands->a, &operands->alpha, {}, 0);
  if (!first) return first.error();

  Placement other;
  other.guard_pattern = 1000;
  other.out_pad_bytes = 16;
  other.misaligned = true;
  const std::string what = "other memory round it, B overwritten after prepack";
  auto second_gemm = prepare_gemm(trial, problem, operands->b, other, 0x7B);
  if (!second_gemm) return with_prefix(second_gemm.error(), what);
  second_gemm->b->scribble();
  const auto second = launch(trial, *second_gemm, operands->a, &operands->alpha, other, 1);
  if (!second) return with_prefix(second.error(), what);

  auto wrong = judge_output(trial, "", *operands, *first, noise_policy(trial));
  if (const auto missing = unwritten(*first, *second); !missing.empty()) {
    auto* judged = wrong ? std::get_if<Incorrect>(&*wrong) : nullptr;
    if (judged == nullptr) return incorrect("", missing);
    judged->why = missing;
  }
  if (wrong) return wrong;
  if (const auto changed = difference(first->view(), second->view()); !changed.empty())
    return incorrect("", what + " " + changed);
  return std::nullopt;
}

}  // namespace nibble
