// SPDX-License-Identifier: Apache-2.0
// `nibble probe` as a user sees it, on backends that behave and misbehave on purpose: exit codes,
// sinks, what an interrupt leaves behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/run_nibble.h"
#include "report/outcome_json.h"

namespace nibble {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::json;

constexpr const char* kSmall =
    " --experiment integer --shape 16x32x64 --a nvfp4 --b nvfp4 --out f32 --a-scales row_major "
    "--b-scales row_major ";

std::string probe(const std::string& backends, const std::string& more = "") {
  return "probe --backend " + backends + kSmall + more;
}

std::string read(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

class Probe : public testing::Test {
 protected:
  Probe() : folder_(testing::TempDir() + "nibble_probe_" + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~Probe() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& file) const { return folder_ + "/" + file; }

  std::string folder_;
};

TEST_F(Probe, ExitCodes) {
  EXPECT_EQ(run_nibble(probe("fake-honest")).exit_code, 0);
  EXPECT_EQ(run_nibble(probe("fake-honest,fake-refuses")).exit_code, 0);
  EXPECT_EQ(run_nibble(probe("fake-refuses")).exit_code, 3);
  for (const char* faulty : {"fake-lies", "fake-error", "fake-segfault", "fake-exit0"})
    EXPECT_EQ(run_nibble(probe(std::string("fake-honest,") + faulty)).exit_code, 1) << faulty;
  EXPECT_EQ(run_nibble(probe("fake-hang", "--timeout 0.5")).exit_code, 1);
  EXPECT_EQ(run_nibble(probe("fake-none")).exit_code, 2);
}

TEST_F(Probe, ResultOnStdoutProgressOnStderr) {
  const ProgramResult loud = run_nibble(probe("fake-honest"));
  EXPECT_THAT(loud.out, StartsWith("implementation "));
  EXPECT_THAT(loud.err, HasSubstr("[1/1] fake-honest/integer/"));
  const ProgramResult quiet = run_nibble(probe("fake-honest", "--quiet"));
  EXPECT_EQ(quiet.err, "");
}

TEST_F(Probe, EverySinkHoldsTheSameReport) {
  const ProgramResult result = run_nibble(probe(
      "fake-honest,fake-lies", "--json --output " + path("r.json") + " --output " +
                                   path("r.jsonl") + " --output " + path("r.csv") + " --output " +
                                   path("r.md") + " --output " + path("r.html")));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, read(path("r.json")));
  const Json report = Json::parse(result.out);
  EXPECT_EQ(report["schema"], "nibble.report/1");
  EXPECT_EQ(report["partial"], false);
  ASSERT_GE(report["outcomes"].size(), 2u);
  std::istringstream lines(read(path("r.jsonl")));
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(Json::parse(line)["partial"], false);
  for (const Json& outcome : report["outcomes"]) {
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_EQ(Json::parse(line), outcome);
  }
  EXPECT_FALSE(std::getline(lines, line));
  EXPECT_THAT(read(path("r.csv")), HasSubstr("\r\nfake-lies,"));
  EXPECT_THAT(read(path("r.md")), HasSubstr("| fake-lies"));
  EXPECT_THAT(read(path("r.html")), HasSubstr("<td>fake-lies"));
}

TEST_F(Probe, EveryRowCanBeRunAlone) {
  const Json report = Json::parse(run_nibble(probe("fake-lies", "--json")).out);
  const Json first = report["outcomes"][0];
  const std::string command = first["rerun"];
  ASSERT_THAT(command, StartsWith("nibble "));
  const ProgramResult again = run_nibble(command.substr(7) + " --json");
  EXPECT_EQ(again.exit_code, 1);
  const Json outcome = Json::parse(again.out)["outcomes"][0];
  for (const char* key : {"backend", "experiment", "problem", "seed", "verdict", "why", "accuracy"})
    EXPECT_EQ(outcome[key], first[key]) << key;
}

TEST_F(Probe, AnInterruptLeavesWhatWasDone) {
  const ProgramResult result =
      run_nibble(probe("fake-honest,fake-hang",
                       "--timeout 60 --output " + path("r.jsonl") + " --output " + path("r.json")),
                 "timeout --preserve-status -s INT 2");
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_THAT(result.out, HasSubstr("interrupted"));
  const Json report = Json::parse(read(path("r.json")));
  EXPECT_EQ(report["partial"], true);
  ASSERT_GE(report["outcomes"].size(), 1u);
  EXPECT_EQ(report["outcomes"][0]["verdict"], "correct");
  std::istringstream lines(read(path("r.jsonl")));
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(Json::parse(line)["partial"], true);
  while (std::getline(lines, line)) EXPECT_TRUE(outcome_from_json(line)) << line;
}

// A kill cannot be caught: the stream is all there is.
TEST_F(Probe, AKillLeavesTheStream) {
  run_nibble(probe("fake-honest,fake-hang", "--timeout 60 --output " + path("r.jsonl")),
             "timeout --preserve-status -s KILL 2");
  std::istringstream lines(read(path("r.jsonl")));
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(Json::parse(line)["partial"], true);
  ASSERT_TRUE(std::getline(lines, line));
  const auto outcome = outcome_from_json(line);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_TRUE(std::holds_alternative<Correct>(outcome->verdict));
}

TEST_F(Probe, DryRunRunsNothing) {
  const ProgramResult plan = run_nibble(probe("fake-segfault", "--dry-run"));
  EXPECT_EQ(plan.exit_code, 0);
  EXPECT_EQ(plan.out, "fake-segfault/integer/nvfp4xnvfp4/16x32x64/f32\n");
}

}  // namespace
}  // namespace nibble
