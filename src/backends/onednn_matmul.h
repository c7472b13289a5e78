// SPDX-License-Identifier: Apache-2.0
// One oneDNN matmul primitive through its C API, which differs between the major versions 2 and 3.
// The library that is opened must be of the major version of the header that nibble was built with.
#pragma once

#include <memory>
#include <string>

#include "core/error.h"
#include "core/gemm_problem.h"

namespace nibble {

Result<std::string> onednn_version();

// sums[m, n] = A[m, k] * B[n, k]^T with fp32 accumulation; A and B are both bf16 or both f32.
class OnednnMatmul {
 public:
  // Error of kind unsupported where oneDNN has no such primitive for this CPU.
  static Result<std::unique_ptr<OnednnMatmul>> create(const GemmShape& shape, bool bf16);
  virtual ~OnednnMatmul() = default;

  virtual std::string implementation()
      const = 0;  // oneDNN's own name of it: "brg:avx512_core_bf16"
  // threads 0: oneDNN's own choice.
  virtual Status run(const void* a, const void* b, float* sums, int threads) const = 0;
};

}  // namespace nibble
