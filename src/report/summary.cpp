// SPDX-License-Identifier: Apache-2.0
#include "report/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "report/text.h"

namespace nibble {
namespace {

// A wrong answer that looks like an answer is the worst; then what took the process with it.
int severity(VerdictKind verdict) {
  switch (verdict) {
    case VerdictKind::unsupported:
      return 0;
    case VerdictKind::correct:
      return 1;
    case VerdictKind::failed:
      return 2;
    case VerdictKind::timed_out:
      return 3;
    case VerdictKind::crashed:
      return 4;
    case VerdictKind::incorrect:
      return 5;
  }
  return 5;
}

bool worse(VerdictKind a, VerdictKind b) { return severity(a) > severity(b); }

const Accuracy* accuracy_of(const Verdict& verdict) {
  if (const auto* correct = std::get_if<Correct>(&verdict)) return &correct->accuracy;
  if (const auto* incorrect = std::get_if<Incorrect>(&verdict)) return &incorrect->accuracy;
  return nullptr;
}

// NaN counts as infinite: it is never the better of two.
void keep_larger(std::optional<double>& kept, const std::optional<double>& next) {
  if (!next) return;
  const double value = std::isnan(*next) ? std::numeric_limits<double>::infinity() : *next;
  if (!kept || value > *kept) kept = value;
}

void add_accuracy(const Accuracy& accuracy, SummaryRow& row) {
  ++row.judged;
  if (!row.accumulation || accuracy.accumulation > *row.accumulation)
    row.accumulation = accuracy.accumulation;
  keep_larger(row.worst_fraction_of_bound, accuracy.worst_fraction_of_bound);
  keep_larger(row.noise, accuracy.noise);
  if (accuracy.gain && (!row.gain || std::abs(*accuracy.gain - 1) > std::abs(*row.gain - 1)))
    row.gain = accuracy.gain;
}

void add_fault(const Outcome& outcome, SummaryRow& row) {
  const auto same = [&](const Fault& fault) {
    return fault.first->verdict.index() == outcome.verdict.index();
  };
  const auto found = std::find_if(row.faults.begin(), row.faults.end(), same);
  if (found != row.faults.end())
    ++found->cases;
  else
    row.faults.push_back({&outcome, 1});
}

void add_outcome(const Outcome& outcome, SummaryRow& row) {
  const VerdictKind verdict = verdict_kind(outcome.verdict);
  if (row.cases == 0 || worse(verdict, row.verdict)) row.verdict = verdict;
  ++row.cases;
  if (row.version.empty()) row.version = sanitize(outcome.version);
  if (const Accuracy* accuracy = accuracy_of(outcome.verdict)) add_accuracy(*accuracy, row);
  if (is_fault(outcome.verdict)) add_fault(outcome, row);
  if (row.why.empty() && verdict == VerdictKind::unsupported)
    row.why = sanitize(why(outcome.verdict));
}

std::string operands_of(const GemmProblem& problem) {
  return fmt::format("{} x {}", name(problem.a), name(problem.b));
}

template <class T, class Same, class Make>
T& find_or_add(std::vector<T>& list, Same same, Make make) {
  const auto found = std::find_if(list.begin(), list.end(), same);
  return found != list.end() ? *found : list.emplace_back(make());
}

SummaryRow& row_of(Summary& summary, const Outcome& outcome) {
  const std::string source = sanitize(outcome.problem.source);
  SummarySection& section = find_or_add(
      summary.sections, [&](const SummarySection& each) { return each.source == source; },
      [&] {
        return SummarySection{source, {}};
      });
  const std::string backend = sanitize(outcome.backend);
  const std::string operands = operands_of(outcome.problem);
  return find_or_add(
      section.rows,
      [&](const SummaryRow& row) { return row.backend == backend && row.operands == operands; },
      [&] {
        SummaryRow row;
        row.backend = backend;
        row.operands = operands;
        return row;
      });
}

// An absent library is one row, not one a kind of operands.
void merge_unsupported(SummarySection& section) {
  std::vector<SummaryRow> merged;
  std::vector<int> kinds;
  for (SummaryRow& row : section.rows) {
    const bool same = !merged.empty() && row.verdict == VerdictKind::unsupported &&
                      merged.back().verdict == VerdictKind::unsupported &&
                      merged.back().backend == row.backend && merged.back().why == row.why;
    if (!same) {
      merged.push_back(std::move(row));
      kinds.push_back(1);
      continue;
    }
    merged.back().cases += row.cases;
    merged.back().operands = fmt::format("{} kinds", ++kinds.back());
  }
  section.rows = std::move(merged);
}

std::string closing_line(const Report& report) {
  if (report.outcomes.empty()) return "no case was run";
  std::vector<std::pair<std::string, VerdictKind>> implementations;
  double elapsed_s = 0;
  for (const Outcome& outcome : report.outcomes) {
    elapsed_s += outcome.elapsed_s;
    const VerdictKind verdict = verdict_kind(outcome.verdict);
    auto& entry = find_or_add(
        implementations, [&](const auto& each) { return each.first == outcome.backend; },
        [&] { return std::pair(outcome.backend, verdict); });
    if (worse(verdict, entry.second)) entry.second = verdict;
  }
  std::string line = fmt::format("{} implementation{}:", implementations.size(),
                                 implementations.size() == 1 ? "" : "s");
  const char* separator = " ";
  for (const auto& [kind, text] : EnumNames<VerdictKind>::table) {
    const auto count =
        std::count_if(implementations.begin(), implementations.end(),
                      [kind = kind](const auto& each) { return each.second == kind; });
    if (count == 0) continue;
    line += fmt::format("{}{} {}", separator, count, text);
    separator = ", ";
  }
  return line + fmt::format("; {} case{} in {:.1f} s", report.outcomes.size(),
                            report.outcomes.size() == 1 ? "" : "s", elapsed_s);
}

std::string fraction_text(const std::optional<double>& value) {
  if (!value) return "-";
  if (*value == 0) return "0";
  return *value < 10 ? fmt::format("{:.3f}", *value) : fmt::format("{:.3g}", *value);
}

std::string gain_text(const SummaryRow& row) {
  if (!row.gain) return "-";
  return std::abs(*row.gain) < 1000 ? fmt::format("{:.5f}", *row.gain)
                                    : fmt::format("{:.3g}", *row.gain);
}

std::string noise_text(const SummaryRow& row) {
  if (!row.noise) return "-";
  return *row.noise < 100 ? fmt::format("{:.2f}", *row.noise) : fmt::format("{:.3g}", *row.noise);
}

std::string cases_text(const SummaryRow& row) {
  return row.judged == row.cases ? fmt::format("{}", row.cases)
                                 : fmt::format("{}/{}", row.judged, row.cases);
}

constexpr SummaryColumn kColumns[] = {
    {"implementation", false, kAlwaysKept, implementation_of},
    {"operands", false, kAlwaysKept, [](const SummaryRow& row) { return row.operands; }},
    {"verdict", false, kAlwaysKept,
     [](const SummaryRow& row) { return std::string(name(row.verdict)); }, true},
    {"class", false, 4,
     [](const SummaryRow& row) {
       return row.accumulation ? std::string(name(*row.accumulation)) : std::string("-");
     }},
    {"of bound", true, 3,
     [](const SummaryRow& row) { return fraction_text(row.worst_fraction_of_bound); }},
    {"gain", true, 2, gain_text},
    {"noise", true, 0, noise_text},
    {"cases", true, 1, cases_text},
};

}  // namespace

std::string implementation_of(const SummaryRow& row) {
  return row.version.empty() ? row.backend : row.backend + " " + row.version;
}

std::span<const SummaryColumn> summary_columns() { return kColumns; }

Summary summarize(const Report& report) {
  Summary summary;
  for (const Outcome& outcome : report.outcomes) {
    add_outcome(outcome, row_of(summary, outcome));
    if (outcome.note.empty()) continue;
    const std::string note = sanitize(outcome.backend) + ": " + sanitize(outcome.note);
    if (std::find(summary.notes.begin(), summary.notes.end(), note) == summary.notes.end())
      summary.notes.push_back(note);
  }
  for (SummarySection& section : summary.sections) {
    for (SummaryRow& row : section.rows) {
      if (row.verdict != VerdictKind::unsupported) row.why.clear();
      std::stable_sort(row.faults.begin(), row.faults.end(), [](const Fault& a, const Fault& b) {
        return worse(verdict_kind(a.first->verdict), verdict_kind(b.first->verdict));
      });
    }
    merge_unsupported(section);
  }
  summary.closing = closing_line(report);
  return summary;
}

std::string case_label(const Outcome& outcome) {
  const GemmShape& shape = outcome.problem.shape;
  return fmt::format("{} {}x{}x{} -> {}", name(outcome.experiment), shape.m, shape.n, shape.k,
                     name(outcome.problem.out));
}

std::string looks_like_text(const Verdict& verdict) {
  const auto* incorrect = std::get_if<Incorrect>(&verdict);
  if (incorrect == nullptr) return "";
  if (!incorrect->diagnosis || incorrect->diagnosis->looks_like.empty())
    return "none of the known faults";
  std::string text;
  for (const std::string& each : incorrect->diagnosis->looks_like)
    text += (text.empty() ? "" : ", ") + sanitize(each);
  const std::string& advice = incorrect->diagnosis->advice;
  return advice.empty() ? text : text + ": " + sanitize(advice);
}

std::vector<std::string> log_lines(const Verdict& verdict, std::size_t lines) {
  std::string_view log;
  if (const auto* crashed = std::get_if<Crashed>(&verdict)) log = crashed->log_tail;
  if (const auto* timed_out = std::get_if<TimedOut>(&verdict)) log = timed_out->log_tail;
  std::vector<std::string> kept;
  while (!log.empty() && kept.size() < lines) {
    const std::size_t begin = log.rfind('\n') + 1;  // npos + 1 is 0
    std::string line = sanitize(log.substr(begin));
    line.erase(line.find_last_not_of(' ') + 1);
    if (!line.empty()) kept.insert(kept.begin(), line);
    log = log.substr(0, begin == 0 ? 0 : begin - 1);
  }
  return kept;
}

std::string git_text(const GitState& git) {
  if (git.sha.empty() || git.sha == "unknown") return "";
  return sanitize(git.sha.substr(0, 12)) + (git.dirty ? ", with local changes" : "");
}

}  // namespace nibble
