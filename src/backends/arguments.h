// SPDX-License-Identifier: Apache-2.0
// What every backend checks before it reads or writes, and how it cuts up a workspace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backends/backend.h"

namespace nibble {

// B is the tensor that `problem` was prepared for.
Status check_weights(const GemmProblem& problem, const BlockTensorView& b);

// What every launch checks before it writes: A fits the problem, output and workspace are long
// enough.
Status check_arguments(const GemmProblem& problem, const GemmArguments& arguments,
                       std::int64_t workspace_bytes);

// Cuts typed arrays from a workspace, each on a 64-byte boundary.
class WorkspaceCutter {
 public:
  explicit WorkspaceCutter(std::span<std::byte> workspace) : rest_(workspace) {}

  template <class T>
  std::span<T> cut(std::int64_t count) {
    return {reinterpret_cast<T*>(cut_bytes(count * static_cast<std::int64_t>(sizeof(T)))),
            static_cast<std::size_t>(count)};
  }

  // What `count` elements cost at most, wherever the workspace begins.
  template <class T>
  static constexpr std::int64_t bytes(std::int64_t count) {
    return count * static_cast<std::int64_t>(sizeof(T)) + kAlignment;
  }

 private:
  static constexpr std::int64_t kAlignment = 64;
  std::byte* cut_bytes(std::int64_t bytes);
  std::span<std::byte> rest_;
};

}  // namespace nibble
