// SPDX-License-Identifier: Apache-2.0
// B of a case from a checkpoint.
#pragma once

#include <optional>
#include <string>

#include "core/block_tensor.h"
#include "core/error.h"

namespace nibble {

struct Weights {
  BlockTensor tensor;
};

// `tensor` is the codes tensor or its module. Errors name file, tensor and what is wrong with it.
Result<Weights> load_weights(const std::string& file, const std::string& tensor,
                             std::optional<ScaleOrder> declared_scales);

}  // namespace nibble
