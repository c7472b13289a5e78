// SPDX-License-Identifier: Apache-2.0
// Memory that tells what was written outside it: a zone with a known pattern on either side, and
// beyond each zone a page that cannot be touched. Operands, outputs and workspaces of a probe lie
// in such buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "backends/backend.h"
#include "core/error.h"

namespace nibble {

struct GuardOptions {
  std::int64_t misalignment = 0;  // bytes past a 256-byte boundary
  std::uint64_t pattern = 1;      // other zones hold other bytes: a read of them changes results
};

// Move-only; frees its pages.
class GuardedBuffer {
 public:
  static constexpr std::int64_t kZoneBytes = 4096;  // on either side, at least

  // Filled with `fill`. Errors: a negative size, no memory.
  static Result<GuardedBuffer> create(MemoryKind memory, std::int64_t bytes, std::uint8_t fill,
                                      const GuardOptions& options = {});
  GuardedBuffer(GuardedBuffer&& other) noexcept;
  GuardedBuffer& operator=(GuardedBuffer&& other) noexcept;
  ~GuardedBuffer();

  std::span<std::byte> bytes() { return bytes_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::span<const std::uint8_t> codes() const {
    return {reinterpret_cast<const std::uint8_t*>(bytes_.data()), bytes_.size()};
  }

  // Empty where both zones hold what they held at the start; else "2 bytes behind it were written,
  // the nearest at distance 1".
  std::string damage() const;

 private:
  GuardedBuffer() = default;
  void release();

  std::byte* map_ = nullptr;
  std::size_t map_bytes_ = 0;
  std::span<std::byte> front_, bytes_, back_;
  std::uint64_t pattern_ = 0;
};

}  // namespace nibble
