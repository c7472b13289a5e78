// SPDX-License-Identifier: Apache-2.0
#include "report/text.h"

#include <cstdint>

namespace nibble {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// The code point at the front of `text` and its length; length 0 where the bytes are not UTF-8
// (overlong forms, surrogates and what lies beyond U+10FFFF are not).
struct Decoded {
  std::uint32_t point = 0;
  std::size_t length = 0;
};

Decoded decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return {};
  std::uint32_t point = lead & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    point = (point << 6) | (byte(i) & 0x3Fu);
  }
  const std::uint32_t least = length == 2 ? 0x80 : length == 3 ? 0x800 : 0x10000;
  if (point < least || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF)) return {};
  return {point, length};
}

// Bytes of the escape sequence that starts at ESC (ECMA-48: CSI, strings up to their terminator,
// the others).
std::size_t escape_length(std::string_view text) {
  if (text.size() < 2) return text.size();
  const char kind = text[1];
  std::size_t end = 2;
  if (kind == '[') {
    while (end < text.size() && text[end] >= 0x20 && text[end] < 0x40) ++end;
    return end < text.size() && text[end] >= 0x40 && text[end] < 0x7F ? end + 1 : end;
  }
  if (kind == ']' || kind == 'P' || kind == 'X' || kind == '^' || kind == '_') {
    while (end < text.size() && text[end] != '\a' && text[end] != '\x1b' && text[end] != '\n')
      ++end;
    if (end >= text.size() || text[end] == '\n') return end;
    if (text[end] == '\x1b' && end + 1 < text.size() && text[end + 1] == '\\') ++end;
    return end + 1;
  }
  end = 1;
  while (end < text.size() && text[end] >= 0x20 && text[end] < 0x30) ++end;  // "ESC ( B"
  return end < text.size() && text[end] >= 0x30 && text[end] < 0x7F ? end + 1 : end;
}

bool is_control(std::uint32_t point) {
  return point < 0x20 || (point >= 0x7F && point < 0xA0) || point == 0x2028 || point == 0x2029 ||
         (point >= 0x202A && point <= 0x202E) || (point >= 0x2066 && point <= 0x2069);
}

// Bytes of the first `columns` code points.
std::size_t bytes_of(std::string_view text, std::size_t columns) {
  std::size_t i = 0;
  while (i < text.size() && columns > 0) {
    ++i;
    while (i < text.size() && (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) ++i;
    --columns;
  }
  return i;
}

}  // namespace

std::string sanitize(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const Decoded decoded = decode(text);
    std::size_t length = decoded.length;
    if (length == 0) {
      clean += kReplacement;
      length = 1;
    } else if (decoded.point == 0x1B) {
      length = escape_length(text);
    } else if (decoded.point == '\r' && text.size() > 1 && text[1] == '\n') {
      clean += ' ';
      length = 2;
    } else if (decoded.point == '\t' || decoded.point == '\n' || decoded.point == '\r') {
      clean += ' ';
    } else if (is_control(decoded.point)) {
      clean += kReplacement;
    } else {
      clean += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return clean;
}

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  for (const char c : text) columns += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return columns;
}

std::string fit(std::string_view text, std::size_t columns) {
  if (columns_of(text) <= columns) return std::string(text);
  if (columns == 0) return "";
  return std::string(text.substr(0, bytes_of(text, columns - 1))) + "…";
}

std::string pad_right(std::string_view text, std::size_t columns) {
  const std::size_t own = columns_of(text);
  return std::string(text) + std::string(own < columns ? columns - own : 0, ' ');
}

std::string pad_left(std::string_view text, std::size_t columns) {
  const std::size_t own = columns_of(text);
  return std::string(own < columns ? columns - own : 0, ' ') + std::string(text);
}

std::vector<std::string> wrap(std::string_view text, std::size_t columns) {
  if (columns == 0) columns = 1;
  std::vector<std::string> lines;
  while (columns_of(text) > columns) {
    const std::size_t most = bytes_of(text, columns);
    std::size_t end = text.rfind(' ', most);
    if (end == std::string_view::npos || end == 0) end = most;
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  }
  if (!text.empty() || lines.empty()) lines.emplace_back(text);
  return lines;
}

}  // namespace nibble
