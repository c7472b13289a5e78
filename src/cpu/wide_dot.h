// SPDX-License-Identifier: Apache-2.0
// One output in double, which no product of these formats overflows: for what the fp32 kernels
// cannot hold, and for inf and NaN in A by IEEE rules.
#pragma once

#include "core/gemm_operands.h"
#include "cpu/packed_weights.h"

namespace nibble {

// sum_k A[row, k] * B[column, k]. A is a block tensor, bf16 or f16.
double wide_dot(const ActivationView& a, std::int64_t row, const PackedWeights& b,
                std::int64_t column);

}  // namespace nibble
