// SPDX-License-Identifier: Apache-2.0
// Texts of strangers in messages: one line, no terminal control, no megabytes.
#pragma once

#include <string>
#include <string_view>

namespace nibble {

// What is not printable ASCII as \xNN; longer than 200 bytes is cut and says its length.
std::string shown(std::string_view text);

// Fit to name a tensor: UTF-8 without control characters, at most 1024 bytes.
bool is_plain_name(std::string_view name);

}  // namespace nibble
