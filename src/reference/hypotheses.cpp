// SPDX-License-Identifier: Apache-2.0
#include "reference/hypotheses.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/float_environment.h"
#include "reference/hypothesis_patterns.h"
#include "reference/hypothesis_readings.h"

namespace nibble {
namespace {

void note(Diagnosis& diagnosis, const HypothesisInfo& info, const std::string& detail) {
  if (diagnosis.looks_like.empty()) diagnosis.advice = info.advice;
  diagnosis.looks_like.push_back(std::string(info.name) +
                                 (detail.empty() ? "" : " (" + detail + ")"));
}

// True where a pattern fits that leaves no room for others.
bool try_patterns(std::span<const PatternHypothesis> patterns, const Evidence& evidence,
                  Diagnosis& diagnosis) {
  for (const auto& pattern : patterns) {
    if (pattern.scope == PatternScope::sample && evidence.sample_is_right) continue;
    const auto detail = pattern.find(evidence);
    if (!detail) continue;
    note(diagnosis, pattern.info, *detail);
    if (pattern.scope == PatternScope::settles) return true;
  }
  return false;
}

// Of the readings that fit, those that explain about as much as the best: the bound alone is wide
// where k is large.
void try_readings(const Evidence& evidence, Diagnosis& diagnosis) {
  constexpr double kShareOfBest = 0.75;
  std::vector<std::pair<const HypothesisInfo*, double>> fitting;
  double best = 0;
  for (const auto& hypothesis : reading_hypotheses()) {
    const auto reading = hypothesis.read(evidence.request.inputs);
    if (!reading) continue;
    const auto bits =
        explains(evidence.sample, evidence.expected, *reading, evidence.request.policy.judge_noise);
    if (!bits) continue;
    fitting.emplace_back(&hypothesis.info, *bits);
    best = std::max(best, *bits);
  }
  for (const auto& [info, bits] : fitting) {
    if (bits >= kShareOfBest * best) note(diagnosis, *info, "");
  }
}

Evidence gather(const DiagnosisRequest& request, const Accuracy& accuracy) {
  const auto shape = shape_of(request.inputs);
  const Mismatch first = accuracy.first_mismatch.value_or(Mismatch{});
  Evidence evidence{request, accuracy, honest_reading(request.inputs), {}, {}, false};
  evidence.sample = take_sample(request.output, shape.k, spread(shape.m, first.row),
                                spread(shape.n, first.column), request.output.type);
  evidence.expected =
      predict(evidence.honest, evidence.sample.rows, evidence.sample.columns, shape.k);
  evidence.sample_is_right = fits(evidence.sample, evidence.expected, request.policy.judge_noise);
  return evidence;
}

}  // namespace

std::span<const HypothesisInfo> hypotheses() {
  static const auto all = [] {
    std::vector<HypothesisInfo> infos;
    for (const auto& pattern : pattern_hypotheses()) infos.push_back(pattern.info);
    for (const auto& hypothesis : reading_hypotheses()) infos.push_back(hypothesis.info);
    for (const auto& pattern : precision_hypotheses()) infos.push_back(pattern.info);
    return infos;
  }();
  return all;
}

Result<std::optional<Diagnosis>> diagnose(const DiagnosisRequest& request) {
  const DefaultFloatEnvironment environment;
  const auto accuracy = compare(request.inputs, request.output, request.policy);
  if (!accuracy) return tl::unexpected(accuracy.error());
  if (accuracy->why_wrong.empty() || accuracy->checked == 0) return std::nullopt;
  const Evidence evidence = gather(request, *accuracy);
  Diagnosis diagnosis;
  const bool settled = try_patterns(pattern_hypotheses(), evidence, diagnosis);
  // Where the sample is right as it is, any hypothesis that changes little would fit.
  if (!settled && !evidence.sample_is_right) try_readings(evidence, diagnosis);
  if (diagnosis.looks_like.empty()) try_patterns(precision_hypotheses(), evidence, diagnosis);
  if (diagnosis.looks_like.empty()) return std::nullopt;
  return diagnosis;
}

}  // namespace nibble
