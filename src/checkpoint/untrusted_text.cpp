// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/untrusted_text.h"

#include <fmt/format.h>

#include <cstdint>

namespace nibble {
namespace {

constexpr std::size_t kMostShownBytes = 200, kMostNameBytes = 1024;

// The code point at the front of `text` and its bytes; no bytes where it is no UTF-8 (RFC 3629).
struct CodePoint {
  std::uint32_t value = 0;
  std::size_t bytes = 0;
};
CodePoint front_of(std::string_view text) {
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const auto lead = static_cast<std::uint8_t>(text[0]);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 0;
  if (bytes == 0 || lead >= 0xF8 || bytes > text.size()) return {};
  std::uint32_t value = lead & (0x7Fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<std::uint8_t>(text[i]);
    if ((next & 0xC0) != 0x80) return {};
    value = value << 6 | (next & 0x3F);
  }
  const bool surrogate = value >= 0xD800 && value < 0xE000;
  if (value < kLeast[bytes] || value > 0x10FFFF || surrogate) return {};
  return {value, bytes};
}

}  // namespace

std::string shown(std::string_view text) {
  std::string line;
  for (const char c : text.substr(0, kMostShownBytes)) {
    if (c >= ' ' && c <= '~') {
      line += c;
    } else {
      line += fmt::format("\\x{:02x}", static_cast<std::uint8_t>(c));
    }
  }
  if (text.size() > kMostShownBytes) line += fmt::format("... ({} bytes)", text.size());
  return line;
}

bool is_plain_name(std::string_view name) {
  if (name.size() > kMostNameBytes) return false;
  while (!name.empty()) {
    const auto [value, bytes] = front_of(name);
    if (bytes == 0 || value < 0x20 || (value >= 0x7F && value < 0xA0)) return false;
    name.remove_prefix(bytes);
  }
  return true;
}

}  // namespace nibble
