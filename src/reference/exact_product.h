// SPDX-License-Identifier: Apache-2.0
// The exact product: v = alpha * sum_k a*b as a real number, rounded once to the output type
// (docs/formats.md).
#pragma once

#include <cstdint>
#include <vector>

#include "core/error.h"
#include "core/gemm_operands.h"

namespace nibble {

// Rows [row_begin, row_begin + rows) of the product; arrays are row-major [rows, columns].
struct ExactPanel {
  OutType out = OutType::bf16;
  std::int64_t row_begin = 0, rows = 0, columns = 0, k = 0;
  std::vector<std::uint32_t> rounded;  // bits of v rounded once, to nearest even, to `out`
  std::vector<double> value;           // v to nearest double; NaN or inf by IEEE rules
  std::vector<double> magnitude;  // S = |alpha| * sum_k |a*b|, exact or rounded up; NaN where v is
  std::vector<std::uint8_t>
      outside_fp32;  // 1 where no fp32 answer exists; empty when there is none in the panel
};

enum class ExactPath : std::uint8_t {
  automatic,         // integer where both operands are NVFP4, else superaccumulator
  integer,           // NVFP4 x NVFP4 only
  superaccumulator,  // any operands
};

struct ExactOptions {
  ExactPath path = ExactPath::automatic;
  int threads = 0;  // 0: all that this process may use
};

// Errors: as check(GemmInputs); a row range outside A; integer path for operands that are not NVFP4
// x NVFP4, or a K beyond its range (1.2 million).
Result<ExactPanel> exact_product(const GemmInputs& inputs, OutType out, std::int64_t row_begin,
                                 std::int64_t rows, const ExactOptions& options = {});

}  // namespace nibble
