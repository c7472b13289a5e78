// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/check_config.h"
#include "load_everything.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const nibble::Checkpoint checkpoint = [] {
    nibble::Checkpoint made;
    for (const char* name : {"lm_head.weight", "model.layers.0.mlp.down_proj.weight"}) {
      made.tensors[name] = {nibble::StoredType::bf16, {2, 2}, {}, "fuzz"};
    }
    return made;
  }();
  const auto found =
      nibble::check_against_config(checkpoint, {reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!found) nibble::check_message(found.error().message);
  return 0;
}
