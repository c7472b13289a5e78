// SPDX-License-Identifier: Apache-2.0
// One matrix product: D[m,n] = alpha * A[m,k] * B[n,k]^T, both operands contiguous along k.
#pragma once

#include <cstdint>
#include <string>

#include "core/format.h"
#include "core/scale_layout.h"

namespace nibble {

struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0;
  constexpr bool operator==(const GemmShape&) const = default;
};

// The scale layout of A means nothing where A has no block scales, and is then row_major.
struct GemmProblem {
  GemmShape shape;
  Activation a = Activation::nvfp4;
  Format b = Format::nvfp4;
  OutType out = OutType::bf16;
  ScaleOrder a_scales = ScaleOrder::row_major, b_scales = ScaleOrder::row_major;
  int groups = 1;
  std::string source;  // empty: generated operands; else "FILE:TENSOR", B comes from a checkpoint

  bool operator==(const GemmProblem&) const = default;
};

}  // namespace nibble
