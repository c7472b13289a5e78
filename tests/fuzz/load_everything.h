// SPDX-License-Identifier: Apache-2.0
// What a user of a checkpoint does with it, on whatever a fuzzer made the reader accept.
#pragma once

#include <cstdlib>

#include "checkpoint/block_weights.h"

namespace nibble {

// Every tensor's bytes are read, every name is tried as a weight; what loads must be sound and
// decode.
inline void load_everything(const Checkpoint& checkpoint) {
  unsigned sum = 0;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    if (!tensor.bytes.empty())
      sum += std::to_integer<unsigned>(tensor.bytes.front()) +
             std::to_integer<unsigned>(tensor.bytes.back());
    for (const auto& wanted : {name, name.substr(0, name.rfind('.'))}) {
      const auto weights = load_block_weights(checkpoint, wanted);
      if (!weights) continue;
      if (!check(weights->tensor.view())) std::abort();
      sum +=
          static_cast<unsigned>(dequantize_as(weights->tensor.view(), weights->convention).size());
    }
  }
  // Keeps the reads above.
  [[maybe_unused]] volatile unsigned keep = sum;
}

}  // namespace nibble
