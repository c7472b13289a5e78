// SPDX-License-Identifier: Apache-2.0
// Every backend of this build, in the order of the report.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "backends/backend.h"

namespace nibble {

const std::vector<std::unique_ptr<Backend>>& backends();

// nullptr where there is none of that name. Finds the hidden fake backends too.
const Backend* find_backend(std::string_view name);

}  // namespace nibble
