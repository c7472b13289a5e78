// SPDX-License-Identifier: Apache-2.0
// One child: started with pipes to it, watched, and ended with all that it started. Linux.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace nibble {

// A descriptor that closes itself.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { close(); }

  int get() const { return number_; }
  int release();
  void close();

 private:
  int number_ = -1;
};

// How a process ended.
struct ProcessEnd {
  std::optional<int> signal;
  std::optional<int> exit_code;
};

// The child is the leader of a process group of its own, has /dev/null as standard input, and no
// descriptor of the parent's but its pipes. Ended when this object goes.
class ChildProcess {
 public:
  // argv[0] is the file to execute. Errors: io, with the system's own words.
  static Result<ChildProcess> start(const std::vector<std::string>& argv);

  ChildProcess(ChildProcess&&) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  int result_fd() const { return results_.get(); }  // both non-blocking
  int log_fd() const { return log_.get(); }         // the child's stdout and stderr

  // The whole line at once. Error io: the child is gone, or its pipe is full.
  Status send(std::string_view line);

  // True once the child has ended, reaped or not.
  bool has_ended() const;

  // SIGTERM to the group, SIGKILL after `grace_s`, until the child is reaped. At once where it has
  // ended already.
  ProcessEnd end(double grace_s);

 private:
  ChildProcess() = default;
  void kill_group(int signal_number) const;
  bool wait_until_ended(double seconds) const;

  pid_t pid_ = -1;  // -1: reaped, or moved from
  Descriptor cases_, results_, log_;
};

}  // namespace nibble
