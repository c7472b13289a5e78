// SPDX-License-Identifier: Apache-2.0
// An outcome as flat keys and texts, nested keys joined by dots ("accuracy.gain"): the columns of
// CSV and the lines of HTML.
#pragma once

#include <string>
#include <vector>

#include "core/report.h"

namespace nibble {

struct FlatField {
  std::string key, text;  // text: sanitized; empty where the value is null
};

// The same keys in the same order for every outcome. Lists are joined by ';'.
std::vector<FlatField> flat_fields(const Outcome& outcome);

}  // namespace nibble
