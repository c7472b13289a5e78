// SPDX-License-Identifier: Apache-2.0
// The exact product of any operands, by sums that never round. exact_product() calls it.
#pragma once

#include "reference/exact_element.h"
#include "reference/exact_product.h"

namespace nibble {

// Fills the arrays of `panel`, whose sizes and row range are set; operands have been checked.
void superaccumulator_product(const GemmInputs& inputs, int threads, ExactPanel& panel);

// One element of the product.
ExactElement superaccumulator_element(const GemmInputs& inputs, std::int64_t row,
                                      std::int64_t column, OutType out);

}  // namespace nibble
