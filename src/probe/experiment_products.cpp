// SPDX-License-Identifier: Apache-2.0
// integer, random, wide: one product each, sharp in a way of its own (docs/probing.md).
#include "probe/experiment_run.h"

namespace nibble {

Finding try_integer(Trial& trial) {
  const Case& the_case = trial.the_case;
  return try_product(trial, "", the_case.problem,
                     make_integer_operands(the_case.problem, the_case.seed), sharp_policy(trial));
}

Finding try_random(Trial& trial) {
  const Case& the_case = trial.the_case;
  return try_product(trial, "", the_case.problem,
                     trial_operands(trial, the_case.problem, the_case.seed), noise_policy(trial));
}

Finding try_wide(Trial& trial) {
  const Case& the_case = trial.the_case;
  return try_product(trial, "", the_case.problem,
                     make_wide_operands(the_case.problem, the_case.seed), bound_policy(trial));
}

}  // namespace nibble
