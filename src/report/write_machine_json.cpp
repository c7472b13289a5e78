// SPDX-License-Identifier: Apache-2.0
#include "report/json_fields.h"
#include "report/machine.h"

namespace nibble {
namespace {

Json json_of_backend(const BackendInfo& backend) {
  return {{"name", backend.name},
          {"summary", backend.summary},
          {"version", json_of(backend.version)},
          {"why", backend.why},
          {"activations", json_of(backend.activations)},
          {"formats", json_of(backend.formats)},
          {"outs", json_of(backend.outs)},
          {"note", backend.note}};
}

}  // namespace

std::string write_machine_json(const Machine& machine) {
  Json json = {{"schema", "nibble.doctor/1"}, {"version", machine.nibble_version}};
  json["git"] = json_of(machine.git);
  json["environment"] = json_of(machine.environment);
  Json& backends = json["backends"] = Json::array();
  for (const BackendInfo& backend : machine.backends) backends.push_back(json_of_backend(backend));
  return dump(json, 2) + "\n";
}

std::string write_list_json(const std::vector<ListSection>& sections) {
  Json json = {{"schema", "nibble.list/1"}};
  for (const ListSection& section : sections) {
    Json& entries = json[section.title] = Json::array();
    for (const ListEntry& entry : section.entries)
      entries.push_back({{"name", entry.name}, {"summary", entry.summary}});
  }
  return dump(json, 2) + "\n";
}

}  // namespace nibble
