// SPDX-License-Identifier: Apache-2.0
// One 4-bit weight of a checkpoint as a typed block tensor, its scales found by the conventions of
// docs/checkpoints.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/block_tensor.h"
#include "core/dequantize.h"

namespace nibble {

struct LoadOptions {
  // How the block scales lie, where shape and metadata do not say it. What contradicts the sizes is
  // refused.
  std::optional<ScaleOrder> declared_scales;
};

// Scale bytes of one kind: how many, and where the first is.
struct ScaleCount {
  std::int64_t count = 0, first_row = 0, first_block = 0;
};

struct BlockWeights {
  BlockTensor tensor;
  Convention convention = Convention::modelopt;
  std::vector<std::string> used;  // the tensors that it was made of
  std::optional<float>
      activation_scale;  // multiplier of static activation quantization, where the file has one
  // Negative: a sign bit on an E4M3 scale, which the three producers decode and FP4 units ignore.
  ScaleCount nan_scales, zero_scales, negative_scales;
  std::vector<std::string>
      findings;  // what is doubtful about it, a sentence each; empty for a sound one
};

// What a weight is, without its bytes.
struct BlockWeightsInfo {
  Format format = Format::nvfp4;
  std::int64_t rows = 0, columns = 0;
  ScaleLayout layout;
  Convention convention = Convention::modelopt;
};

// `name` is the codes tensor ("x.weight_packed", "x.weight", "x.qdata", a GGUF tensor) or its
// module ("x"). Errors name the tensor: not_found where it or a companion is missing, corrupt where
// types, shapes and sizes contradict each other, invalid_argument where the layout must be
// declared.
Result<BlockWeights> load_block_weights(const Checkpoint& checkpoint, std::string_view name,
                                        const LoadOptions& options = {});
Result<BlockWeightsInfo> describe_block_weights(const Checkpoint& checkpoint, std::string_view name,
                                                const LoadOptions& options = {});

// Every codes tensor of the checkpoint, by the shape and type of it and its companions, never by a
// list of names.
std::vector<std::string> list_block_weights(const Checkpoint& checkpoint);

}  // namespace nibble
