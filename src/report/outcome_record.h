// SPDX-License-Identifier: Apache-2.0
// An Outcome with its verdict laid flat, as every file format holds it: one key a fact, null where
// the verdict has none.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/report.h"

namespace nibble {

// In the order of the alternatives of Verdict.
enum class VerdictKind : std::uint8_t {
  correct,
  incorrect,
  unsupported,
  failed,
  crashed,
  timed_out
};

template <>
struct EnumNames<VerdictKind> {
  static constexpr std::array table{
      std::pair{VerdictKind::correct, std::string_view(kVerdictNames[0])},
      std::pair{VerdictKind::incorrect, std::string_view(kVerdictNames[1])},
      std::pair{VerdictKind::unsupported, std::string_view(kVerdictNames[2])},
      std::pair{VerdictKind::failed, std::string_view(kVerdictNames[3])},
      std::pair{VerdictKind::crashed, std::string_view(kVerdictNames[4])},
      std::pair{VerdictKind::timed_out, std::string_view(kVerdictNames[5])}};
};

constexpr VerdictKind verdict_kind(const Verdict& verdict) {
  return static_cast<VerdictKind>(verdict.index());
}

struct OutcomeRecord {
  std::string backend, version, kernel;
  Experiment experiment = Experiment::random;
  GemmProblem problem;
  std::uint64_t seed = 0;
  VerdictKind verdict = VerdictKind::unsupported;
  std::string why;
  std::optional<Accuracy> accuracy;     // correct, incorrect
  std::vector<std::string> looks_like;  // incorrect, where a hypothesis fits
  std::string advice;
  std::optional<OutputStats> stats;
  std::optional<Timing> timing;          // correct
  std::monostate roofline;               // null: known only where a case was timed
  std::optional<ErrorKind> error_kind;   // failed
  std::optional<int> signal, exit_code;  // crashed: one of them
  std::optional<double> limit_s;         // timed_out
  std::string log_tail;                  // crashed, timed_out
  std::string note, rerun;
  double elapsed_s = 0;
};

OutcomeRecord to_record(const Outcome& outcome);

// Errors (corrupt) name the key: one that the verdict needs and is null, or one that the verdict
// cannot have (a timing of a wrong result).
Result<Outcome> from_record(OutcomeRecord record);

}  // namespace nibble
