// SPDX-License-Identifier: Apache-2.0
// Judges an output against the exact product: accumulation class, noise, gain. docs/verdicts.md has
// the definitions.
#pragma once

#include <cstdint>
#include <optional>

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

// |out - v| may be this much and still be of the class; c of docs/verdicts.md times S, beside half
// an ulp.
double bound_factor(AccumulationClass accumulation, std::int64_t k);

// Half a unit in the last place of `type` at |v|, with its subnormal floor and its largest
// exponent.
double half_ulp(OutType type, double v);

// Panels are added in any order; they must not overlap.
class Comparison {
 public:
  explicit Comparison(const ComparisonPolicy& policy) : policy_(policy) {}
  // `output` holds the whole product; the panel says which rows are compared.
  void add(const ExactPanel& panel, const OutputView& output);
  Accuracy finish() const;

 private:
  struct Element;  // one output beside its exact value
  struct RowSums;  // of one row, in double, before they are added to the long double sums
  void add_element(const Element& element, RowSums& sums);
  bool add_special(const Element& element);
  void note_wrong(const Element& element, double bound);
  AccumulationClass accumulation(const std::optional<double>& noise) const;
  void explain(Accuracy& accuracy) const;

  ComparisonPolicy policy_;
  std::int64_t k_ = 0;
  double fp32_factor_ = 0, reduced_factor_ = 0, drift_factor_ = 0;  // of this k
  std::int64_t beyond_exact_ = 0, beyond_fp32_ = 0,
               beyond_reduced_ = 0;  // elements outside each class's bound
  std::int64_t compared_ = 0;        // finite on both sides: what the sums below are over
  std::int64_t judged_ = 0;          // all but outside_fp32
  double worst_fraction_ = 0;
  long double noise_sum_ = 0, signed_sum_ = 0, out_v_sum_ = 0, v_v_sum_ = 0, gain_error_sum_ = 0;
  Accuracy counts_;  // checked, wrong, outside_fp32, flushed, ulp_histogram, first_mismatch
};

// The whole product in panels of bounded memory: exact_product and Comparison together. Errors: as
// exact_product, and an output whose sizes are not the product's or whose bytes do not suffice.
Result<Accuracy> compare(const GemmInputs& inputs, const OutputView& output,
                         const ComparisonPolicy& policy, const ExactOptions& options = {});

// Correct where accuracy.why_wrong is empty, else Incorrect without a diagnosis.
Verdict judge(const Accuracy& accuracy);

OutputStats output_stats(const OutputView& output);

}  // namespace nibble
