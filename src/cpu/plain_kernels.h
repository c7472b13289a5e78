// SPDX-License-Identifier: Apache-2.0
// The functions of gemm_kernel.h in plain C++: for CPUs without any vector target, and what the
// others are tested against.
#pragma once

#include "cpu/gemm_kernel.h"

namespace nibble {

const GemmKernels& plain_gemm_kernels();

}  // namespace nibble
