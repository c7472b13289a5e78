// SPDX-License-Identifier: Apache-2.0
// Threads that stay: a GEMM of one row takes less time than starting a few threads.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace nibble {

// The CPUs that this process may run on, at least 1.
int usable_threads();

class WorkerPool {
 public:
  // That of this process; threads start when they are first wanted.
  static WorkerPool& shared();

  WorkerPool() = default;
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Calls work(piece) once for each piece of [0, pieces), on at most `threads` threads of which the
  // caller is one; returns when all are done. 0 threads: all usable ones. A caller that finds the
  // pool taken, or from within work(), does its pieces alone.
  void run(int threads, std::int64_t pieces, const std::function<void(std::int64_t)>& work);

 private:
  struct Job;
  void serve(std::size_t index);
  void start_helpers(std::size_t count);

  std::mutex taken_;  // held by the caller whose job the helpers work on
  std::mutex mutex_;  // guards all below
  std::condition_variable wake_, done_;
  std::vector<std::thread> helpers_;
  Job* job_ = nullptr;
  std::size_t job_helpers_ = 0;  // helpers below this index take part
  std::uint64_t job_number_ = 0;
  std::size_t working_ = 0;
  bool stop_ = false;
};

}  // namespace nibble
