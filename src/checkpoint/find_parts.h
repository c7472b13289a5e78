// SPDX-License-Identifier: Apache-2.0
// Which tensors of a checkpoint make up one 4-bit weight, and what they say it is. Reads headers
// and scalars only.
#pragma once

#include <optional>
#include <string>

#include "checkpoint/block_weights.h"

namespace nibble {

struct Parts {
  BlockWeightsInfo info;
  std::string codes_name;
  const StoredTensor* codes = nullptr;
  const StoredTensor* scales = nullptr;  // none in GGUF: they lie among the codes
  std::vector<std::string> used;
  TensorScale tensor_scale;
  std::optional<float> activation_scale;
  std::vector<std::string> findings;
};

Result<Parts> find_parts(const Checkpoint& checkpoint, std::string_view name,
                         const LoadOptions& options);

}  // namespace nibble
