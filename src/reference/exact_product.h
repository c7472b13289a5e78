// SPDX-License-Identifier: Apache-2.0
// The exact product: v = alpha * sum_k a*b as a real number, rounded once to the output type
// (docs/formats.md). Nothing is rounded before: sums are held in integers.
//
// Corners. a*b follows IEEE where A holds inf or NaN (inf * 0 and inf - inf are NaN). The sign bit
// of an E4M3 scale is ignored; a NaN scale makes NaN of every output of its row (A) or column (B),
// and of nothing else. alpha multiplies the exact sum by IEEE rules: an infinite one gives inf of
// the sum's sign, and NaN where the sum is zero; NaN gives NaN. A sum that is exactly zero, k = 0
// too, gives +0; a sum that rounds to zero keeps its sign. Tensor scales of the views are not
// applied. Every NaN comes out as the positive quiet NaN without payload. The floating-point
// environment of the caller (rounding mode, flushed subnormals) has no influence.
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
  // S = |alpha| * sum_k |a*b|, exact or rounded up by less than 1e-6 of itself; NaN where v is, inf
  // where an operand or alpha makes v infinite.
  std::vector<double> magnitude;
  // 1 where no fp32 answer exists although the operands are finite; empty when there is none in the
  // panel. Decided exactly:
  //   sum|ab| or S is 2^128 or more, or
  //   (number of products with 0 < |ab| < 2^-126) * 2^-126 > 2^-24 * sum|ab|: a unit that flushes
  //   such products to zero, or rounds them, may lose more than a rounding of the sum does.
  std::vector<std::uint8_t> outside_fp32;
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

// The same bits whatever the path and the threads; only S may differ between paths, as said above.
// Errors: as check(GemmInputs); a row range outside A; a panel of more than 2^36 elements; integer
// path for operands that are not NVFP4 x NVFP4, or a K beyond its range (1.2 million).
Result<ExactPanel> exact_product(const GemmInputs& inputs, OutType out, std::int64_t row_begin,
                                 std::int64_t rows, const ExactOptions& options = {});

}  // namespace nibble
