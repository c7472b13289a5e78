// SPDX-License-Identifier: Apache-2.0
// GitHub Markdown: the table of a report, what is known about each wrong row, and where it ran.
#include <algorithm>

#include "report/summary.h"
#include "report/text.h"
#include "report/write_report.h"

namespace nibble {
namespace {

constexpr std::size_t kLogLines = 3;

// What starts markup, HTML, a mention or a reference.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : sanitize(text)) {
    if (std::string_view("\\`*_[]<>#|~&@").find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

// As code: fenced by one backtick more than any run of them inside.
std::string code_block(const std::vector<std::string>& lines) {
  std::size_t longest = 2, run = 0;
  for (const std::string& line : lines) {
    run = 0;
    for (const char c : line) longest = std::max(longest, run = c == '`' ? run + 1 : 0);
  }
  const std::string fence(longest + 1, '`');
  std::string block = fence + "\n";
  for (const std::string& line : lines) block += line + "\n";
  return block + fence + "\n";
}

void add_table(const SummarySection& section, std::string& text) {
  std::string titles = "|", rule = "|";
  for (const SummaryColumn& column : summary_columns()) {
    titles += std::string(" ") + column.title + " |";
    rule += column.number ? "--:|" : "---|";
  }
  text += titles + "\n" + rule + "\n";
  for (const SummaryRow& row : section.rows) {
    text += "|";
    for (const SummaryColumn& column : summary_columns()) {
      const std::string cell = escaped(column.text(row));
      const bool strong = !row.faults.empty() && column.verdict;
      text += strong ? " **" + cell + "** |" : " " + cell + " |";
    }
    text += "\n";
  }
  text += "\n";
}

void add_row_details(const SummaryRow& row, std::string& text) {
  const std::string title =
      "**" + escaped(implementation_of(row)) + ", " + escaped(row.operands) + "**";
  if (!row.why.empty()) text += title + ": unsupported: " + escaped(row.why) + "\n\n";
  for (const Fault& fault : row.faults) {
    const Outcome& outcome = *fault.first;
    text += title + ": " + escaped(verdict_name(outcome.verdict)) + " in " +
            escaped(case_label(outcome));
    if (fault.cases > 1) text += " and " + std::to_string(fault.cases - 1) + " more";
    text += ": " + escaped(why(outcome.verdict)) + "\n";
    if (const std::string looks = looks_like_text(outcome.verdict); !looks.empty())
      text += "Looks like " + escaped(looks) + ".\n";
    text += "\n";
    if (const auto log = log_lines(outcome.verdict, kLogLines); !log.empty())
      text += code_block(log) + "\n";
    if (!outcome.rerun.empty()) text += code_block({sanitize(outcome.rerun)}) + "\n";
  }
}

std::string environment_lines(const Report& report) {
  const Environment& environment = report.environment;
  std::string text = "CPU: " + escaped(environment.cpu.model) + ", " +
                     std::to_string(environment.cpu.logical_cpus) + " logical CPUs, " +
                     escaped(environment.cpu.dispatch_target) + ".\n";
  for (const GpuInfo& gpu : environment.gpus)
    text += "GPU: " + escaped(gpu.name) + ", compute capability " +
            escaped(gpu.compute_capability) + ".\n";
  if (environment.gpus.empty() && !environment.no_gpu_reason.empty())
    text += "GPU: none, " + escaped(environment.no_gpu_reason) + ".\n";
  text += "Method version " + std::to_string(report.method_version);
  const std::string git = git_text(report.git);
  return text + (git.empty() ? "" : ", git " + escaped(git)) + ".\n";
}

}  // namespace

std::string write_markdown(const Report& report) {
  const Summary summary = summarize(report);
  std::string text;
  for (const SummarySection& section : summary.sections) {
    if (!section.source.empty()) text += "B = " + escaped(section.source) + "\n\n";
    add_table(section, text);
    for (const SummaryRow& row : section.rows) add_row_details(row, text);
  }
  for (const std::string& note : summary.notes) text += escaped(note) + "\n\n";
  if (report.partial) text += "Interrupted: only what was done until then.\n\n";
  return text + escaped(summary.closing) + "\n\n" + environment_lines(report);
}

}  // namespace nibble
