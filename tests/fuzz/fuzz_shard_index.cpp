// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "load_everything.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto shards =
      nibble::parse_shard_index({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!shards) {
    nibble::check_message(shards.error().message);
    return 0;
  }
  for (const auto& [name, file] : *shards) {
    if (file.empty() || file.find('/') != std::string::npos || file == "..") std::abort();
  }
  return 0;
}
