// SPDX-License-Identifier: Apache-2.0
// B of a case from a checkpoint.
#pragma once

#include <optional>
#include <string>

#include "core/block_tensor.h"
#include "core/error.h"
#include "probe/make_cases.h"

namespace nibble {

// `tensor` is the codes tensor or its module. Errors name file, tensor and what is wrong with it.
Result<BlockTensor> load_weights(const std::string& file, const std::string& tensor,
                                 std::optional<ScaleOrder> declared_scales);

// The same without keeping its bytes: what a plan needs.
Result<WeightsInfo> read_weights_info(const std::string& file, const std::string& tensor,
                                      std::optional<ScaleOrder> declared_scales);

}  // namespace nibble
