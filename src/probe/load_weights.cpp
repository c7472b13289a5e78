// SPDX-License-Identifier: Apache-2.0
#include "probe/load_weights.h"

#include "checkpoint/block_weights.h"

namespace nibble {

Result<Weights> load_weights(const std::string& file, const std::string& tensor,
                             std::optional<ScaleOrder> declared_scales) {
  const auto checkpoint = open_checkpoint(file);
  if (!checkpoint) return tl::unexpected(checkpoint.error());
  auto loaded = load_block_weights(*checkpoint, tensor, {declared_scales});
  if (!loaded) return tl::unexpected(loaded.error());
  Weights weights;
  for (const std::string& finding : loaded->findings)
    weights.note += (weights.note.empty() ? "" : "; ") + finding;
  weights.nan_scales = loaded->nan_scales.count > 0;
  weights.tensor = std::move(loaded->tensor);
  return weights;
}

Result<WeightsInfo> read_weights_info(const std::string& file, const std::string& tensor,
                                      std::optional<ScaleOrder> declared_scales) {
  const auto checkpoint = open_checkpoint(file);
  if (!checkpoint) return tl::unexpected(checkpoint.error());
  const auto info = describe_block_weights(*checkpoint, tensor, {declared_scales});
  if (!info) return tl::unexpected(info.error());
  return WeightsInfo{info->format, info->rows, info->columns};
}

}  // namespace nibble
