// SPDX-License-Identifier: Apache-2.0
// What people read of a report: one row an implementation and kind of operands. Terminal, Markdown
// and HTML show these rows through one list of columns.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/report.h"
#include "report/outcome_record.h"

namespace nibble {

// The first case of a row that has this fault, and how many have it. Points into the report.
struct Fault {
  const Outcome* first = nullptr;
  std::int64_t cases = 0;
};

struct SummaryRow {
  std::string backend;
  std::string version;   // the first that a case knows: a child that crashed has none
  std::string operands;  // "nvfp4 x nvfp4"
  VerdictKind verdict = VerdictKind::unsupported;  // the worst of its cases
  std::optional<AccumulationClass> accumulation;   // the worst
  std::optional<double> worst_fraction_of_bound;
  std::optional<double> gain;  // the one farthest from 1
  std::optional<double> noise;
  std::int64_t judged = 0, cases = 0;  // judged: correct or incorrect
  std::string why;                     // where every case is unsupported
  std::vector<Fault> faults;           // worst first, one a kind of verdict
};

struct SummarySection {
  std::string source;  // as in GemmProblem: empty for generated operands
  std::vector<SummaryRow> rows;
};

struct Summary {
  std::vector<SummarySection> sections;
  std::vector<std::string> notes;  // "BACKEND: NOTE", each once
  std::string closing;  // "4 implementations: 3 correct, 1 incorrect; 161 cases in 12.3 s"
};

// All text in it is sanitized. The report must outlive it.
Summary summarize(const Report& report);

std::string implementation_of(const SummaryRow& row);  // "openblas 0.3.21"

inline constexpr int kAlwaysKept = 9;

struct SummaryColumn {
  const char* title;
  bool number;  // aligned to the right
  int keep;     // a narrow terminal drops the lowest first, and none that is kAlwaysKept
  std::string (*text)(const SummaryRow& row);
  bool verdict = false;  // the one that is coloured
};

std::span<const SummaryColumn> summary_columns();

// "random 128x256x256 -> bf16": what tells a case from its neighbours in a row.
std::string case_label(const Outcome& outcome);

// "swapped_nibbles_b, halved: ADVICE", "none of the known faults"; empty where the verdict is not
// incorrect.
std::string looks_like_text(const Verdict& verdict);

// The last lines that say something, sanitized, at most `lines`.
std::vector<std::string> log_lines(const Verdict& verdict, std::size_t lines);

// "0123456789ab, with local changes"; empty where unknown.
std::string git_text(const GitState& git);

}  // namespace nibble
