// SPDX-License-Identifier: Apache-2.0
#include "probe/load_weights.h"

namespace nibble {

Result<BlockTensor> load_weights(const std::string& file, const std::string& tensor,
                                 std::optional<ScaleOrder>) {
  return fail(ErrorKind::unsupported,
              file + ": " + tensor + ": this build has no checkpoint reader");
}

Result<WeightsInfo> read_weights_info(const std::string& file, const std::string& tensor,
                                      std::optional<ScaleOrder> declared_scales) {
  const auto loaded = load_weights(file, tensor, declared_scales);
  if (!loaded) return tl::unexpected(loaded.error());
  return WeightsInfo{loaded->format, loaded->rows, loaded->columns};
}

}  // namespace nibble
