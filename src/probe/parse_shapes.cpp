// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <charconv>

#include "probe/make_cases.h"

namespace nibble {
namespace {

constexpr std::int64_t kMaxSize = std::int64_t{1} << 40;
constexpr std::size_t kMaxSizes = 100000;

tl::unexpected<Error> wrong(std::string_view part, const char* why) {
  return fail(ErrorKind::invalid_argument,
              fmt::format("'{}' {}; a size is 64, a list 1,16,64 or a range 1-4096*2", part, why));
}

Result<std::int64_t> parse_size(std::string_view text, std::string_view part) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    return wrong(part, "is no size");
  if (value > kMaxSize) return wrong(part, "is too large");
  return value;
}

// FIRST-LAST, then *FACTOR or +STEP.
Result<std::vector<std::int64_t>> parse_range(std::string_view part) {
  const auto dash = part.find('-');
  const auto step_at = part.find_first_of("*+", dash + 1);
  const bool factor = step_at != std::string_view::npos && part[step_at] == '*';
  const auto first = parse_size(part.substr(0, dash), part);
  const auto last = parse_size(part.substr(dash + 1, step_at - dash - 1), part);
  const auto step = step_at == std::string_view::npos ? Result<std::int64_t>(1)
                                                      : parse_size(part.substr(step_at + 1), part);
  for (const auto* each : {&first, &last, &step}) {
    if (!*each) return tl::unexpected(each->error());
  }
  if (*first > *last) return wrong(part, "ends before it begins");
  if (*step < (factor ? 2 : 1) || (factor && *first == 0)) return wrong(part, "never ends");
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = *first; size <= *last; size = factor ? size * *step : size + *step) {
    if (sizes.size() == kMaxSizes) return wrong(part, "holds too many sizes");
    sizes.push_back(size);
    if (factor && size > kMaxSize / *step) break;
  }
  return sizes;
}

}  // namespace

Result<std::vector<std::int64_t>> parse_sizes(std::string_view text) {
  std::vector<std::int64_t> sizes;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const auto comma = std::min(text.find(',', begin), text.size());
    const auto part = text.substr(begin, comma - begin);
    begin = comma + 1;
    if (part.find('-') != std::string_view::npos) {
      const auto range = parse_range(part);
      if (!range) return range;
      sizes.insert(sizes.end(), range->begin(), range->end());
    } else {
      const auto size = parse_size(part, part);
      if (!size) return tl::unexpected(size.error());
      sizes.push_back(*size);
    }
    if (sizes.size() > kMaxSizes) return wrong(text, "holds too many sizes");
  }
  return sizes;
}

Result<std::vector<GemmShape>> parse_shapes(std::string_view text) {
  const auto first = text.find('x');
  const auto second = first == std::string_view::npos ? first : text.find('x', first + 1);
  if (second == std::string_view::npos || text.find('x', second + 1) != std::string_view::npos) {
    return fail(ErrorKind::invalid_argument,
                fmt::format("'{}' is no MxNxK; for example 128x256x256 or 1,16x4096x6144", text));
  }
  const auto m = parse_sizes(text.substr(0, first));
  const auto n = parse_sizes(text.substr(first + 1, second - first - 1));
  const auto k = parse_sizes(text.substr(second + 1));
  for (const auto* each : {&m, &n, &k}) {
    if (!*each) return tl::unexpected(each->error());
  }
  if (m->size() * n->size() > kMaxSizes || m->size() * n->size() * k->size() > kMaxSizes)
    return wrong(text, "holds too many shapes");
  std::vector<GemmShape> shapes;
  for (const std::int64_t each_m : *m) {
    for (const std::int64_t each_n : *n) {
      for (const std::int64_t each_k : *k) shapes.push_back({each_m, each_n, each_k});
    }
  }
  return shapes;
}

}  // namespace nibble
