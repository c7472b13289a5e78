// SPDX-License-Identifier: Apache-2.0
#include "reference/quantize_blocks.h"

#include <fmt/format.h>

#include <cmath>

namespace nibble::quantize_detail {

Status check_source(std::span<const float> x, std::int64_t rows, std::int64_t columns,
                    Format format, const QuantizeOptions& options, std::string_view asked) {
  if (rows < 0 || columns < 0 || columns % block_size(format) != 0) {
    return fail(
        ErrorKind::invalid_argument,
        fmt::format("{}: {}x{} cannot be cut into blocks of {} along a row; pad the columns", asked,
                    rows, columns, block_size(format)));
  }
  const std::int64_t live = live_rows(rows, options);
  if (live < 0 || live > rows) {
    return fail(ErrorKind::invalid_argument,
                fmt::format("{}: live_rows {} of {} rows", asked, live, rows));
  }
  const auto size = static_cast<std::int64_t>(x.size());
  if (columns > 0 && live > size / columns) {
    return fail(ErrorKind::invalid_argument,
                fmt::format("{}: {}x{} elements wanted, {} given", asked, live, columns, size));
  }
  for (std::int64_t row = 0; row < live; ++row) {
    const std::span<const float> values =
        x.subspan(static_cast<std::size_t>(row * columns), static_cast<std::size_t>(columns));
    if (std::isfinite(largest_magnitude(values))) continue;
    std::int64_t column = 0;
    while (std::isfinite(values[static_cast<std::size_t>(column)])) ++column;
    return fail(ErrorKind::invalid_argument,
                fmt::format("{}: element at row {}, column {} is {}; no block scale can hold it",
                            asked, row, column, values[static_cast<std::size_t>(column)]));
  }
  return {};
}

}  // namespace nibble::quantize_detail
