// SPDX-License-Identifier: Apache-2.0
// The faults that show in the output: what was never written, what lies in another place, how much
// was left out.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reference/hypothesis_sample.h"

namespace nibble {

// What the patterns are looked for in.
struct Evidence {
  const DiagnosisRequest& request;
  const Accuracy& accuracy;
  Reading honest;
  Sample sample;
  std::vector<Predicted> expected;  // of the sample, honest
  bool sample_is_right = false;  // what is wrong lies outside it, or is no matter of single outputs
};

enum class PatternScope : std::uint8_t {
  settles,  // looks at every output; where it fits, no other is tried
  whole,    // looks at every output
  sample,   // explains the sample; not tried where that is right as it is
};

// A hypothesis of its own kind; find() gives the detail to show beside the name ("" for none), or
// nullopt.
struct PatternHypothesis {
  HypothesisInfo info;
  std::optional<std::string> (*find)(const Evidence&);
  PatternScope scope = PatternScope::sample;
};

std::span<const PatternHypothesis> pattern_hypotheses();

// What is said of a result that is merely imprecise, where no other hypothesis fits.
std::span<const PatternHypothesis> precision_hypotheses();

}  // namespace nibble
