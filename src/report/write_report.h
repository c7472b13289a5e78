// SPDX-License-Identifier: Apache-2.0
// One Report, several sinks: terminal table, JSON, JSONL, CSV, Markdown, HTML. Pure: Report in,
// text out.
#pragma once

#include <string>
#include <string_view>

#include "core/enum_names.h"
#include "core/error.h"
#include "core/report.h"

namespace nibble {

enum class ReportFormat : std::uint8_t { table, json, jsonl, csv, md, html };

struct TableStyle {
  int width = 100;  // columns of the terminal
  bool colour = false;
};

// The table has one row an implementation and kind of operands: the worst verdict of its cases, and
// under a wrong one what it looks like and the command that reruns it.
std::string write_table(const Report& report, const TableStyle& style);
std::string write_json(const Report& report);
std::string write_jsonl(
    const Report& report);  // first line the report without outcomes, then one outcome a line
std::string write_csv(const Report& report);
std::string write_markdown(const Report& report);
std::string write_html(const Report& report);

// By the extension of `path`; an unknown one is an error that lists the known.
Result<ReportFormat> format_of_path(std::string_view path);
std::string write(const Report& report, ReportFormat format, const TableStyle& style = {});

}  // namespace nibble
