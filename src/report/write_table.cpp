// SPDX-License-Identifier: Apache-2.0
// The table on a terminal: columns as wide as their content, the least telling ones dropped where
// the terminal is narrow, and under a wrong row what is known about it.
#include <algorithm>
#include <numeric>

#include "report/summary.h"
#include "report/text.h"
#include "report/write_report.h"

namespace nibble {
namespace {

constexpr std::size_t kGap = 2, kIndent = 2, kLabelColumns = 12, kLeastName = 12, kLogLines = 3;

const char* colour_of(VerdictKind verdict) {
  switch (verdict) {
    case VerdictKind::correct:
      return "\x1b[32m";
    case VerdictKind::unsupported:
      return "\x1b[2m";
    default:
      return "\x1b[1;31m";
  }
}

class TableWriter {
 public:
  TableWriter(const Summary& summary, const TableStyle& style)
      : summary_(summary),
        colour_(style.colour),
        width_(static_cast<std::size_t>(std::clamp(style.width, 40, 1000))) {
    lay_out();
  }

  std::string write(bool partial) {
    if (!summary_.sections.empty()) add_header();
    for (const SummarySection& section : summary_.sections) add_section(section);
    if (!text_.empty()) text_ += '\n';
    for (const std::string& note : summary_.notes) add_wrapped("", note, 0);
    if (partial) text_ += paint("\x1b[33m", "interrupted: only what was done until then") + "\n";
    add_wrapped("", summary_.closing, 0);
    return std::move(text_);
  }

 private:
  struct Column {
    const SummaryColumn* source;
    std::size_t width;
  };

  std::string paint(const char* code, const std::string& text) const {
    return colour_ ? code + text + "\x1b[0m" : text;
  }

  void lay_out() {
    for (const SummaryColumn& source : summary_columns()) {
      std::size_t width = columns_of(source.title);
      for (const SummarySection& section : summary_.sections)
        for (const SummaryRow& row : section.rows)
          width = std::max(width, columns_of(source.text(row)));
      columns_.push_back({&source, width});
    }
    const auto keep = [](const Column& column) { return column.source->keep; };
    while (total() > width_) {
      const auto least =
          std::min_element(columns_.begin(), columns_.end(),
                           [&](const Column& a, const Column& b) { return keep(a) < keep(b); });
      if (keep(*least) == kAlwaysKept) break;
      columns_.erase(least);
    }
    if (total() > width_) {
      const std::size_t rest = total() - columns_.front().width;
      columns_.front().width = std::max(kLeastName, width_ - std::min(width_, rest));
    }
  }

  std::size_t total() const {
    return std::accumulate(columns_.begin(), columns_.end(), columns_.size() * kGap - kGap,
                           [](std::size_t sum, const Column& each) { return sum + each.width; });
  }

  static std::string aligned(const Column& column, const std::string& text) {
    const std::string fitted = fit(text, column.width);
    return column.source->number ? pad_left(fitted, column.width) : pad_right(fitted, column.width);
  }

  void end_line() {
    text_.erase(text_.find_last_not_of(' ') + 1);
    text_ += '\n';
  }

  void add_header() {
    std::string line;
    for (const Column& column : columns_)
      line += aligned(column, column.source->title) + std::string(kGap, ' ');
    line.erase(line.find_last_not_of(' ') + 1);
    text_ += paint("\x1b[1m", line) + "\n";
  }

  void add_section(const SummarySection& section) {
    if (!section.source.empty()) {
      text_ += '\n';
      text_ += paint("\x1b[1m", fit("B = " + section.source, width_)) + "\n";
    }
    std::string above;  // the implementation of the line above; it is named once
    for (const SummaryRow& row : section.rows) {
      const std::string implementation = implementation_of(row);
      const bool one_line = add_row(row, implementation == above);
      above = one_line ? implementation : "";
    }
  }

  // True where it is one line.
  bool add_row(const SummaryRow& row, bool same_implementation) {
    const bool unsupported = row.verdict == VerdictKind::unsupported;
    std::size_t used = 0;
    for (const Column& column : columns_) {
      const bool is_verdict = column.source->verdict;
      const bool repeats = same_implementation && &column == &columns_.front();
      const std::string cell = aligned(column, repeats ? "" : column.source->text(row));
      text_ += is_verdict ? paint(colour_of(row.verdict), cell) : cell;
      text_ += std::string(kGap, ' ');
      used += column.width + kGap;
      if (is_verdict && unsupported) break;
    }
    const bool fits = used + columns_of(row.why) <= width_;
    if (unsupported && fits) text_ += row.why;
    end_line();
    if (unsupported && !fits) add_wrapped("", row.why, kIndent);
    for (const Fault& fault : row.faults) add_fault(fault);
    return row.faults.empty() && (!unsupported || fits);
  }

  void add_fault(const Fault& fault) {
    const Outcome& outcome = *fault.first;
    std::string what = case_label(outcome);
    if (fault.cases > 1) what += " and " + std::to_string(fault.cases - 1) + " more";
    add_wrapped(verdict_name(outcome.verdict), what + ": " + sanitize(why(outcome.verdict)),
                kIndent);
    if (const std::string text = looks_like_text(outcome.verdict); !text.empty())
      add_wrapped("looks like", text, kIndent);
    for (const std::string& line : log_lines(outcome.verdict, kLogLines))
      add_labelled("log", fit(line, width_ - kIndent - kLabelColumns), kIndent);
    // One line whatever its length: it is there to be copied.
    if (!outcome.rerun.empty()) add_labelled("rerun", sanitize(outcome.rerun), kIndent);
  }

  void add_labelled(const std::string& label, const std::string& line, std::size_t indent) {
    text_ += std::string(indent, ' ');
    if (indent > 0 && columns_of(line) > 0 && !label.empty())
      text_ += paint("\x1b[2m", pad_right(label, kLabelColumns));
    text_ += line;
    end_line();
  }

  void add_wrapped(const std::string& label, const std::string& line, std::size_t indent) {
    const std::size_t before = indent + (label.empty() ? 0 : kLabelColumns);
    bool first = true;
    for (const std::string& part : wrap(line, width_ - before)) {
      if (first)
        add_labelled(label, part, indent);
      else
        add_labelled("", part, before);
      first = false;
    }
  }

  const Summary& summary_;
  bool colour_;
  std::size_t width_;
  std::vector<Column> columns_;
  std::string text_;
};

}  // namespace

std::string write_table(const Report& report, const TableStyle& style) {
  const Summary summary = summarize(report);
  return TableWriter(summary, style).write(report.partial);
}

}  // namespace nibble
