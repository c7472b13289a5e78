// SPDX-License-Identifier: Apache-2.0
#include "report/json_fields.h"
#include "report/write_report.h"

namespace nibble {
namespace {

Json header_of(const Report& report) {
  Json header = {{"schema", kReportSchema}};
  header.update(json_of(report));
  return header;
}

}  // namespace

std::string write_json(const Report& report) {
  Json json = header_of(report);
  Json& outcomes = json["outcomes"] = Json::array();
  for (const Outcome& outcome : report.outcomes) outcomes.push_back(json_of(to_record(outcome)));
  return dump(json, 2) + "\n";
}

std::string write_jsonl(const Report& report) {
  std::string lines = dump(header_of(report)) + "\n";
  for (const Outcome& outcome : report.outcomes) lines += dump(json_of(to_record(outcome))) + "\n";
  return lines;
}

}  // namespace nibble
