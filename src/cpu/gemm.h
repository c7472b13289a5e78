// SPDX-License-Identifier: Apache-2.0
// The CPU GEMM: D = alpha * A * B^T for W4A4 and W4A16, B packed. fp32 sums of exact dot products
// of 16 elements, in the order of k (gemm_kernel.h), so that threads never change a bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/gemm_operands.h"
#include "cpu/packed_weights.h"

namespace nibble {

struct CpuGemm {
  ActivationView a;  // a block tensor, bf16 or f16; [m, k]
  float alpha = 1;
  OutType out = OutType::bf16;
  std::int64_t out_row_stride_bytes = 0;
  std::byte* output = nullptr;
  int threads = 0;  // 0: all that this process may use
};

// Scratch for the records of A, wherever it begins.
std::int64_t cpu_gemm_workspace_bytes(const GemmShape& shape, Activation a);

// Writes m * n outputs. The operands were checked: k of A and B agree, views and output suffice.
void cpu_gemm(const CpuGemm& gemm, const PackedWeights& b, std::span<std::byte> workspace);

}  // namespace nibble
