// SPDX-License-Identifier: Apache-2.0
// Where a checkpoint's config.json and its tensors contradict each other about what is quantized.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace nibble {

// `config` is the text of config.json or hf_quant_config.json. One sentence a contradiction, both
// ways: a module that the config excludes but whose 4-bit codes are there, and a 16-bit 2-D weight
// (embeddings aside) that it does not exclude. Exclusions are read from `ignore`
// (compressed-tensors) and `exclude_modules` (ModelOpt), with `*` and `re:` patterns. Errors
// (corrupt): no JSON, no quantization settings in it, a pattern that is none.
Result<std::vector<std::string>> check_against_config(const Checkpoint& checkpoint,
                                                      std::string_view config,
                                                      const std::string& label);

}  // namespace nibble
