// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cli/terminal.h"
#include "report/text.h"

namespace nibble {
namespace {

constexpr int kBarColumns = 20;

}  // namespace

Progress::Progress(std::int64_t total, bool quiet)
    : total_(total), quiet_(quiet), terminal_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (!quiet_ && terminal_ && done_ > 0) fmt::print(stderr, "\r\x1b[K");
}

void Progress::step(std::string_view label) {
  done_ = std::min(done_ + 1, total_);
  if (!quiet_) draw(label);
}

void Progress::draw(std::string_view label) {
  const std::string clean = sanitize(label);
  if (!terminal_) {
    fmt::print(stderr, "[{}/{}] {}\n", done_, total_, clean);
    return;
  }
  const auto filled = static_cast<std::size_t>(total_ > 0 ? kBarColumns * done_ / total_ : 0);
  const std::string line =
      fmt::format("[{:<{}}] {}/{} {}", std::string(filled, '='), kBarColumns, done_, total_, clean);
  const auto columns = static_cast<std::size_t>(terminal_columns(STDERR_FILENO, 80) - 1);
  fmt::print(stderr, "\r\x1b[K{}", fit(line, columns));
  std::fflush(stderr);
}

}  // namespace nibble
