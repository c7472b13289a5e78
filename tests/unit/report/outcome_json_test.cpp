// SPDX-License-Identifier: Apache-2.0
#include "report/outcome_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "unit/report/sample_report.h"

namespace nibble {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

Json one_outcome(std::size_t index) {
  return Json::parse(outcome_to_json(sample_report().outcomes.at(index)));
}

std::string error_of(const Json& json) {
  const auto outcome = outcome_from_json(json.dump());
  if (outcome) return "(no error)";
  EXPECT_EQ(outcome.error().kind, ErrorKind::corrupt);
  return outcome.error().message;
}

TEST(OutcomeJson, EveryVerdictKindIsInTheSample) {
  std::set<std::string> kinds;
  for (const Outcome& outcome : sample_report().outcomes)
    kinds.insert(verdict_name(outcome.verdict));
  EXPECT_EQ(kinds.size(), std::variant_size_v<Verdict>);
}

TEST(OutcomeJson, RoundTripKeepsEveryByteOfTheLine) {
  for (const Outcome& outcome : sample_report().outcomes) {
    const std::string line = outcome_to_json(outcome);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    const auto back = outcome_from_json(line);
    ASSERT_TRUE(back) << back.error().message << "\n" << line;
    EXPECT_EQ(outcome_to_json(*back), line);
    EXPECT_EQ(back->verdict.index(), outcome.verdict.index());
    EXPECT_EQ(back->problem, outcome.problem);
    EXPECT_EQ(back->backend, outcome.backend);
    EXPECT_EQ(why(back->verdict), why(outcome.verdict));
  }
}

TEST(OutcomeJson, RoundTripKeepsWhatOnlyOneVerdictHas) {
  const Report report = sample_report();
  const auto read = [&](std::size_t index) {
    return outcome_from_json(outcome_to_json(report.outcomes.at(index))).value();
  };
  const Outcome timed = read(1);
  EXPECT_EQ(std::get<Correct>(timed.verdict).timing->median_us, 12.5);
  EXPECT_EQ(std::get<Correct>(timed.verdict).timing->stopped_by, "noise");
  EXPECT_EQ(timed.stats->abs_max, 3.5);
  EXPECT_EQ(timed.kernel, "gemm_cpu bf16 x nvfp4");
  EXPECT_EQ(timed.elapsed_s, 0.5);
  const auto incorrect = std::get<Incorrect>(read(2).verdict);
  EXPECT_EQ(incorrect.diagnosis->looks_like.at(1), "gain_half");
  EXPECT_EQ(incorrect.accuracy.first_mismatch->column, 17);
  EXPECT_EQ(incorrect.accuracy.first_mismatch->bound, 0.0009765625);
  EXPECT_EQ(incorrect.accuracy.ulp_histogram[8], 32000);
  EXPECT_FALSE(incorrect.accuracy.noise);
  EXPECT_EQ(std::get<Failed>(read(5).verdict).error.kind, ErrorKind::failed);
  EXPECT_EQ(read(5).note, "activations are Q8_0");
  EXPECT_EQ(std::get<Crashed>(read(6).verdict).signal, 11);
  EXPECT_FALSE(std::get<Crashed>(read(6).verdict).exit_code);
  EXPECT_EQ(std::get<Crashed>(read(7).verdict).exit_code, 0);
  EXPECT_EQ(std::get<TimedOut>(read(8).verdict).limit_s, 20.0);
  EXPECT_EQ(std::get<TimedOut>(read(8).verdict).log_tail, "still\tworking");
}

TEST(OutcomeJson, BytesThatAreNoUtf8BecomeReplacementCharacters) {
  EXPECT_EQ(one_outcome(6)["log_tail"].get<std::string>(),
            "\x1b[31mred\x1b[0m\r\nlast | line\xEF\xBF\xBD");
}

TEST(OutcomeJson, DoublesThatAreNoNumberBecomeNull) {
  Outcome outcome = sample_report().outcomes.at(2);
  Accuracy& accuracy = std::get<Incorrect>(outcome.verdict).accuracy;
  accuracy.gain = std::numeric_limits<double>::quiet_NaN();
  accuracy.first_mismatch->value = std::numeric_limits<double>::infinity();
  const Json json = Json::parse(outcome_to_json(outcome));
  EXPECT_TRUE(json["accuracy"]["gain"].is_null());
  EXPECT_TRUE(json["accuracy"]["first_mismatch"]["value"].is_null());
  const Accuracy back = std::get<Incorrect>(outcome_from_json(json.dump())->verdict).accuracy;
  EXPECT_FALSE(back.gain);
  EXPECT_TRUE(std::isnan(back.first_mismatch->value));
}

TEST(OutcomeJson, TheLargestSeedSurvives) {
  Outcome outcome = sample_report().outcomes.at(0);
  outcome.seed = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(outcome_from_json(outcome_to_json(outcome))->seed, outcome.seed);
}

TEST(OutcomeJson, EveryMissingKeyIsNamed) {
  const Json whole = one_outcome(2);
  for (const auto& [key, value] : whole.items()) {
    if (value.is_null() || key == "accuracy") continue;
    Json broken = whole;
    broken.erase(key);
    EXPECT_THAT(error_of(broken), HasSubstr("'" + key + "' is missing"));
  }
  Json broken = whole;
  broken.erase("accuracy");
  EXPECT_THAT(error_of(broken), HasSubstr("'accuracy' is missing"));
}

TEST(OutcomeJson, EveryWrongTypeIsNamed) {
  const Json whole = one_outcome(2);
  for (const auto& [key, value] : whole.items()) {
    Json broken = whole;
    broken[key] = value.is_array() ? Json(true) : Json::array();
    EXPECT_THAT(error_of(broken), HasSubstr("'" + key + "'")) << key;
  }
  for (const char* key : {"m", "a", "out", "groups", "source"}) {
    Json broken = whole;
    broken["problem"][key] = Json::object();
    EXPECT_THAT(error_of(broken), HasSubstr("'problem." + std::string(key) + "'"));
  }
}

TEST(OutcomeJson, WrongValuesAreNamed) {
  const auto with = [](const char* pointer, Json value) {
    Json json = one_outcome(2);
    json[Json::json_pointer(pointer)] = std::move(value);
    return error_of(json);
  };
  EXPECT_THAT(with("/problem/m", -1), HasSubstr("'problem.m' is out of range"));
  EXPECT_THAT(with("/problem/m", 1.5), HasSubstr("'problem.m' must be an integer"));
  EXPECT_THAT(with("/problem/m", 18446744073709551615u), HasSubstr("'problem.m' is out of range"));
  EXPECT_THAT(with("/problem/groups", 0), HasSubstr("'problem.groups' must be at least 1"));
  EXPECT_THAT(with("/problem/groups", 4294967297), HasSubstr("'problem.groups' is out of range"));
  EXPECT_THAT(with("/problem/a", "int4"),
              HasSubstr("'problem.a' must be one of nvfp4, mxfp4, bf16, f16, q8_0"));
  EXPECT_THAT(with("/problem/extra", 1), HasSubstr("'problem.extra' is unknown"));
  EXPECT_THAT(with("/verdict", "fine"), HasSubstr("'verdict' must be one of correct"));
  EXPECT_THAT(with("/experiment", "guess"), HasSubstr("'experiment' must be one of"));
  EXPECT_THAT(with("/looks_like/0", 3), HasSubstr("'looks_like[0]' must be a string"));
  EXPECT_THAT(with("/accuracy/first_mismatch/row", "0"),
              HasSubstr("'accuracy.first_mismatch.row'"));
  EXPECT_THAT(with("/accuracy/ulp_histogram/nan", -3), HasSubstr("ulp_histogram.nan"));
  EXPECT_THAT(with("/accuracy/ulp_histogram/7", 3), HasSubstr("ulp_histogram"));
  EXPECT_THAT(with("/surprise", 3), HasSubstr("'surprise' is unknown"));
  EXPECT_THAT(with("/roofline", 3), HasSubstr("'roofline' must be null"));
}

TEST(OutcomeJson, KeysThatTheVerdictCannotHaveAreRefused) {
  Json timed_but_wrong = one_outcome(2);
  timed_but_wrong["timing"] = one_outcome(1)["timing"];
  EXPECT_THAT(error_of(timed_but_wrong), HasSubstr("'timing' cannot go with verdict 'incorrect'"));
  Json judged_yet_unsupported = one_outcome(4);
  judged_yet_unsupported["accuracy"] = one_outcome(1)["accuracy"];
  EXPECT_THAT(error_of(judged_yet_unsupported), HasSubstr("'accuracy' cannot go"));
  Json excused = one_outcome(0);
  excused["why"] = "but";
  EXPECT_THAT(error_of(excused), HasSubstr("'why' cannot go with verdict 'correct'"));
  Json without_limit = one_outcome(8);
  without_limit["limit_s"] = nullptr;
  EXPECT_THAT(error_of(without_limit), HasSubstr("'limit_s' is missing"));
}

TEST(OutcomeJson, TextThatIsNoOutcomeIsAnError) {
  const std::string whole = outcome_to_json(sample_report().outcomes.at(2));
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(outcome_from_json(whole.substr(0, size))) << size;
  const auto message = [](std::string text) { return outcome_from_json(text).error().message; };
  EXPECT_THAT(message(whole + "{}"), HasSubstr("syntax error"));
  EXPECT_THAT(message("[]"), HasSubstr("must be an object"));
  EXPECT_THAT(message("null"), HasSubstr("must be an object"));
  EXPECT_THAT(message("\x00\xff\x80"), HasSubstr("syntax error"));
  EXPECT_THAT(message(std::string(1000000, '[')), HasSubstr("nesting deeper than"));
  EXPECT_THAT(message(std::string(17 << 20, ' ')), HasSubstr("more than the limit"));
  EXPECT_THAT(message(R"({"seed":1,"seed":2})"), HasSubstr("'seed' appears twice"));
  EXPECT_THAT(message(R"({"elapsed_s":1e999})"), HasSubstr("out of range"));
  EXPECT_THAT(message(R"({"elapsed_s":NaN})"), HasSubstr("syntax error"));
}

// Whatever a child's line turns into: an error, or an outcome that is written and read again.
TEST(OutcomeJson, SpoiledLinesNeverDoHarm) {
  std::mt19937 random(20);
  const std::string tokens = "{}[]\",:0123456789.eE-+truefalsn\\u\xff\x00 ";
  for (const Outcome& outcome : sample_report().outcomes) {
    const std::string line = outcome_to_json(outcome);
    for (int i = 0; i < 2000; ++i) {
      std::string spoiled = line;
      for (auto edits = random() % 4 + 1; edits > 0 && !spoiled.empty(); --edits) {
        const std::size_t at = random() % spoiled.size();
        if (random() % 3 == 0)
          spoiled.erase(at, random() % 8);
        else
          spoiled[at] = tokens[random() % tokens.size()];
      }
      const auto read = outcome_from_json(spoiled);
      if (!read) {
        EXPECT_NE(read.error().message, "");
        continue;
      }
      const std::string again = outcome_to_json(*read);
      EXPECT_EQ(outcome_to_json(outcome_from_json(again).value()), again);
    }
  }
}

TEST(ProblemJson, RoundTripAndErrors) {
  const GemmProblem problem = sample_report().outcomes.at(1).problem;
  EXPECT_EQ(problem_from_json(problem_to_json(problem)).value(), problem);
  Json json = Json::parse(problem_to_json(problem));
  json["groups"] = 0;
  EXPECT_THAT(problem_from_json(json.dump()).error().message, HasSubstr("'groups'"));
  json["groups"] = 1;
  json.erase("k");
  EXPECT_THAT(problem_from_json(json.dump()).error().message, HasSubstr("'k' is missing"));
}

}  // namespace
}  // namespace nibble
