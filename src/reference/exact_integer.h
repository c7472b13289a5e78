// SPDX-License-Identifier: Apache-2.0
// The exact product of NVFP4 x NVFP4 by integer SIMD. exact_product() calls it.
#pragma once

#include "reference/exact_product.h"

namespace nibble {

// Longest k: 76000 blocks, 1.2 million.
std::int64_t max_integer_k();

// Fills the arrays of `panel`, whose sizes and row range are set; operands have been checked, are
// NVFP4 both, and k is at most max_integer_k(). S is rounded up by less than 1e-6 of itself.
void integer_product(const GemmInputs& inputs, int threads, ExactPanel& panel);

}  // namespace nibble
