// SPDX-License-Identifier: Apache-2.0
// How children are started and ended, and how Ctrl-C reaches the loop.
#include "probe/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstring>

#include "probe/interrupt.h"

namespace nibble {
namespace {

std::string read_for(int descriptor, int milliseconds) {
  std::string text;
  std::array<char, 4096> bytes;
  pollfd watched{descriptor, POLLIN, 0};
  while (::poll(&watched, 1, milliseconds) > 0) {
    const auto count = ::read(descriptor, bytes.data(), bytes.size());
    if (count <= 0) break;
    text.append(bytes.data(), static_cast<std::size_t>(count));
  }
  return text;
}

TEST(ChildProcess, HasItsPipesAndNothingElse) {
  auto child = ChildProcess::start(
      {"/bin/sh", "-c", "ls /proc/self/fd | tr '\\n' ' '; echo to stderr >&2; echo answer >&4"});
  ASSERT_TRUE(child);
  EXPECT_THAT(read_for(child->result_fd(), 2000), testing::StartsWith("answer\n"));
  const auto log = read_for(child->log_fd(), 2000);
  EXPECT_THAT(log, testing::HasSubstr("to stderr"));
  EXPECT_THAT(log, testing::MatchesRegex("0 1 2 3 4 (5 )?to stderr\n"));  // 5: of ls itself
  EXPECT_EQ(child->end(1).exit_code, 0);
}

TEST(ChildProcess, SaysHowItEnded) {
  auto killed = ChildProcess::start({"/bin/sh", "-c", "kill -SEGV $$"});
  ASSERT_TRUE(killed);
  read_for(killed->log_fd(), 2000);
  const auto end = killed->end(1);
  EXPECT_EQ(end.signal, SIGSEGV);
  EXPECT_FALSE(end.exit_code);
  auto left = ChildProcess::start({"/bin/sh", "-c", "exit 9"});
  ASSERT_TRUE(left);
  read_for(left->log_fd(), 2000);
  EXPECT_EQ(left->end(1).exit_code, 9);
}

TEST(ChildProcess, EndsAGroupThatIgnoresSigterm) {
  auto child = ChildProcess::start(
      {"/bin/sh", "-c", "trap '' TERM; sleep 100 & echo $!; while :; do sleep 1; done"});
  ASSERT_TRUE(child);
  const int grandchild = std::atoi(read_for(child->log_fd(), 300).c_str());
  ASSERT_GT(grandchild, 1);
  EXPECT_FALSE(child->has_ended());
  const auto started = std::chrono::steady_clock::now();
  EXPECT_EQ(child->end(0.1).signal, SIGKILL);
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(5));
  for (int i = 0; i < 200 && ::kill(grandchild, 0) == 0; ++i) ::usleep(10000);
  EXPECT_NE(::kill(grandchild, 0), 0) << "the grandchild lives on";
}

TEST(ChildProcess, SendingToOneThatIsGoneIsAnError) {
  std::signal(SIGPIPE, SIG_IGN);
  auto child = ChildProcess::start({"/bin/true"});
  ASSERT_TRUE(child);
  while (!child->has_ended()) ::usleep(1000);
  const auto sent = child->send("case\n");
  ASSERT_FALSE(sent);
  EXPECT_THAT(sent.error().message, testing::HasSubstr("takes no case"));
  std::signal(SIGPIPE, SIG_DFL);
}

TEST(Interrupt, OneSignalWakesTheSecondEnds) {
  const Interrupt interrupt;
  EXPECT_FALSE(interrupt.requested());
  ::raise(SIGINT);
  EXPECT_TRUE(interrupt.requested());
  pollfd watched{interrupt.fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&watched, 1, 0), 1);
  EXPECT_EXIT(::raise(SIGTERM), testing::ExitedWithCode(130), "");
}

}  // namespace
}  // namespace nibble
