// SPDX-License-Identifier: Apache-2.0
// What nibble says of one case. Only a correct result can carry a time.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/enum_names.h"
#include "core/error.h"

namespace nibble {

// The first that fits: see docs/verdicts.md. `none`: no honest accumulation gives this result.
enum class AccumulationClass : std::uint8_t { exact, fp32, reduced, none };

template <>
struct EnumNames<AccumulationClass> {
  static constexpr std::array table{
      std::pair{AccumulationClass::exact, std::string_view("exact")},
      std::pair{AccumulationClass::fp32, std::string_view("fp32")},
      std::pair{AccumulationClass::reduced, std::string_view("reduced")},
      std::pair{AccumulationClass::none, std::string_view("none")}};
};

struct Mismatch {
  std::int64_t row = 0, column = 0;
  double value = 0, expected = 0;
  double bound = 0;  // the largest |value - expected| that the accepted class allows
};

// |out - rounded v| in units in the last place: 0, 1, 2, 3..4, 5..8, 9..16, 17..64, 65..1024, more,
// not a number.
inline constexpr int kUlpBins = 10;
inline constexpr std::array<const char*, kUlpBins> kUlpBinNames{
    "0", "1", "2", "3-4", "5-8", "9-16", "17-64", "65-1024", "more", "nan"};

struct Accuracy {
  AccumulationClass accumulation = AccumulationClass::none;
  std::optional<double>
      worst_fraction_of_bound;  // of the fp32 bound; absent where nothing could be compared
  std::optional<double> noise;  // only where the operands are random with both signs
  std::optional<double> noise_limit;
  std::optional<double> gain;  // absent where sum v^2 is zero or not finite
  std::optional<double> gain_tolerance;
  std::optional<double> signed_error;
  std::int64_t checked = 0;
  std::int64_t wrong = 0;         // elements outside the accepted class's bound
  std::int64_t outside_fp32 = 0;  // no fp32 answer: checked for NaN only
  std::int64_t flushed = 0;       // subnormal outputs that came back as zero
  std::array<std::int64_t, kUlpBins> ulp_histogram{};
  std::optional<Mismatch> first_mismatch;
  std::string why_wrong;  // empty when right; else which judgement failed, in one sentence
};

struct OutputStats {
  bool all_zeros = false;
  double abs_max = 0, abs_mean = 0;  // over the finite elements
  std::int64_t nan = 0;
};

// The fault hypotheses that reproduce a wrong result within the bound, most specific first.
struct Diagnosis {
  std::vector<std::string> looks_like;
  std::string advice;  // of the first
};

struct Timing {
  double median_us = 0, q1_us = 0, q3_us = 0;
  int samples = 0;
  std::string stopped_by;
};

struct Correct {
  Accuracy accuracy;
  std::optional<Timing> timing;
};
struct Incorrect {
  Accuracy accuracy;
  std::string why;  // one sentence; names the first mismatch
  std::optional<Diagnosis> diagnosis;
};
struct Unsupported {
  std::string why;
};
struct Failed {
  Error error;
};
struct Crashed {
  std::optional<int> signal;     // the signal that ended the child
  std::optional<int> exit_code;  // else its exit code: it left without an answer
  std::string why;
  std::string log_tail;  // the end of its stdout and stderr
};
struct TimedOut {
  double limit_s = 0;
  std::string why;
  std::string log_tail;
};

using Verdict = std::variant<Correct, Incorrect, Unsupported, Failed, Crashed, TimedOut>;

inline constexpr std::array<const char*, 6> kVerdictNames{"correct", "incorrect", "unsupported",
                                                          "failed",  "crashed",   "timed_out"};
inline const char* verdict_name(const Verdict& verdict) { return kVerdictNames[verdict.index()]; }

// True for what makes the exit code 1.
inline bool is_fault(const Verdict& verdict) {
  return !std::holds_alternative<Correct>(verdict) && !std::holds_alternative<Unsupported>(verdict);
}

// One line that says why; empty for Correct.
std::string why(const Verdict& verdict);

}  // namespace nibble
