// SPDX-License-Identifier: Apache-2.0
#include "probe/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

#include "core/worker_channel.h"

namespace nibble {
namespace {

constexpr int kFirstOwnFd =
    10;  // above every number that the child's own end gets, so that no dup2 hits another
constexpr auto kPollStep = std::chrono::milliseconds(2);

tl::unexpected<Error> system_error(const char* what, int number) {
  return fail(ErrorKind::io, fmt::format("starting a child: {}: {}", what, std::strerror(number)));
}

struct Pipe {
  Descriptor read_end, write_end;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return system_error("pipe2", errno);
  Descriptor first(ends[0]), second(ends[1]);
  Pipe pipe{Descriptor(::fcntl(ends[0], F_DUPFD_CLOEXEC, kFirstOwnFd)),
            Descriptor(::fcntl(ends[1], F_DUPFD_CLOEXEC, kFirstOwnFd))};
  if (pipe.read_end.get() < 0 || pipe.write_end.get() < 0) return system_error("fcntl", errno);
  return pipe;
}

void make_nonblocking(const Descriptor& descriptor) {
  ::fcntl(descriptor.get(), F_SETFL, ::fcntl(descriptor.get(), F_GETFL) | O_NONBLOCK);
}

// posix_spawn's two parameter objects.
struct SpawnParameters {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;

  SpawnParameters() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnParameters() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnParameters(const SpawnParameters&) = delete;
  SpawnParameters& operator=(const SpawnParameters&) = delete;
};

void describe_child(SpawnParameters& parameters, int case_fd, int result_fd, int log_fd) {
  posix_spawn_file_actions_addopen(&parameters.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&parameters.actions, log_fd, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&parameters.actions, log_fd, STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&parameters.actions, case_fd, kWorkerCaseFd);
  posix_spawn_file_actions_adddup2(&parameters.actions, result_fd, kWorkerResultFd);
  posix_spawn_file_actions_addclosefrom_np(&parameters.actions, kWorkerResultFd + 1);

  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setpgroup(&parameters.attributes, 0);
  posix_spawnattr_setsigmask(&parameters.attributes, &none);
  posix_spawnattr_setsigdefault(&parameters.attributes, &all);
  posix_spawnattr_setflags(&parameters.attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    close();
    number_ = other.release();
  }
  return *this;
}

int Descriptor::release() { return std::exchange(number_, -1); }

void Descriptor::close() {
  if (number_ >= 0) ::close(std::exchange(number_, -1));
}

Result<ChildProcess> ChildProcess::start(const std::vector<std::string>& argv) {
  NIBBLE_CHECK(!argv.empty(), "a child needs a program");
  auto cases = make_pipe();
  if (!cases) return tl::unexpected(cases.error());
  auto results = make_pipe();
  if (!results) return tl::unexpected(results.error());
  auto log = make_pipe();
  if (!log) return tl::unexpected(log.error());

  SpawnParameters parameters;
  describe_child(parameters, cases->read_end.get(), results->write_end.get(), log->write_end.get());
  std::vector<char*> words;
  for (const auto& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ChildProcess child;
  const int failed = ::posix_spawn(&child.pid_, words[0], &parameters.actions,
                                   &parameters.attributes, words.data(), environ);
  if (failed != 0) {
    child.pid_ = -1;
    return system_error(words[0], failed);
  }
  child.cases_ = std::move(cases->write_end);
  child.results_ = std::move(results->read_end);
  child.log_ = std::move(log->read_end);
  make_nonblocking(child.cases_);
  make_nonblocking(child.results_);
  make_nonblocking(child.log_);
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      cases_(std::move(other.cases_)),
      results_(std::move(other.results_)),
      log_(std::move(other.log_)) {}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) end(0);
}

Status ChildProcess::send(std::string_view line) {
  const auto written = ::write(cases_.get(), line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size())) return {};
  return fail(ErrorKind::io, written < 0
                                 ? fmt::format("the child takes no case: {}", std::strerror(errno))
                                 : std::string("the child takes no case: its pipe is full"));
}

// Leaves the child unreaped, so that its process group cannot become another's.
bool ChildProcess::has_ended() const {
  if (pid_ <= 0) return true;
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == pid_;
}

void ChildProcess::kill_group(int signal_number) const {
  ::kill(-pid_, signal_number);
  ::kill(pid_, signal_number);  // should it have left its group
}

bool ChildProcess::wait_until_ended(double seconds) const {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!has_ended()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(kPollStep);
  }
  return true;
}

ProcessEnd ChildProcess::end(double grace_s) {
  if (pid_ <= 0) return {};
  if (!has_ended() && grace_s > 0) {
    kill_group(SIGTERM);
    wait_until_ended(grace_s);
  }
  kill_group(SIGKILL);
  int status = 0;
  pid_t reaped;
  do {
    reaped = ::waitpid(pid_, &status, 0);
  } while (reaped < 0 && errno == EINTR);
  pid_ = -1;
  cases_.close();
  results_.close();
  log_.close();
  if (reaped > 0 && WIFSIGNALED(status)) return {WTERMSIG(status), std::nullopt};
  if (reaped > 0 && WIFEXITED(status)) return {std::nullopt, WEXITSTATUS(status)};
  return {};
}

}  // namespace nibble
