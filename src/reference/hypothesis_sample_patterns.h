// SPDX-License-Identifier: Apache-2.0
// The faults of which the detail is searched for: where an output lies, what it was written as, how
// much of k or of an exponent is missing. For the table of hypothesis_patterns.cpp only.
#pragma once

#include <optional>
#include <string>

#include "reference/hypothesis_patterns.h"

namespace nibble {

// What to show beside the name ("" for nothing); nullopt: it is not this.
using Detail = std::optional<std::string>;

Detail output_transposed(const Evidence& evidence);
Detail f16_in_bf16(const Evidence& evidence);
Detail bf16_in_f16(const Evidence& evidence);
Detail rows_permuted(const Evidence& evidence);
Detail columns_permuted(const Evidence& evidence);
Detail k_tail_dropped(const Evidence& evidence);
Detail power_of_two_off(const Evidence& evidence);

}  // namespace nibble
