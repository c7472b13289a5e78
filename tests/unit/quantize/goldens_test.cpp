// SPDX-License-Identifier: Apache-2.0
// Every rule on hard tensors against other implementations: tests/interop/make_quantizer_goldens.py
// (Python fractions, numpy, and the producers' own libraries).
#include <gtest/gtest.h>

#include <bit>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "unit/quantize/quantize_support.h"

namespace nibble::test {
namespace {

struct Golden {
  std::string name;
  Source source;
  QuantizeOptions options;
  std::vector<std::pair<std::string, Expected>> results;
};

std::vector<std::uint8_t> from_hex(const std::string& text) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<std::uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

std::optional<float> float_at(const nlohmann::json& object, const char* key) {
  if (!object.contains(key)) return std::nullopt;
  return std::bit_cast<float>(object[key].get<std::uint32_t>());
}

Golden golden_from(const nlohmann::json& entry) {
  Golden golden{.name = entry["name"],
                .source = {.rows = entry["rows"], .columns = entry["columns"]}};
  const std::vector<std::uint8_t> bytes = from_hex(entry["x"]);
  for (std::size_t i = 0; i + 3 < bytes.size(); i += 4) {
    const std::uint32_t bits = static_cast<std::uint32_t>(bytes[i]) << 24 |
                               static_cast<std::uint32_t>(bytes[i + 1]) << 16 |
                               static_cast<std::uint32_t>(bytes[i + 2]) << 8 | bytes[i + 3];
    golden.source.x.push_back(std::bit_cast<float>(bits));
  }
  golden.options.source_is_bf16 = entry["source_is_bf16"];
  golden.options.tensor_amax = float_at(entry, "tensor_amax");
  if (const auto multiplier = float_at(entry, "multiplier"))
    golden.options.tensor_scale = TensorScale{*multiplier, 1.0f / *multiplier};
  for (const auto& [rule, result] : entry["results"].items()) {
    golden.results.push_back({rule,
                              {.codes = from_hex(result["codes"]),
                               .scales = from_hex(result["scales"]),
                               .multiplier = float_at(result, "multiplier"),
                               .divisor = float_at(result, "divisor"),
                               .lost = result["lost"].get<std::int64_t>()}});
  }
  return golden;
}

const std::vector<Golden>& goldens() {
  static const std::vector<Golden> cases = [] {
    std::ifstream file(NIBBLE_TEST_DATA "/quantize/rules.json");
    std::vector<Golden> read;
    const nlohmann::json whole = nlohmann::json::parse(file);
    for (const nlohmann::json& entry : whole["cases"]) read.push_back(golden_from(entry));
    return read;
  }();
  return cases;
}

TEST(QuantizeGoldens, EveryRuleHasGoldens) {
  std::set<std::string> covered;
  for (const Golden& golden : goldens())
    for (const auto& [rule, expected] : golden.results) covered.insert(rule);
  for (const std::string& rule : all_rules()) EXPECT_TRUE(covered.contains(rule)) << rule;
}

class QuantizeGolden : public testing::TestWithParam<std::string> {};

TEST_P(QuantizeGolden, IsBitEqual) {
  int compared = 0;
  for (const Golden& golden : goldens()) {
    for (const auto& [rule, expected] : golden.results) {
      if (rule != GetParam()) continue;
      const auto got = quantize(rule, golden.source, golden.options);
      ASSERT_TRUE(got.has_value()) << golden.name << ": " << got.error().message;
      EXPECT_EQ(difference(*got, expected), "") << golden.name;
      ++compared;
    }
  }
  EXPECT_GE(compared, 15);
}

INSTANTIATE_TEST_SUITE_P(Rules, QuantizeGolden, testing::ValuesIn(all_rules()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           std::string name = info.param;
                           name[5] = '_';
                           return name;
                         });

TEST(QuantizeGoldens, AnotherRulesGoldensAreNotMet) {
  // Of the 13 rules no two are the same on all these tensors.
  for (const std::string& rule : all_rules()) {
    for (const std::string& other : all_rules()) {
      if (rule == other || rule.substr(0, 5) != other.substr(0, 5)) continue;
      int differing = 0;
      for (const Golden& golden : goldens()) {
        for (const auto& [name, expected] : golden.results) {
          if (name != other) continue;
          const auto got = quantize(rule, golden.source, golden.options);
          Expected without_scale = expected;
          without_scale.divisor.reset();
          without_scale.multiplier.reset();
          differing += got.has_value() && !difference(*got, without_scale).empty();
        }
      }
      EXPECT_GT(differing, 0) << rule << " and " << other;
    }
  }
}

}  // namespace
}  // namespace nibble::test
