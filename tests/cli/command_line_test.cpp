// SPDX-License-Identifier: Apache-2.0
// Help texts, usage errors, and what every command shares.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/run_nibble.h"
#include "support/golden.h"

namespace nibble {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

class Help : public testing::TestWithParam<const char*> {};

TEST_P(Help, IsItsGoldenFileAndFitsAScreen) {
  const std::string command = GetParam();
  const ProgramResult result = run_nibble(command + " --help");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  expect_golden(
      NIBBLE_SOURCE_DIR "/tests/cli/golden/help_" + (command.empty() ? "nibble" : command) + ".txt",
      result.out);
  EXPECT_LE(std::count(result.out.begin(), result.out.end(), '\n'), 30);
  const std::size_t examples = result.out.find("Examples:\n");
  ASSERT_NE(examples, std::string::npos);
  std::size_t count = 0;
  for (std::size_t at = examples; (at = result.out.find("\n  ", at)) != std::string::npos; ++at)
    ++count;
  EXPECT_EQ(count, 3u);
}

TEST(HelpAll, HasTheFlagsThatHelpLeavesOut) {
  const std::string all = run_nibble("probe --help-all").out;
  expect_golden(NIBBLE_SOURCE_DIR "/tests/cli/golden/help_all_probe.txt", all);
  const std::string some = run_nibble("probe --help").out;
  EXPECT_THAT(all, HasSubstr("--isolate"));
  EXPECT_THAT(some, Not(HasSubstr("--isolate")));
  EXPECT_THAT(some, HasSubstr("--help-all"));
}

INSTANTIATE_TEST_SUITE_P(OfEachCommand, Help, testing::Values("", "probe", "doctor", "list"),
                         [](const auto& info) {
                           return std::string(*info.param == '\0' ? "nibble" : info.param);
                         });

struct Misuse {
  const char* arguments;
  const char* message;  // the one line on stderr starts so
};

TEST(Usage, AWrongCommandLineIsOneLineAndExitCode2) {
  const Misuse misuses[] = {
      {"", "nibble: a command is required: probe, doctor, list\n"},
      {"nonsense", "nibble: 'nonsense' is no command; the commands are probe, doctor, list\n"},
      {"\"$(printf '\\033[31mred')\"", "nibble: 'red' is no command"},
      {"--nonsense", "nibble: "},
      {"doctor --nonsense", "nibble: The following argument was not expected: --nonsense"},
      {"doctor --color blue", "nibble: --color: 'blue' is not one of auto, always, never"},
      {"doctor --color", "nibble: --color: "},
      {"probe --seed -1", "nibble: --seed: '-1' is no integer from 0 to 18446744073709551615"},
      {"probe --seed 18446744073709551616", "nibble: --seed: '18446744073709551616' is no integer"},
      {"probe --seed x", "nibble: --seed: 'x' is no integer"},
      {"probe --timeout nan", "nibble: --timeout: nan is no number of seconds above 0"},
      {"probe --backend nope", "nibble: --backend: 'nope' is not one of "},
      {"probe --shape 1x2", "nibble: --shape: '1x2' is no MxNxK"},
      {"probe --a nvfp4,int4", "nibble: --a: 'int4' is not one of nvfp4, mxfp4, bf16, f16, q8_0"},
      {"probe --output x.txt",
       "nibble: --output: 'x.txt' must end in one of .json, .jsonl, .csv, .md, .html"},
      {"probe --output /nonexistent/x.md", "nibble: --output: cannot write in /nonexistent: "},
      {"list topics",
       "nibble: topic: 'topics' is not one of backends, experiments, formats, hypotheses"},
  };
  for (const Misuse& misuse : misuses) {
    const std::string arguments = misuse.arguments;
    const ProgramResult result = run_nibble(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments;
    EXPECT_EQ(result.out, "") << arguments;
    EXPECT_THAT(result.err, StartsWith(misuse.message));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

TEST(Usage, AnOutputThatCannotBeWrittenIsAnError) {
  const int status = std::system(NIBBLE_BINARY_DIR "/nibble list >/dev/full 2>/dev/null");
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 2);
}

TEST(Version, NamesTheProgramAndItsSources) {
  const ProgramResult result = run_nibble("--version");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, MatchesRegex("nibble [0-9]+\\.[0-9]+\\.[0-9]+( \\(git .*\\))?\n"));
}

TEST(List, PrintsEveryTopicOrThoseAskedFor) {
  const Json all = Json::parse(run_nibble("list --json").out);
  EXPECT_EQ(all["schema"], "nibble.list/1");
  for (const char* topic : {"backends", "experiments", "formats", "hypotheses"}) {
    ASSERT_TRUE(all.contains(topic)) << topic;
    EXPECT_FALSE(all[topic].empty()) << topic;
    for (const Json& entry : all[topic]) {
      EXPECT_NE(entry["name"], "");
      EXPECT_NE(entry["summary"], "");
    }
  }
  EXPECT_EQ(all["experiments"].size(), 10u);
  const Json some = Json::parse(run_nibble("list formats backends --json").out);
  EXPECT_EQ(some.size(), 3u);
  EXPECT_EQ(some["backends"], all["backends"]);
  EXPECT_EQ(run_nibble("list formats,backends").out, run_nibble("list backends formats").out);
}

TEST(Doctor, SaysWhatIsHereAndWhatThatAllows) {
  const ProgramResult text = run_nibble("doctor");
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_EQ(text.err, "");
  for (const char* section :
       {"nibble\n", "\nCPU\n", "\nGPUs\n", "\nlibraries\n", "\nwhat that allows\n"})
    EXPECT_THAT(text.out, HasSubstr(section));
  const Json json = Json::parse(run_nibble("doctor --json").out);
  EXPECT_EQ(json["schema"], "nibble.doctor/1");
  EXPECT_GE(json["environment"]["cpu"]["logical_cpus"], 1);
  for (const Json& backend : json["backends"])
    EXPECT_NE(backend["version"].is_null(), backend["why"] == "") << backend;
  EXPECT_EQ(json["backends"].size(), Json::parse(run_nibble("list --json").out)["backends"].size());
}

TEST(Doctor, AnAbsentLibraryIsAFinding) {
  const ProgramResult result =
      run_nibble("doctor --json", "NIBBLE_GGML_LIBRARY=/nonexistent/xllamacpp.so");
  EXPECT_EQ(result.exit_code, 0);
  const Json json = Json::parse(result.out);
  for (const Json& library : json["environment"]["libraries"]) {
    if (library["name"] != "ggml") continue;
    EXPECT_TRUE(library["path"].is_null());
    EXPECT_NE(library["note"], "");
  }
}

TEST(Colour, OnlyOnATerminalUnlessAsked) {
  EXPECT_THAT(run_nibble("list").out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(run_nibble("list --color never").out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(run_nibble("list --color always").out, HasSubstr("\x1b["));
  // What a flag asks for outweighs the environment.
  EXPECT_THAT(run_nibble("list --color always", "NO_COLOR=1").out, HasSubstr("\x1b["));
}

// A pseudo-terminal by script(1), which is in the base system.
TEST(Colour, OnATerminalNoColorTurnsItOff) {
  if (std::system("command -v script >/dev/null") != 0) GTEST_SKIP() << "script(1) is not here";
  const auto on_terminal = [](const std::string& environment) {
    const std::string file = testing::TempDir() + "nibble_typescript";
    const std::string command = environment +
                                " script -qec '" NIBBLE_BINARY_DIR "/nibble list' /dev/null >" +
                                file + " 2>&1 </dev/null";
    EXPECT_EQ(std::system(command.c_str()), 0);
    std::ifstream stream(file);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  };
  EXPECT_THAT(on_terminal("env -u NO_COLOR TERM=xterm"), HasSubstr("\x1b["));
  EXPECT_THAT(on_terminal("NO_COLOR=1 TERM=xterm"), Not(HasSubstr("\x1b[")));
  EXPECT_THAT(on_terminal("env -u NO_COLOR TERM=dumb"), Not(HasSubstr("\x1b[")));
}

}  // namespace
}  // namespace nibble
