// SPDX-License-Identifier: Apache-2.0
// CSV by RFC 4180: a header line, one outcome a line, lines end in CR LF.
#include "report/flat_fields.h"
#include "report/write_report.h"

namespace nibble {
namespace {

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + "\"";
}

void add_line(std::string& csv, const std::vector<FlatField>& fields,
              std::string FlatField::*member) {
  const char* separator = "";
  for (const FlatField& field : fields) {
    csv += separator + quoted(field.*member);
    separator = ",";
  }
  csv += "\r\n";
}

}  // namespace

std::string write_csv(const Report& report) {
  std::string csv;
  add_line(csv, flat_fields(Outcome{}), &FlatField::key);
  for (const Outcome& outcome : report.outcomes)
    add_line(csv, flat_fields(outcome), &FlatField::text);
  return csv;
}

}  // namespace nibble
