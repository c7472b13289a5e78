// SPDX-License-Identifier: Apache-2.0
// nibble's own GEMM for the CPU (src/cpu): always there.
#pragma once

#include <memory>

#include "backends/backend.h"

namespace nibble {

std::unique_ptr<Backend> make_cpu_backend();

}  // namespace nibble
