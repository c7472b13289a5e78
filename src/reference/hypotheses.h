// SPDX-License-Identifier: Apache-2.0
// Says how a wrong result is wrong: what would come out under each fault hypothesis, and which of
// them fit.
#pragma once

#include <span>
#include <string_view>

#include "core/gemm_operands.h"
#include "core/verdict.h"
#include "reference/comparison.h"

namespace nibble {

struct HypothesisInfo {
  std::string_view name;    // "swapped_nibbles_b": stable, in JSON and in --list
  std::string_view advice;  // one sentence: what to look at
};

// Every hypothesis, in the order in which they are reported.
std::span<const HypothesisInfo> hypotheses();

struct DiagnosisRequest {
  GemmInputs inputs;
  OutputView output;
  // What the output buffer held before the launch, one pattern of out_bytes(type) bytes; for
  // unwritten elements.
  std::uint32_t poison_bits = 0;
  ComparisonPolicy policy;
};

// nullopt: none fits. Cost: at most a few tens of times one comparison; large problems are first
// screened on a sample of rows and columns.
Result<std::optional<Diagnosis>> diagnose(const DiagnosisRequest& request);

}  // namespace nibble
