// SPDX-License-Identifier: Apache-2.0
// JSON of strangers: depth and number of values limited, duplicate keys refused. For the .cpp files
// of this folder alone.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/error.h"

namespace nibble {

// Errors (corrupt) name `label`, and the key or the byte.
Result<nlohmann::json> parse_untrusted_json(std::string_view text, const std::string& label,
                                            std::size_t most_levels);

}  // namespace nibble
