// SPDX-License-Identifier: Apache-2.0
#include "report/write_report.h"

namespace nibble {
namespace {

struct Extension {
  std::string_view text;
  ReportFormat format;
};

constexpr Extension kExtensions[] = {{".json", ReportFormat::json},
                                     {".jsonl", ReportFormat::jsonl},
                                     {".csv", ReportFormat::csv},
                                     {".md", ReportFormat::md},
                                     {".html", ReportFormat::html}};

}  // namespace

Result<ReportFormat> format_of_path(std::string_view path) {
  std::string known;
  for (const Extension& extension : kExtensions) {
    if (path.size() > extension.text.size() && path.ends_with(extension.text))
      return extension.format;
    known += (known.empty() ? "" : ", ") + std::string(extension.text);
  }
  return fail(ErrorKind::invalid_argument,
              "'" + std::string(path) + "' must end in one of " + known);
}

std::string write(const Report& report, ReportFormat format, const TableStyle& style) {
  switch (format) {
    case ReportFormat::table:
      return write_table(report, style);
    case ReportFormat::json:
      return write_json(report);
    case ReportFormat::jsonl:
      return write_jsonl(report);
    case ReportFormat::csv:
      return write_csv(report);
    case ReportFormat::md:
      return write_markdown(report);
    case ReportFormat::html:
      return write_html(report);
  }
  check_failed(__FILE__, __LINE__, "format", "a report format outside its enumeration");
}

}  // namespace nibble
