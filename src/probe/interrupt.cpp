// SPDX-License-Identifier: Apache-2.0
#include "probe/interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "core/error.h"

namespace nibble {
namespace {

constexpr std::array<int, 2> kSignals{SIGINT, SIGTERM};
constexpr int kExitInterrupted = 130;

// Only what a signal handler may touch.
volatile std::sig_atomic_t received = 0;
std::array<int, 2> wake_pipe{-1, -1};
std::array<struct sigaction, 2> former;

extern "C" void note_signal(int) {
  const int saved = errno;
  if (received != 0) ::_exit(kExitInterrupted);
  received = 1;
  // The pipe is empty before this, so the write cannot fail for want of room.
  [[maybe_unused]] const auto written = ::write(wake_pipe[1], "!", 1);
  errno = saved;
}

}  // namespace

Interrupt::Interrupt() {
  NIBBLE_CHECK(wake_pipe[0] < 0, "one Interrupt at a time");
  received = 0;
  NIBBLE_CHECK(::pipe2(wake_pipe.data(), O_CLOEXEC | O_NONBLOCK) == 0,
               "no descriptors left for a pipe");
  struct sigaction action {};
  action.sa_handler = note_signal;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &action, &former[i]);
}

Interrupt::~Interrupt() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &former[i], nullptr);
  for (int& end : wake_pipe) {
    ::close(end);
    end = -1;
  }
}

int Interrupt::fd() const { return wake_pipe[0]; }
bool Interrupt::requested() const { return received != 0; }

}  // namespace nibble
