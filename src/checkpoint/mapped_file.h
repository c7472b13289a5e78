// SPDX-License-Identifier: Apache-2.0
// A file mapped into memory for reading.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/error.h"

namespace nibble {

class MappedFile {
 public:
  // Errors: not_found or io, naming the path. A folder, a pipe and a device are refused.
  static Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(start_), size_};
  }
  const std::string& path() const { return path_; }

 private:
  MappedFile() = default;
  std::string path_;
  void* start_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace nibble
