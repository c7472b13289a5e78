// SPDX-License-Identifier: Apache-2.0
// llama.cpp's ggml: its own dot products of NVFP4 and MXFP4 blocks with Q8_0 activations. Opened at
// run time.
#pragma once

#include <memory>

#include "backends/backend.h"

namespace nibble {

std::unique_ptr<Backend> make_ggml_backend();

}  // namespace nibble
