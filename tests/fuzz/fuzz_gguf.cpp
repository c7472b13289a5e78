// SPDX-License-Identifier: Apache-2.0
#include "load_everything.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto checkpoint =
      nibble::parse_gguf({reinterpret_cast<const std::byte*>(data), size}, "fuzz");
  if (checkpoint) {
    nibble::load_everything(*checkpoint);
  } else {
    nibble::check_message(checkpoint.error().message);
  }
  return 0;
}
