// SPDX-License-Identifier: Apache-2.0
// Judges an output against the exact product: accumulation class, noise, gain (docs/verdicts.md has
// the definitions).
#pragma once

#include <cstdint>

#include "core/gemm_operands.h"
#include "core/verdict.h"
#include "reference/exact_product.h"

namespace nibble {

struct ComparisonPolicy {
  AccumulationClass accept =
      AccumulationClass::fp32;      // the worst class that is still Correct: exact, fp32 or reduced
  bool judge_noise = false;         // operands are random with both signs
  bool flushes_subnormals = false;  // by the backend's contract
};

// Panels are added in any order; finish() may be called once.
class Comparison {
 public:
  explicit Comparison(const ComparisonPolicy& policy);
  // `output` holds the whole product; the panel says which rows are compared.
  void add(const ExactPanel& panel, const OutputView& output);
  Accuracy finish() const;

 private:
  ComparisonPolicy policy_;
  // (state: owner's choice)
};

// The whole product in panels of bounded memory: exact_product and Comparison together.
Result<Accuracy> compare(const GemmInputs& inputs, const OutputView& output,
                         const ComparisonPolicy& policy, const ExactOptions& options = {});

// Correct where accuracy.why_wrong is empty, else Incorrect without a diagnosis.
Verdict judge(const Accuracy& accuracy);

OutputStats output_stats(const OutputView& output);

}  // namespace nibble
