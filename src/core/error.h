// SPDX-License-Identifier: Apache-2.0
// How nibble says that something went wrong: Result<T> for what may happen outside, NIBBLE_CHECK
// for a bug.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "core/enum_names.h"

namespace nibble {

enum class ErrorKind {
  invalid_argument,  // the caller's request cannot be served as written (a flag, a shape, a name)
  not_found,         // a file, a tensor, a library or a symbol is not here
  unsupported,       // understood, and refused
  corrupt,           // data from a file or another process contradicts itself
  io,                // the operating system refused
  failed,            // a library or a child reported failure
};

template <>
struct EnumNames<ErrorKind> {
  static constexpr std::array table{
      std::pair{ErrorKind::invalid_argument, std::string_view("invalid_argument")},
      std::pair{ErrorKind::not_found, std::string_view("not_found")},
      std::pair{ErrorKind::unsupported, std::string_view("unsupported")},
      std::pair{ErrorKind::corrupt, std::string_view("corrupt")},
      std::pair{ErrorKind::io, std::string_view("io")},
      std::pair{ErrorKind::failed, std::string_view("failed")}};
};

// `message` says what was asked, what came back and what to do, in one line.
struct Error {
  ErrorKind kind = ErrorKind::failed;
  std::string message;
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

inline tl::unexpected<Error> fail(ErrorKind kind, std::string message) {
  return tl::unexpected<Error>(Error{kind, std::move(message)});
}

[[noreturn]] inline void check_failed(const char* file, int line, const char* condition,
                                      const char* sentence) {
  std::fprintf(stderr, "nibble: bug at %s:%d: %s (%s)\n", file, line, sentence, condition);
  std::abort();
}

}  // namespace nibble

#define NIBBLE_CHECK(condition, sentence) \
  ((condition) ? void() : ::nibble::check_failed(__FILE__, __LINE__, #condition, sentence))
