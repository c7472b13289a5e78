// SPDX-License-Identifier: Apache-2.0
// The ways in which a fake backend misbehaves.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/enum_names.h"

namespace nibble {

enum class Misdeed : std::uint8_t {
  none,              // answers rightly
  lies,              // one output is twice what it should be
  refuses,           // supports() says no
  errs,              // launch returns an error
  segfaults,         // writes to a page that it may not
  aborts,            // calls abort()
  exits,             // calls exit(0), without an answer
  hangs,             // never returns
  ignores_sigterm,   // never returns, and blocks SIGTERM
  eats_memory,       // allocates and touches memory until it is refused
  writes_before,     // a byte before the output
  writes_after,      // a byte after the output
  writes_inputs,     // the first byte of A
  floods_output,     // megabytes to stdout and stderr
  garbage,           // a line on the result channel that is no JSON
  half_line,         // half an answer on the result channel, then exit
  long_line,         // 100 MB on the result channel
  two_lines,         // a line of its own before the worker's answer
  leaves_a_process,  // a grandchild that keeps the pipes open, then a crash
  throws,            // an exception leaves launch
  third_time,        // wrong the third time that it runs in a process
  after_other,       // wrong once another case has run in the process
};

template <>
struct EnumNames<Misdeed> {
  static constexpr std::array table{
      std::pair{Misdeed::none, std::string_view("fake-honest")},
      std::pair{Misdeed::lies, std::string_view("fake-lies")},
      std::pair{Misdeed::refuses, std::string_view("fake-refuses")},
      std::pair{Misdeed::errs, std::string_view("fake-error")},
      std::pair{Misdeed::segfaults, std::string_view("fake-segfault")},
      std::pair{Misdeed::aborts, std::string_view("fake-abort")},
      std::pair{Misdeed::exits, std::string_view("fake-exit0")},
      std::pair{Misdeed::hangs, std::string_view("fake-hang")},
      std::pair{Misdeed::ignores_sigterm, std::string_view("fake-ignores-sigterm")},
      std::pair{Misdeed::eats_memory, std::string_view("fake-eats-memory")},
      std::pair{Misdeed::writes_before, std::string_view("fake-writes-before")},
      std::pair{Misdeed::writes_after, std::string_view("fake-writes-after")},
      std::pair{Misdeed::writes_inputs, std::string_view("fake-writes-inputs")},
      std::pair{Misdeed::floods_output, std::string_view("fake-floods-output")},
      std::pair{Misdeed::garbage, std::string_view("fake-garbage")},
      std::pair{Misdeed::half_line, std::string_view("fake-half-line")},
      std::pair{Misdeed::long_line, std::string_view("fake-long-line")},
      std::pair{Misdeed::two_lines, std::string_view("fake-two-lines")},
      std::pair{Misdeed::leaves_a_process, std::string_view("fake-leaves-a-process")},
      std::pair{Misdeed::throws, std::string_view("fake-throws")},
      std::pair{Misdeed::third_time, std::string_view("fake-third-time")},
      std::pair{Misdeed::after_other, std::string_view("fake-after-other")}};
};

// What happens before the honest product is computed; returns where the misdeed lies elsewhere.
void commit_misdeed(Misdeed misdeed);

}  // namespace nibble
