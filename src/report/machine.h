// SPDX-License-Identifier: Apache-2.0
// What `nibble doctor` and `nibble list` print, as plain data and as text or JSON. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/report.h"
#include "report/write_report.h"

namespace nibble {

struct BackendInfo {
  std::string name, summary;
  std::optional<std::string> version;  // absent: not usable here
  std::string why;                     // where it is not: what is missing, and how to get it
  std::vector<Activation> activations;
  std::vector<Format> formats;
  std::vector<OutType> outs;
  std::string note;
};

struct Machine {
  std::string nibble_version;
  GitState git;
  Environment environment;
  std::vector<BackendInfo> backends;
};

std::string write_machine(const Machine& machine, const TableStyle& style);
std::string write_machine_json(const Machine& machine);  // schema "nibble.doctor/1"

struct ListEntry {
  std::string name, summary;
};
struct ListSection {
  std::string title;  // "backends"
  std::vector<ListEntry> entries;
};

std::string write_list(const std::vector<ListSection>& sections, const TableStyle& style);
std::string write_list_json(const std::vector<ListSection>& sections);  // schema "nibble.list/1"

}  // namespace nibble
