// SPDX-License-Identifier: Apache-2.0
// What the writers write is what docs/schema/report.schema.json says, and the schema objects to
// what it should.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "report/outcome_record.h"
#include "report/write_report.h"
#include "unit/report/sample_report.h"

namespace nibble {
namespace {

using Json = nlohmann::json;
using Adapter = valijson::adapters::NlohmannJsonAdapter;

Json whole_schema() {
  std::ifstream file(NIBBLE_SOURCE_DIR "/docs/schema/report.schema.json");
  return Json::parse(file);
}

// Of one definition: the same document with another root.
Json schema_of(const std::string& definition) {
  const Json whole = whole_schema();
  Json schema = whole["definitions"][definition];
  schema["definitions"] = whole["definitions"];
  return schema;
}

bool conforms(const Json& document, const Json& schema_document) {
  valijson::Schema schema;
  valijson::SchemaParser().populateSchema(Adapter(schema_document), schema);
  valijson::ValidationResults results;
  const bool valid = valijson::Validator().validate(schema, Adapter(document), &results);
  for (valijson::ValidationResults::Error error; results.popError(error);) {
    std::string path;
    for (const std::string& part : error.context) path += part;
    if (!valid) std::cout << "schema: " << path << " " << error.description << "\n";
  }
  return valid;
}

TEST(Schema, AcceptsAReportWithEveryVerdict) {
  EXPECT_TRUE(conforms(Json::parse(write_json(sample_report())), whole_schema()));
  EXPECT_TRUE(conforms(Json::parse(write_json(Report{})), whole_schema()));
}

TEST(Schema, AcceptsEachLineOfJsonl) {
  std::istringstream lines(write_jsonl(sample_report()));
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_TRUE(conforms(Json::parse(line), schema_of("header")));
  std::size_t outcomes = 0;
  for (; std::getline(lines, line); ++outcomes)
    EXPECT_TRUE(conforms(Json::parse(line), schema_of("outcome"))) << line;
  EXPECT_EQ(outcomes, sample_report().outcomes.size());
}

template <class E>
void expect_names(const Json& names) {
  std::vector<std::string> known;
  for (const auto& entry : EnumNames<E>::table) known.emplace_back(entry.second);
  EXPECT_EQ(names.get<std::vector<std::string>>(), known);
}

TEST(Schema, KnowsEveryNameOfEveryEnumeration) {
  const Json definitions = whole_schema()["definitions"];
  const Json outcome = definitions["outcome"]["properties"];
  const Json problem = definitions["problem"]["properties"];
  expect_names<Experiment>(outcome["experiment"]["enum"]);
  expect_names<VerdictKind>(outcome["verdict"]["enum"]);
  expect_names<Activation>(problem["a"]["enum"]);
  expect_names<Format>(problem["b"]["enum"]);
  expect_names<OutType>(problem["out"]["enum"]);
  expect_names<ScaleOrder>(problem["b_scales"]["enum"]);
  expect_names<AccumulationClass>(definitions["accuracy"]["properties"]["class"]["enum"]);
  Json kinds = outcome["error_kind"]["enum"];
  kinds.erase(kinds.size() - 1);  // null
  expect_names<ErrorKind>(kinds);
}

struct Break {
  const char* what;
  std::function<void(Json&)> apply;
};

TEST(Schema, RefusesABrokenReport) {
  const Break breaks[] = {
      {"no schema", [](Json& r) { r.erase("schema"); }},
      {"another schema", [](Json& r) { r["schema"] = "nibble.report/2"; }},
      {"no outcomes", [](Json& r) { r.erase("outcomes"); }},
      {"an unknown key", [](Json& r) { r["extra"] = 1; }},
      {"an unknown key of an outcome", [](Json& r) { r["outcomes"][0]["extra"] = 1; }},
      {"an unknown verdict", [](Json& r) { r["outcomes"][0]["verdict"] = "fine"; }},
      {"a negative size", [](Json& r) { r["outcomes"][0]["problem"]["m"] = -1; }},
      {"no groups", [](Json& r) { r["outcomes"][0]["problem"]["groups"] = 0; }},
      {"a text as number", [](Json& r) { r["outcomes"][0]["accuracy"]["gain"] = "NaN"; }},
      {"a missing rerun", [](Json& r) { r["outcomes"][0].erase("rerun"); }},
      {"an unknown class", [](Json& r) { r["outcomes"][0]["accuracy"]["class"] = "fp16"; }},
      {"a correct case without accuracy", [](Json& r) { r["outcomes"][0]["accuracy"] = nullptr; }},
      {"a wrong case with a time",
       [](Json& r) { r["outcomes"][2]["timing"] = r["outcomes"][1]["timing"]; }},
      {"an unsupported case with accuracy",
       [](Json& r) { r["outcomes"][4]["accuracy"] = r["outcomes"][0]["accuracy"]; }},
      {"a correct case with an excuse", [](Json& r) { r["outcomes"][0]["why"] = "but"; }},
      {"a failed case without a kind", [](Json& r) { r["outcomes"][5]["error_kind"] = nullptr; }},
      {"a deadline of a correct case", [](Json& r) { r["outcomes"][0]["limit_s"] = 1.0; }},
      {"a missing bin",
       [](Json& r) { r["outcomes"][0]["accuracy"]["ulp_histogram"].erase("more"); }},
      {"a CPU count that is no integer",
       [](Json& r) { r["environment"]["cpu"]["logical_cpus"] = 1.5; }},
  };
  const Json schema = whole_schema();
  for (const Break& each : breaks) {
    Json report = Json::parse(write_json(sample_report()));
    each.apply(report);
    testing::internal::CaptureStdout();  // the validator's words are expected here
    EXPECT_FALSE(conforms(report, schema)) << each.what;
    testing::internal::GetCapturedStdout();
  }
}

}  // namespace
}  // namespace nibble
