// SPDX-License-Identifier: Apache-2.0
// Text from outside (logs, file names, library versions) made safe to show, and fitted to columns
// of a terminal. One code point counts as one column.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace nibble {

// Valid UTF-8 without control characters: a terminal shows it and obeys none of it. Escape
// sequences vanish whole; tabs and line ends become a space; other controls, the bidirectional
// overrides and bytes that are not UTF-8 become U+FFFD.
std::string sanitize(std::string_view text);

// Columns of valid UTF-8.
std::size_t columns_of(std::string_view text);

// At most `columns` columns; what is cut ends in "…".
std::string fit(std::string_view text, std::size_t columns);

// Filled up with spaces behind it.
std::string pad_right(std::string_view text, std::size_t columns);
std::string pad_left(std::string_view text, std::size_t columns);

// Lines of at most `columns` columns, broken at spaces where there is one; never empty.
std::vector<std::string> wrap(std::string_view text, std::size_t columns);

}  // namespace nibble
