// SPDX-License-Identifier: Apache-2.0
// OpenBLAS: both operands dequantized to f32, then sgemm. Opened at run time.
#pragma once

#include <memory>

#include "backends/backend.h"

namespace nibble {

std::unique_ptr<Backend> make_openblas_backend();

}  // namespace nibble
