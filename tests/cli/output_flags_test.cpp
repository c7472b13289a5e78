// SPDX-License-Identifier: Apache-2.0
// The sinks behind --output: files are whole or absent, streams keep what was done.
#include "cli/output_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/command.h"
#include "report/outcome_json.h"
#include "unit/report/sample_report.h"

namespace nibble {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

class OutputFiles : public testing::Test {
 protected:
  OutputFiles() : folder_(testing::TempDir() + "nibble_out_" + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~OutputFiles() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& file) const { return (folder_ / file).string(); }

  static std::string read(const std::string& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  std::size_t files() const {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_)) ++count;
    return count;
  }

  std::filesystem::path folder_;
};

TEST_F(OutputFiles, AreReplacedWholeAndLeaveNothingBeside) {
  ASSERT_TRUE(write_file(path("x.json"), "old and longer"));
  ASSERT_TRUE(write_file(path("x.json"), "new"));
  EXPECT_EQ(read(path("x.json")), "new");
  EXPECT_EQ(files(), 1u);
}

TEST_F(OutputFiles, HaveTheRightsOfAnyNewFile) {
  ASSERT_TRUE(write_file(path("ours"), "x"));
  std::ofstream(path("theirs")) << "x";
  struct stat ours = {}, theirs = {};
  ASSERT_EQ(stat(path("ours").c_str(), &ours), 0);
  ASSERT_EQ(stat(path("theirs").c_str(), &theirs), 0);
  EXPECT_EQ(ours.st_mode, theirs.st_mode);
}

TEST_F(OutputFiles, ALinkIsFollowedNotReplaced) {
  std::ofstream(path("real.json")) << "old";
  std::filesystem::create_symlink(path("real.json"), path("link.json"));
  ASSERT_TRUE(write_file(path("link.json"), "new"));
  EXPECT_EQ(read(path("real.json")), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(path("link.json")));
}

TEST_F(OutputFiles, ErrorsNameTheFile) {
  const std::string absent = path("none/x.json");
  const auto written = write_file(absent, "x");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().kind, ErrorKind::io);
  EXPECT_THAT(written.error().message, HasSubstr(absent));
  std::filesystem::create_symlink("/dev/full", path("full.json"));
  EXPECT_THAT(write_file(path("full.json"), "x").error().message, HasSubstr("full.json"));
}

TEST_F(OutputFiles, AreCheckedBeforeWorkStarts) {
  OutputFlags flags;
  flags.outputs = {path("x.json"), path("x.md")};
  EXPECT_TRUE(check_outputs(flags));
  flags.outputs = {path("x.yaml")};
  EXPECT_EQ(check_outputs(flags).error().kind, ErrorKind::invalid_argument);
  EXPECT_THAT(check_outputs(flags).error().message, HasSubstr("--output: "));
  flags.outputs = {path("none/x.json")};
  EXPECT_THAT(check_outputs(flags).error().message, HasSubstr(path("none")));
  std::filesystem::create_directory(path("folder.json"));
  flags.outputs = {path("folder.json")};
  EXPECT_THAT(check_outputs(flags).error().message, HasSubstr("is a folder"));
}

TEST_F(OutputFiles, AStreamHoldsEachOutcomeAtOnceAndSaysItIsPartial) {
  OutputFlags flags;
  flags.outputs = {path("x.jsonl"), path("x.json")};
  Report report = sample_report();
  report.partial = false;
  auto stream = OutcomeStream::open(flags, report);
  ASSERT_TRUE(stream) << stream.error().message;
  const auto lines = [&] {
    std::istringstream text(read(path("x.jsonl")));
    std::vector<std::string> all;
    for (std::string line; std::getline(text, line);) all.push_back(line);
    return all;
  };
  ASSERT_EQ(lines().size(), 1u);
  EXPECT_EQ(Json::parse(lines()[0])["partial"], true);
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(stream->add(report.outcomes[i]));
    ASSERT_EQ(lines().size(), i + 2);
    EXPECT_TRUE(outcome_from_json(lines()[i + 1]));
  }
  EXPECT_EQ(files(), 1u);  // only JSONL streams
  ASSERT_TRUE(write_file(path("x.jsonl"), write_jsonl(report)));
  EXPECT_EQ(Json::parse(lines()[0])["partial"], false);
  EXPECT_EQ(lines().size(), report.outcomes.size() + 1);
}

TEST_F(OutputFiles, EverySinkIsTriedAndEachFailureNamed) {
  OutputFlags flags;
  flags.json = true;
  flags.outputs = {path("none/a.json"), path("b.csv"), path("none/c.md")};
  testing::internal::CaptureStdout();
  const auto written = write_outputs(sample_report(), flags);
  const std::string out = testing::internal::GetCapturedStdout();
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr("a.json"));
  EXPECT_THAT(written.error().message, HasSubstr("c.md"));
  EXPECT_EQ(read(path("b.csv")), write_csv(sample_report()));
  EXPECT_EQ(out, write_json(sample_report()));
}

TEST(ExitCode, OfEachKindOfReport) {
  Outcome correct, unsupported, incorrect;
  correct.verdict = Correct{};
  incorrect.verdict = Incorrect{};
  Report report;
  EXPECT_EQ(exit_code_of(report, false), kExitNothing);
  report.outcomes = {unsupported};
  EXPECT_EQ(exit_code_of(report, false), kExitNothing);
  report.outcomes = {unsupported, correct};
  EXPECT_EQ(exit_code_of(report, false), kExitRight);
  report.outcomes = {unsupported, correct, incorrect};
  EXPECT_EQ(exit_code_of(report, false), kExitFault);
  EXPECT_EQ(exit_code_of(report, true), kExitInterrupted);
  for (const Verdict& verdict : {Verdict(Failed{}), Verdict(Crashed{}), Verdict(TimedOut{})}) {
    correct.verdict = verdict;
    report.outcomes = {correct};
    EXPECT_EQ(exit_code_of(report, false), kExitFault);
  }
}

}  // namespace
}  // namespace nibble
