// SPDX-License-Identifier: Apache-2.0
#include "backends/fake_misdeeds.h"

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/worker_channel.h"

namespace nibble {
namespace {

[[noreturn]] void hang() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

void say(std::string_view text) {
  while (!text.empty()) {
    const auto count = ::write(kWorkerResultFd, text.data(), text.size());
    if (count <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

void eat_memory() {
  constexpr std::size_t kPieceBytes = std::size_t{16} << 20;
  std::vector<std::vector<char>> eaten;
  for (;;) eaten.emplace_back(kPieceBytes, 'x');
}

void flood_output() {
  const std::string line(1023, 'x');
  for (int i = 0; i < 4096; ++i) {
    std::fprintf(stdout, "%s\n", line.c_str());
    std::fprintf(stderr, "%s\n", line.c_str());
  }
}

void leave_a_process() {
  if (::fork() == 0) hang();
  std::abort();
}

void segfault() {
  std::signal(SIGSEGV, SIG_DFL);  // a sanitizer would catch it
  auto* page = static_cast<volatile char*>(
      ::mmap(nullptr, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  *page = 1;
}

}  // namespace

void commit_misdeed(Misdeed misdeed) {
  switch (misdeed) {
    case Misdeed::segfaults:
      return segfault();
    case Misdeed::aborts:
      std::abort();
    case Misdeed::exits:
      std::exit(0);
    case Misdeed::hangs:
      hang();
    case Misdeed::ignores_sigterm:
      std::signal(SIGTERM, SIG_IGN);
      hang();
    case Misdeed::eats_memory:
      return eat_memory();
    case Misdeed::floods_output:
      return flood_output();
    case Misdeed::garbage:
      return say("}{ this is no answer\n");
    case Misdeed::half_line:
      say("1-0 {\"backend\":\"fake-half");
      ::_exit(0);
    case Misdeed::long_line:
      return say(std::string(std::size_t{100} << 20, 'x'));
    case Misdeed::two_lines:
      return say("1-0 {}\n2-0 {}\n");
    case Misdeed::leaves_a_process:
      return leave_a_process();
    case Misdeed::throws:
      throw std::runtime_error("thrown on purpose");
    default:
      return;
  }
}

}  // namespace nibble
