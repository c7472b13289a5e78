// SPDX-License-Identifier: Apache-2.0
// Says how a wrong result is wrong: what would come out under each fault hypothesis, and which of
// them fit.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/gemm_operands.h"
#include "core/verdict.h"
#include "reference/comparison.h"

namespace nibble {

struct HypothesisInfo {
  std::string_view name;    // "swapped_nibbles_b": stable, in JSON and in `nibble list`
  std::string_view advice;  // one sentence: what to look at
};

// Every hypothesis, in the order in which they are reported. docs/verdicts.md has them as a table.
std::span<const HypothesisInfo> hypotheses();

struct DiagnosisRequest {
  GemmInputs inputs;  // tensor scales in the views serve the hypothesis that one was inverted
  OutputView output;
  // What the output buffer held before the launch, one pattern of out_bytes(type) bytes; 0:
  // unknown.
  std::uint32_t poison_bits = 0;
  ComparisonPolicy policy;
};

// nullopt: the output is right, none fits, or the outputs are too few to rule out chance.
// looks_like holds names, some with a detail: "k_tail_dropped (16 elements)". Predictions are
// compared on at most 64 x 64 outputs, the first wrong one among them; what was left unwritten is
// looked for in all. Errors: as compare().
Result<std::optional<Diagnosis>> diagnose(const DiagnosisRequest& request);

}  // namespace nibble
