// SPDX-License-Identifier: Apache-2.0
// An Environment as one line of JSON, both ways: a child looks at the machine, its parent believes
// only what parses.
#pragma once

#include <string>
#include <string_view>

#include "core/report.h"

namespace nibble {

std::string environment_to_json(const Environment& environment);

// Errors as outcome_from_json().
Result<Environment> environment_from_json(std::string_view text);

}  // namespace nibble
