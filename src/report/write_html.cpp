// SPDX-License-Identifier: Apache-2.0
// One HTML page that needs nothing else: no script, no file, no network. Everything that comes from
// a report is escaped.
#include "report/flat_fields.h"
#include "report/summary.h"
#include "report/text.h"
#include "report/write_report.h"

namespace nibble {
namespace {

constexpr std::size_t kLogLines = 20;

constexpr const char* kHead = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>nibble report</title>
<style>
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; }
th, td { padding: .3rem .8rem .3rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid #8884; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
.correct { color: #1a7f37; }
.unsupported { color: #888; }
.incorrect, .failed, .crashed, .timed_out { color: #cf222e; font-weight: 600; }
.detail td { border-bottom: none; padding-left: 1.5rem; }
pre, code { font: 13px/1.4 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; }
pre { margin: .2rem 0; }
summary { cursor: pointer; }
</style>
</head>
<body>
<h1>nibble report</h1>
)";

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : sanitize(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string element(const std::string& tag, const std::string& text) {
  return "<" + tag + ">" + escaped(text) + "</" + tag + ">";
}

void add_detail(const std::string& content, std::string& html) {
  html += "<tr class=\"detail\"><td colspan=\"" + std::to_string(summary_columns().size()) + "\">" +
          content + "</td></tr>\n";
}

void add_fault(const Fault& fault, std::string& html) {
  const Outcome& outcome = *fault.first;
  std::string label = std::string(verdict_name(outcome.verdict)) + " in " + case_label(outcome);
  if (fault.cases > 1) label += " and " + std::to_string(fault.cases - 1) + " more";
  std::string content = escaped(label + ": " + why(outcome.verdict));
  if (const std::string looks = looks_like_text(outcome.verdict); !looks.empty())
    content += "<br>looks like " + escaped(looks);
  std::string log;
  for (const std::string& line : log_lines(outcome.verdict, kLogLines)) log += escaped(line) + "\n";
  if (!log.empty()) content += "<pre>" + log + "</pre>";
  if (!outcome.rerun.empty()) content += "<pre>" + escaped(outcome.rerun) + "</pre>";
  add_detail(content, html);
}

void add_table(const SummarySection& section, std::string& html) {
  if (!section.source.empty()) html += element("h2", "B = " + section.source) + "\n";
  html += "<table>\n<tr>";
  for (const SummaryColumn& column : summary_columns())
    html += std::string(column.number ? "<th class=\"number\">" : "<th>") + column.title + "</th>";
  html += "</tr>\n";
  for (const SummaryRow& row : section.rows) {
    html += "<tr>";
    for (const SummaryColumn& column : summary_columns()) {
      const std::string kind = column.verdict ? std::string(name(row.verdict)) : "number";
      html += column.number || column.verdict ? "<td class=\"" + kind + "\">" : "<td>";
      html += escaped(column.text(row)) + "</td>";
    }
    html += "</tr>\n";
    if (!row.why.empty()) add_detail(escaped(row.why), html);
    for (const Fault& fault : row.faults) add_fault(fault, html);
  }
  html += "</table>\n";
}

void add_line(const std::string& key, const std::string& text, std::string& html) {
  html += "<tr>" + element("th", key) + element("td", text) + "</tr>\n";
}

void add_environment(const Report& report, std::string& html) {
  const Environment& environment = report.environment;
  html += "<h2>Environment</h2>\n<table>\n";
  add_line("CPU", environment.cpu.model, html);
  add_line("logical CPUs", std::to_string(environment.cpu.logical_cpus), html);
  add_line("vector target", environment.cpu.dispatch_target, html);
  for (const GpuInfo& gpu : environment.gpus)
    add_line("GPU", gpu.name + ", compute capability " + gpu.compute_capability, html);
  if (environment.gpus.empty()) add_line("GPU", "none, " + environment.no_gpu_reason, html);
  for (const LibraryInfo& library : environment.libraries)
    add_line(library.name,
             library.path ? library.version.value_or("version unknown") + ", " + *library.path
                          : "absent: " + library.note,
             html);
  std::string command;
  for (const std::string& argument : report.argv)
    command += (command.empty() ? "" : " ") + argument;
  add_line("command", command, html);
  const std::string git = git_text(report.git);
  add_line("git", git.empty() ? "unknown" : git, html);
  add_line("method version", std::to_string(report.method_version), html);
  html += "</table>\n";
}

void add_cases(const Report& report, std::string& html) {
  html += "<h2>Cases</h2>\n";
  for (const Outcome& outcome : report.outcomes) {
    html += "<details><summary><span class=\"" + std::string(verdict_name(outcome.verdict)) +
            "\">" + verdict_name(outcome.verdict) + "</span> " +
            escaped(outcome.backend + " " + case_label(outcome)) + "</summary>\n<table>\n";
    for (const FlatField& field : flat_fields(outcome)) {
      if (!field.text.empty()) add_line(field.key, field.text, html);
    }
    html += "</table></details>\n";
  }
}

}  // namespace

std::string write_html(const Report& report) {
  const Summary summary = summarize(report);
  std::string html = kHead;
  html += element("p", summary.closing) + "\n";
  if (report.partial)
    html += "<p><strong>Interrupted: only what was done until then.</strong></p>\n";
  for (const SummarySection& section : summary.sections) add_table(section, html);
  for (const std::string& note : summary.notes) html += element("p", note) + "\n";
  add_environment(report, html);
  if (!report.outcomes.empty()) add_cases(report, html);
  return html + "</body>\n</html>\n";
}

}  // namespace nibble
