// SPDX-License-Identifier: Apache-2.0
#include "probe/guarded_buffer.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/scale_layout.h"

namespace nibble {
namespace {

constexpr std::int64_t kPageBytes = 4096;
constexpr std::int64_t kBoundary = 256;
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 50;

// No run of bytes that a kernel would write by chance, and no two neighbours that are equal.
std::byte zone_byte(std::uint64_t pattern, std::size_t index) {
  std::uint64_t mixed = (pattern + index / 8) * 0x9E3779B97F4A7C15u;
  mixed ^= mixed >> 29;
  return static_cast<std::byte>(((mixed >> (index % 8 * 5)) & 0x3F) | (index % 2 ? 0x40 : 0x80));
}

void fill_zone(std::span<std::byte> zone, std::uint64_t pattern) {
  for (std::size_t i = 0; i < zone.size(); ++i) zone[i] = zone_byte(pattern, i);
}

}  // namespace

Result<GuardedBuffer> GuardedBuffer::create(MemoryKind memory, std::int64_t bytes,
                                            std::uint8_t fill, const GuardOptions& options) {
  NIBBLE_CHECK(memory == MemoryKind::host, "every backend of this build reads host memory");
  NIBBLE_CHECK(options.misalignment >= 0 && options.misalignment < kBoundary,
               "a misalignment is below the boundary");
  if (bytes < 0 || bytes > kMaxBytes)
    return fail(ErrorKind::invalid_argument, fmt::format("a buffer of {} bytes", bytes));
  const std::int64_t start = kPageBytes + kZoneBytes + options.misalignment;
  const std::int64_t end = round_up(start + bytes + kZoneBytes, kPageBytes);
  GuardedBuffer buffer;
  buffer.map_bytes_ = static_cast<std::size_t>(end + kPageBytes);
  void* map = ::mmap(nullptr, buffer.map_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED ||
      ::mprotect(static_cast<std::byte*>(map) + kPageBytes,
                 static_cast<std::size_t>(end - kPageBytes), PROT_READ | PROT_WRITE) != 0) {
    const int error = errno;
    if (map != MAP_FAILED) ::munmap(map, buffer.map_bytes_);
    return fail(ErrorKind::io,
                fmt::format("no memory for a buffer of {} bytes: {}", bytes, std::strerror(error)));
  }
  buffer.map_ = static_cast<std::byte*>(map);
  const auto zone = [&buffer](std::int64_t begin, std::int64_t zone_end) {
    return std::span(buffer.map_ + begin, static_cast<std::size_t>(zone_end - begin));
  };
  buffer.front_ = zone(kPageBytes, start);
  buffer.bytes_ = zone(start, start + bytes);
  buffer.back_ = zone(start + bytes, end);
  buffer.pattern_ = options.pattern;
  fill_zone(buffer.front_, options.pattern);
  fill_zone(buffer.back_, options.pattern);
  if (bytes > 0) std::memset(buffer.bytes_.data(), fill, buffer.bytes_.size());
  return buffer;
}

GuardedBuffer::GuardedBuffer(GuardedBuffer&& other) noexcept { *this = std::move(other); }

GuardedBuffer& GuardedBuffer::operator=(GuardedBuffer&& other) noexcept {
  if (this == &other) return *this;
  release();
  map_ = std::exchange(other.map_, nullptr);
  map_bytes_ = std::exchange(other.map_bytes_, 0);
  front_ = std::exchange(other.front_, {});
  bytes_ = std::exchange(other.bytes_, {});
  back_ = std::exchange(other.back_, {});
  pattern_ = other.pattern_;
  return *this;
}

GuardedBuffer::~GuardedBuffer() { release(); }

void GuardedBuffer::release() {
  if (map_ != nullptr) ::munmap(map_, map_bytes_);
  map_ = nullptr;
}

std::string GuardedBuffer::damage() const {
  std::int64_t before = 0, behind = 0;
  std::size_t nearest_before = 0, nearest_behind = 0;
  for (std::size_t i = 0; i < front_.size(); ++i) {
    if (front_[i] == zone_byte(pattern_, i)) continue;
    ++before;
    nearest_before = front_.size() - i;
  }
  for (std::size_t i = back_.size(); i-- > 0;) {
    if (back_[i] == zone_byte(pattern_, i)) continue;
    ++behind;
    nearest_behind = i + 1;
  }
  if (before == 0 && behind == 0) return {};
  std::string text;
  if (before > 0)
    text = fmt::format("{} bytes before it were written, the nearest at distance {}", before,
                       nearest_before);
  if (behind > 0)
    text += fmt::format("{}{} bytes behind it were written, the nearest at distance {}",
                        text.empty() ? "" : ", ", behind, nearest_behind);
  return text;
}

}  // namespace nibble
