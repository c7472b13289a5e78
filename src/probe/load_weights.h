// SPDX-License-Identifier: Apache-2.0
// B of a case from a checkpoint.
#pragma once

#include <optional>
#include <string>

#include "core/block_tensor.h"
#include "core/error.h"
#include "probe/make_cases.h"

namespace nibble {

struct Weights {
  BlockTensor tensor;
  bool nan_scales = false;
  std::string note;  // what is doubtful about the tensor; empty for a sound one
};

// `tensor` is the codes tensor or its module. Errors name file, tensor and what is wrong with it.
Result<Weights> load_weights(const std::string& file, const std::string& tensor,
                             std::optional<ScaleOrder> declared_scales);

// What a plan needs; reads no codes.
Result<WeightsInfo> read_weights_info(const std::string& file, const std::string& tensor,
                                      std::optional<ScaleOrder> declared_scales);

}  // namespace nibble
