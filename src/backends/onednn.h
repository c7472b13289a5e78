// SPDX-License-Identifier: Apache-2.0
// oneDNN's matmul on dequantized operands: bf16 where that is exact and the CPU has it, else f32.
// Opened at run time.
#pragma once

#include <memory>

#include "backends/backend.h"

namespace nibble {

// Built without oneDNN's header, its version() says so.
std::unique_ptr<Backend> make_onednn_backend();

}  // namespace nibble
