// SPDX-License-Identifier: Apache-2.0
#include "report/outcome_record.h"

#include <utility>

namespace nibble {
namespace {

void lay_flat(const Correct& correct, OutcomeRecord& record) {
  record.accuracy = correct.accuracy;
  record.timing = correct.timing;
}

void lay_flat(const Incorrect& incorrect, OutcomeRecord& record) {
  record.accuracy = incorrect.accuracy;
  if (!incorrect.diagnosis) return;
  record.looks_like = incorrect.diagnosis->looks_like;
  record.advice = incorrect.diagnosis->advice;
}

void lay_flat(const Unsupported&, OutcomeRecord&) {}

void lay_flat(const Failed& failed, OutcomeRecord& record) {
  record.error_kind = failed.error.kind;
}

void lay_flat(const Crashed& crashed, OutcomeRecord& record) {
  record.signal = crashed.signal;
  record.exit_code = crashed.exit_code;
  record.log_tail = crashed.log_tail;
}

void lay_flat(const TimedOut& timed_out, OutcomeRecord& record) {
  record.limit_s = timed_out.limit_s;
  record.log_tail = timed_out.log_tail;
}

// The first key that is filled though `verdict` has no place for it; nullptr where there is none.
const char* misplaced_key(const OutcomeRecord& record) {
  const VerdictKind verdict = record.verdict;
  const bool judged = verdict == VerdictKind::correct || verdict == VerdictKind::incorrect;
  const bool ended = verdict == VerdictKind::crashed || verdict == VerdictKind::timed_out;
  if (!judged && record.accuracy) return "accuracy";
  if (verdict != VerdictKind::incorrect && !record.looks_like.empty()) return "looks_like";
  if (verdict != VerdictKind::incorrect && !record.advice.empty()) return "advice";
  if (verdict != VerdictKind::correct && record.timing) return "timing";
  if (verdict == VerdictKind::correct && !record.why.empty()) return "why";
  if (verdict != VerdictKind::failed && record.error_kind) return "error_kind";
  if (verdict != VerdictKind::crashed && record.signal) return "signal";
  if (verdict != VerdictKind::crashed && record.exit_code) return "exit_code";
  if (verdict != VerdictKind::timed_out && record.limit_s) return "limit_s";
  if (!ended && !record.log_tail.empty()) return "log_tail";
  return nullptr;
}

const char* missing_key(const OutcomeRecord& record) {
  switch (record.verdict) {
    case VerdictKind::correct:
    case VerdictKind::incorrect:
      return record.accuracy ? nullptr : "accuracy";
    case VerdictKind::failed:
      return record.error_kind ? nullptr : "error_kind";
    case VerdictKind::timed_out:
      return record.limit_s ? nullptr : "limit_s";
    case VerdictKind::unsupported:
    case VerdictKind::crashed:
      break;
  }
  return nullptr;
}

Verdict verdict_of(OutcomeRecord& record) {
  switch (record.verdict) {
    case VerdictKind::correct:
      return Correct{std::move(*record.accuracy), std::move(record.timing)};
    case VerdictKind::incorrect: {
      Incorrect incorrect{std::move(*record.accuracy), std::move(record.why), std::nullopt};
      if (!record.looks_like.empty() || !record.advice.empty())
        incorrect.diagnosis = Diagnosis{std::move(record.looks_like), std::move(record.advice)};
      return incorrect;
    }
    case VerdictKind::unsupported:
      return Unsupported{std::move(record.why)};
    case VerdictKind::failed:
      return Failed{{*record.error_kind, std::move(record.why)}};
    case VerdictKind::crashed:
      return Crashed{record.signal, record.exit_code, std::move(record.why),
                     std::move(record.log_tail)};
    case VerdictKind::timed_out:
      return TimedOut{*record.limit_s, std::move(record.why), std::move(record.log_tail)};
  }
  check_failed(__FILE__, __LINE__, "record.verdict", "a verdict outside its enumeration");
}

}  // namespace

OutcomeRecord to_record(const Outcome& outcome) {
  OutcomeRecord record;
  record.backend = outcome.backend;
  record.version = outcome.version;
  record.kernel = outcome.kernel;
  record.experiment = outcome.experiment;
  record.problem = outcome.problem;
  record.seed = outcome.seed;
  record.verdict = verdict_kind(outcome.verdict);
  record.why = why(outcome.verdict);
  std::visit([&record](const auto& verdict) { lay_flat(verdict, record); }, outcome.verdict);
  record.stats = outcome.stats;
  record.note = outcome.note;
  record.rerun = outcome.rerun;
  record.elapsed_s = outcome.elapsed_s;
  return record;
}

Result<Outcome> from_record(OutcomeRecord record) {
  const std::string verdict(name(record.verdict));
  if (const char* key = missing_key(record))
    return fail(ErrorKind::corrupt, "outcome: key '" + std::string(key) +
                                        "' is missing; verdict '" + verdict + "' needs it");
  if (const char* key = misplaced_key(record))
    return fail(ErrorKind::corrupt,
                "outcome: key '" + std::string(key) + "' cannot go with verdict '" + verdict + "'");
  Outcome outcome;
  outcome.verdict = verdict_of(record);
  outcome.backend = std::move(record.backend);
  outcome.version = std::move(record.version);
  outcome.kernel = std::move(record.kernel);
  outcome.experiment = record.experiment;
  outcome.problem = std::move(record.problem);
  outcome.seed = record.seed;
  outcome.stats = record.stats;
  outcome.note = std::move(record.note);
  outcome.rerun = std::move(record.rerun);
  outcome.elapsed_s = record.elapsed_s;
  return outcome;
}

}  // namespace nibble
