// SPDX-License-Identifier: Apache-2.0
// What a user of a checkpoint does with it, on whatever a fuzzer made the reader accept.
#pragma once

#include <cstdlib>

#include "checkpoint/block_weights.h"

namespace nibble {

// One line of text, whatever the file holds.
inline void check_message(const std::string& message) {
  if (message.empty() || message.size() > 20'000) std::abort();
  for (const char c : message) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') std::abort();
  }
}

// Every tensor's bytes are read, every name is tried as a weight; what loads must be sound and
// decode.
inline void load_everything(const Checkpoint& checkpoint) {
  unsigned sum = 0;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    if (!tensor.bytes.empty())
      sum += std::to_integer<unsigned>(tensor.bytes.front()) +
             std::to_integer<unsigned>(tensor.bytes.back());
    for (const auto& wanted : {name, name.substr(0, name.rfind('.'))}) {
      for (const auto declared :
           {std::optional<ScaleOrder>{}, std::optional(ScaleOrder::row_major),
            std::optional(ScaleOrder::tiled_128x4), std::optional(ScaleOrder::tiled_8x4)}) {
        const auto weights = load_block_weights(checkpoint, wanted, {declared});
        if (!weights) {
          check_message(weights.error().message);
          continue;
        }
        const auto view = weights->tensor.view();
        if (!check(view)) std::abort();
        if (dequantize_as(view, weights->convention).size() != dequantize_exact(view).size())
          std::abort();
      }
    }
  }
  sum += static_cast<unsigned>(list_block_weights(checkpoint).size());
  // Keeps the reads above.
  [[maybe_unused]] volatile unsigned keep = sum;
}

}  // namespace nibble
