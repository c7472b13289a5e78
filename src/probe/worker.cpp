// SPDX-License-Identifier: Apache-2.0
#include "probe/worker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <new>
#include <optional>
#include <string>

#include "device/environment.h"
#include "probe/run_case.h"
#include "report/environment_json.h"
#include "report/outcome_json.h"

namespace nibble {
namespace {

constexpr std::size_t kLongestCase = std::size_t{1} << 20;
constexpr int kExitBadCase = 2, kExitNoParent = 4;

std::optional<std::string> read_line(int descriptor, std::string& buffer) {
  for (;;) {
    if (const auto end = buffer.find('\n'); end != std::string::npos) {
      std::string line = buffer.substr(0, end);
      buffer.erase(0, end + 1);
      return line;
    }
    char bytes[4096];
    const auto count = ::read(descriptor, bytes, sizeof(bytes));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0 || buffer.size() > kLongestCase) return std::nullopt;
    buffer.append(bytes, static_cast<std::size_t>(count));
  }
}

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const auto count = ::write(descriptor, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

std::int64_t address_space_bytes() {
  std::int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * ::sysconf(_SC_PAGESIZE);
}

// While it lives, this process may map `limit_bytes` more than it has. Where operator new fails, a
// line in the log says what the reason was, for the case that the backend dies of it.
class MemoryLimit {
 public:
  explicit MemoryLimit(std::int64_t limit_bytes) : limited_(limit_bytes > 0) {
    if (!limited_) return;
    bytes = limit_bytes;
    reached = false;
    ::getrlimit(RLIMIT_AS, &former_);
    rlimit limit = former_;
    limit.rlim_cur = static_cast<rlim_t>(address_space_bytes() + limit_bytes);
    ::setrlimit(RLIMIT_AS, &limit);
    std::set_new_handler(give_up);
  }
  ~MemoryLimit() {
    if (!limited_) return;
    ::setrlimit(RLIMIT_AS, &former_);
    std::set_new_handler(nullptr);
  }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

  static std::string reason() { return fmt::format("memory limit of {} bytes reached", bytes); }
  static bool was_reached() { return reached; }

 private:
  static void give_up() {
    if (!reached)
      std::fprintf(stderr, "nibble worker: memory limit of %lld bytes reached\n",
                   static_cast<long long>(bytes));
    reached = true;
    throw std::bad_alloc();
  }

  static inline std::int64_t bytes = 0;
  static inline bool reached = false;
  bool limited_;
  rlimit former_{};
};

Outcome run_limited(const Case& the_case) {
  const std::int64_t all_memory_bytes = ::sysconf(_SC_PHYS_PAGES) * ::sysconf(_SC_PAGESIZE);
  const MemoryLimit limit(the_case.memory_limit_bytes > 0 ? the_case.memory_limit_bytes
                                                          : all_memory_bytes);
  Outcome outcome = run_case(the_case);
  auto* failed = std::get_if<Failed>(&outcome.verdict);
  if (failed && MemoryLimit::was_reached()) {
    failed->error.message += ": " + MemoryLimit::reason();
  }
  return outcome;
}

void live_as_child() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
}

}  // namespace

int run_worker(int case_fd, int result_fd) {
  live_as_child();
  for (const int descriptor : {case_fd, result_fd}) ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);

  std::string buffer;
  while (const auto line = read_line(case_fd, buffer)) {
    const auto space = line->find(' ');
    const auto the_case =
        case_from_json(space == std::string::npos ? std::string() : line->substr(space + 1));
    if (!the_case) {
      fmt::print(stderr, "nibble worker: {}\n", the_case.error().message);
      return kExitBadCase;
    }
    const std::string answer = outcome_to_json(run_limited(*the_case));
    std::fflush(stdout);
    if (!write_all(result_fd, line->substr(0, space + 1) + answer + "\n")) return kExitNoParent;
  }
  return 0;
}

int run_environment_worker(int result_fd) {
  live_as_child();
  const bool written = write_all(result_fd, environment_to_json(read_environment()) + "\n");
  return written ? 0 : kExitNoParent;
}

}  // namespace nibble
