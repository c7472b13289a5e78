// SPDX-License-Identifier: Apache-2.0
// Splits a range of independent work over threads. Which thread does what never changes a result.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace nibble {

// 0 or less means all that this process may use.
inline int thread_count(int requested) {
  if (requested > 0) return requested;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// Calls work(begin, end) for pieces of at most `grain` that together make [0, count). Threads
// inherit the caller's floating-point environment. What a library throws there (out of memory) is
// thrown here.
template <class Work>
void for_each_piece(std::int64_t count, std::int64_t grain, int threads, const Work& work) {
  const std::int64_t pieces = (count + grain - 1) / grain;
  std::atomic<std::int64_t> next{0};
  std::exception_ptr thrown;
  std::mutex thrown_mutex;
  const auto run = [&] {
    try {
      for (std::int64_t piece = next++; piece < pieces; piece = next++) {
        work(piece * grain, std::min(count, (piece + 1) * grain));
      }
    } catch (...) {
      const std::lock_guard lock(thrown_mutex);
      thrown = std::current_exception();
      next = pieces;
    }
  };
  {
    std::vector<std::jthread> others;
    const auto helpers = std::min<std::int64_t>(thread_count(threads), pieces) - 1;
    try {
      for (std::int64_t i = 0; i < helpers; ++i) others.emplace_back(run);
    } catch (const std::system_error&) {
      // No more threads to be had: those that run do the work.
    }
    run();
  }
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace nibble
