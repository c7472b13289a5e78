// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace nibble {

Result<MappedFile> MappedFile::open(const std::string& path) {
  const auto refuse = [&path](int number) {
    return fail(number == ENOENT ? ErrorKind::not_found : ErrorKind::io,
                fmt::format("{}: {}", path, std::strerror(number)));
  };
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return refuse(errno);
  struct stat status {};
  MappedFile file;
  file.path_ = path;
  int failed = ::fstat(descriptor, &status) == 0 ? 0 : errno;
  if (failed == 0 && !S_ISREG(status.st_mode)) failed = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
  if (failed == 0 && status.st_size > 0) {
    void* start = ::mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_PRIVATE,
                         descriptor, 0);
    if (start == MAP_FAILED) {
      failed = errno;
    } else {
      file.start_ = start;
      file.size_ = static_cast<std::size_t>(status.st_size);
    }
  }
  ::close(descriptor);
  if (failed != 0) return refuse(failed);
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      start_(std::exchange(other.start_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
  if (start_ != nullptr) ::munmap(start_, size_);
}

}  // namespace nibble
