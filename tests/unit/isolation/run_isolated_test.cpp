// SPDX-License-Identifier: Apache-2.0
// Each misbehaviour gets its own verdict, and its neighbours' outcomes are those of a run without
// it.
#include "probe/run_isolated.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <thread>

#include "probe/isolated_environment.h"
#include "report/outcome_json.h"

namespace nibble {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Case small_case(const std::string& backend, std::int64_t n = 24) {
  Case each;
  each.backend = backend;
  each.problem = {{5, n, 64}, Activation::nvfp4, Format::nvfp4, OutType::f32};
  each.experiment = Experiment::integer;
  each.seed = 7;
  each.limit_s = 60;
  return each;
}

IsolationOptions options(bool child_per_case = false) {
  IsolationOptions options;
  options.worker = {NIBBLE_BINARY_DIR "/worker_process"};
  options.child_per_case = child_per_case;
  options.grace_s = 0.2;
  return options;
}

std::vector<Outcome> run(const std::vector<Case>& cases, bool child_per_case = false) {
  const auto result = run_isolated(cases, options(child_per_case));
  EXPECT_FALSE(result.stopped);
  EXPECT_EQ(result.outcomes.size(), cases.size());
  return result.outcomes;
}

// Without the time that it took.
std::string comparable(Outcome outcome) {
  outcome.elapsed_s = 0;
  return outcome_to_json(outcome);
}

int open_descriptors() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

bool has_children() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

struct Expected {
  const char* backend;
  const char* verdict;
  const char* why;  // is part of the reason
  double limit_s = 60;
  std::int64_t memory_limit_bytes = 0;
  Experiment experiment = Experiment::integer;
};

void PrintTo(const Expected& expected, std::ostream* out) { *out << expected.backend; }

class Misbehaviour : public testing::TestWithParam<Expected> {};

TEST_P(Misbehaviour, HasItsOwnVerdictAndSpoilsNoNeighbour) {
  const auto& expected = GetParam();
#ifdef __SANITIZE_ADDRESS__
  if (expected.memory_limit_bytes > 0)
    GTEST_SKIP() << "Skipped: AddressSanitizer ends a process that runs out of memory";
#endif
  Case fake = small_case(expected.backend);
  fake.limit_s = expected.limit_s;
  fake.memory_limit_bytes = expected.memory_limit_bytes;
  fake.experiment = expected.experiment;
  const auto alone = run({small_case("fake-honest", 16), small_case("fake-honest", 40)});
  const int descriptors = open_descriptors();
  for (const bool child_per_case : {false, true}) {
    const auto outcomes =
        run({small_case("fake-honest", 16), fake, small_case("fake-honest", 40)}, child_per_case);
    ASSERT_EQ(outcomes.size(), 3u);
    EXPECT_STREQ(verdict_name(outcomes[1].verdict), expected.verdict) << why(outcomes[1].verdict);
    EXPECT_THAT(why(outcomes[1].verdict), HasSubstr(expected.why));
    EXPECT_EQ(comparable(outcomes[0]), comparable(alone[0]));
    EXPECT_EQ(comparable(outcomes[2]), comparable(alone[1]));
    EXPECT_STREQ(verdict_name(outcomes[2].verdict), "correct");
    EXPECT_THAT(outcomes[1].rerun, HasSubstr(expected.backend));
  }
  EXPECT_EQ(open_descriptors(), descriptors);
  EXPECT_FALSE(has_children());
}

INSTANTIATE_TEST_SUITE_P(
    Fakes, Misbehaviour,
    testing::Values(Expected{"fake-honest", "correct", ""},
                    Expected{"fake-lies", "incorrect", "differ from the exact result"},
                    Expected{"fake-refuses", "unsupported", "refuses on purpose"},
                    Expected{"fake-error", "failed", "launch fails on purpose (status 7)"},
                    Expected{"fake-segfault", "crashed", "signal 11 (SIGSEGV)"},
                    Expected{"fake-abort", "crashed", "signal 6 (SIGABRT)"},
                    Expected{"fake-exit0", "crashed", "exit code 0 and no answer"},
                    Expected{"fake-hang", "timed_out", "no answer within 0.4 s", 0.4},
                    Expected{"fake-ignores-sigterm", "timed_out", "no answer within 0.4 s", 0.4},
                    Expected{"fake-eats-memory", "failed",
                             "memory limit of 268435456 bytes reached", 60, 268435456},
                    Expected{"fake-writes-before", "incorrect", "before it were written", 60, 0,
                             Experiment::canary},
                    Expected{"fake-writes-after", "incorrect", "behind it were written", 60, 0,
                             Experiment::canary},
                    Expected{"fake-writes-inputs", "incorrect", "the codes of A were changed", 60,
                             0, Experiment::canary},
                    Expected{"fake-floods-output", "correct", ""},
                    Expected{"fake-garbage", "failed", "does not repeat the case's number"},
                    Expected{"fake-half-line", "crashed", "of an unfinished answer"},
                    Expected{"fake-long-line", "failed", "more than 1048576 bytes"},
                    Expected{"fake-two-lines", "failed", "the child's answer cannot be used"},
                    Expected{"fake-leaves-a-process", "crashed", "signal 6 (SIGABRT)"},
                    Expected{"fake-throws", "failed", "thrown on purpose"}),
    [](const auto& info) {
      std::string name = info.param.backend;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

TEST(RunIsolated, TheLogTailOfACrashIsKeptAndBounded) {
  auto fake = small_case("fake-abort");
  const auto outcomes = run({fake});
  EXPECT_LE(std::get<Crashed>(outcomes[0].verdict).log_tail.size(), std::size_t{8} << 10);
}

TEST(RunIsolated, WrongOnlyTheThirdTime) {
  std::vector<Case> cases;
  for (int i = 0; i < 4; ++i) cases.push_back(small_case("fake-third-time", 16 + 8 * i));
  const auto outcomes = run(cases);
  int wrong = 0;
  for (const auto& outcome : outcomes) wrong += is_fault(outcome.verdict);
  EXPECT_EQ(wrong, 1);
  const auto fresh = run(cases, true);
  for (const auto& outcome : fresh) EXPECT_STREQ(verdict_name(outcome.verdict), "correct");
}

TEST(RunIsolated, WrongOnlyAfterAnotherCaseNamesIt) {
  const std::vector<Case> cases{small_case("fake-after-other", 16),
                                small_case("fake-after-other", 24),
                                small_case("fake-after-other", 32)};
  const auto outcomes = run(cases);
  EXPECT_STREQ(verdict_name(outcomes[0].verdict), "correct");
  EXPECT_STREQ(verdict_name(outcomes[1].verdict), "incorrect");
  EXPECT_THAT(why(outcomes[1].verdict),
              HasSubstr("only after " + case_name(cases[0]) + " had run in the same process"));
  EXPECT_THAT(why(outcomes[1].verdict), HasSubstr("in a fresh one it is correct"));
  for (const auto& outcome : run(cases, true))
    EXPECT_STREQ(verdict_name(outcome.verdict), "correct");
}

TEST(RunIsolated, AFaultThatAFreshChildRepeatsIsTheCasesOwn) {
  auto hang = small_case("fake-honest", 24);
  const auto outcomes = run({small_case("fake-lies", 16), small_case("fake-lies", 24)});
  for (const auto& outcome : outcomes)
    EXPECT_THAT(why(outcome.verdict), Not(HasSubstr("only after")));
}

TEST(RunIsolated, CallsBackInOrder) {
  std::vector<std::string> seen;
  auto with_calls = options();
  with_calls.on_start = [&](const Case& each) { seen.push_back("start " + each.backend); };
  with_calls.on_outcome = [&](const Outcome& outcome) {
    seen.push_back(verdict_name(outcome.verdict));
  };
  const std::vector<Case> cases{small_case("fake-honest"), small_case("fake-error")};
  run_isolated(cases, with_calls);
  EXPECT_THAT(seen,
              testing::ElementsAre("start fake-honest", "correct", "start fake-error", "failed"));
}

TEST(RunIsolated, StopsAtOnceAndKeepsWhatThereIs) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  auto stoppable = options();
  stoppable.stop_fd = ends[0];
  const std::vector<Case> cases{small_case("fake-honest"), small_case("fake-hang"),
                                small_case("fake-honest")};
  std::jthread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    ASSERT_EQ(::write(ends[1], "!", 1), 1);
  });
  const auto started = std::chrono::steady_clock::now();
  const auto result = run_isolated(cases, stoppable);
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(20));
  EXPECT_TRUE(result.stopped);
  ASSERT_EQ(result.outcomes.size(), 1u);
  EXPECT_STREQ(verdict_name(result.outcomes[0].verdict), "correct");
  EXPECT_FALSE(has_children());
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(RunIsolated, AWorkerThatCannotStartIsAVerdict) {
  auto nowhere = options();
  nowhere.worker = {"/no/such/program"};
  const std::vector<Case> cases{small_case("fake-honest")};
  const auto outcomes = run_isolated(cases, nowhere).outcomes;
  ASSERT_EQ(outcomes.size(), 1u);
  EXPECT_THAT(why(outcomes[0].verdict), HasSubstr("/no/such/program: No such file or directory"));
}

TEST(RunIsolated, AWorkerThatIsNoWorkerIsAVerdict) {
  for (const auto& [program, reason] : {std::pair{"/bin/true", "exit code 0 and no answer"},
                                        std::pair{"/bin/sleep", "exit code 1 and no answer"}}) {
    auto wrong = options();
    wrong.worker = {program};
    auto each = small_case("fake-honest");
    each.limit_s = 0.4;
    const std::vector<Case> cases{each};
    const auto outcomes = run_isolated(cases, wrong).outcomes;
    ASSERT_EQ(outcomes.size(), 1u);
    EXPECT_THAT(why(outcomes[0].verdict), HasSubstr(reason));
  }
}

TEST(IsolatedEnvironment, IsReadByAChild) {
  const auto environment =
      read_environment_isolated({NIBBLE_BINARY_DIR "/worker_process", "--environment"});
  EXPECT_GT(environment.cpu.logical_cpus, 0);
  EXPECT_GT(environment.libraries.size(), 3u);
  EXPECT_FALSE(has_children());
}

TEST(IsolatedEnvironment, AChildThatFailsCostsOnlyTheLibraries) {
  for (const auto& [program, reason] : {std::pair{"/bin/false", "exit code 1 and no answer"},
                                        std::pair{"/no/such", "No such file"}}) {
    const auto environment = read_environment_isolated({program});
    EXPECT_GT(environment.cpu.logical_cpus, 0);
    ASSERT_EQ(environment.libraries.size(), 1u);
    EXPECT_THAT(environment.libraries[0].note, HasSubstr(reason));
  }
}

}  // namespace
}  // namespace nibble
