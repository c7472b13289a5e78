// SPDX-License-Identifier: Apache-2.0
// The mistakes that a kernel can make with its operands, each as the Reading that makes it.
#pragma once

#include <optional>
#include <vector>

#include "reference/hypothesis_sample.h"

namespace nibble {

// A hypothesis of which the prediction is made from the operands alone. nullopt where the operands
// have no such thing.
struct ReadingHypothesis {
  HypothesisInfo info;
  std::function<std::optional<Reading>(const GemmInputs&)> read;
};

const std::vector<ReadingHypothesis>& reading_hypotheses();

// As the definition says.
Reading honest_reading(const GemmInputs& inputs);

}  // namespace nibble
