// SPDX-License-Identifier: Apache-2.0
// Splits a range of independent work over threads. Which thread does what never changes a result.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace nibble {

// 0 or less means all that this process may use.
inline int thread_count(int requested) {
  if (requested > 0) return requested;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// Calls work(begin, end) for pieces of at most `grain` that together make [0, count).
template <class Work>
void for_each_piece(std::int64_t count, std::int64_t grain, int threads, const Work& work) {
  const std::int64_t pieces = (count + grain - 1) / grain;
  std::atomic<std::int64_t> next{0};
  const auto run = [&] {
    for (std::int64_t piece = next++; piece < pieces; piece = next++) {
      work(piece * grain, std::min(count, (piece + 1) * grain));
    }
  };
  const auto helpers = std::min<std::int64_t>(thread_count(threads), pieces) - 1;
  std::vector<std::jthread> others;
  for (std::int64_t i = 0; i < helpers; ++i) others.emplace_back(run);
  run();
}

}  // namespace nibble
