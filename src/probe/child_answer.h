// SPDX-License-Identifier: Apache-2.0
// One case put to one child: what came back, whatever it was, as an Outcome.
#pragma once

#include <optional>
#include <string>

#include "core/report.h"
#include "probe/case.h"
#include "probe/child_process.h"

namespace nibble {

// An answer is a few KiB; a child that sends more is not answering.
inline constexpr std::size_t kLongestAnswerBytes = std::size_t{1} << 20;
inline constexpr std::size_t kLogTailBytes = std::size_t{8} << 10;

struct ChildAnswer {
  Outcome outcome;
  bool child_is_well = false;  // it answered in due form, and may be given another case
  bool stopped = false;        // stop_fd became readable: there is no outcome
};

// What is known of a case before anyone has run it.
Outcome blank_outcome(const Case& the_case);

// False where it has ended since its last answer, or sent bytes that belong to no case.
bool is_ready(const ChildProcess& child);

// Sends the case and waits for its answer, its end, the deadline or `stop_fd`. A child that is not
// well afterwards has been ended.
ChildAnswer ask_child(ChildProcess& child, const Case& the_case, const std::string& nonce,
                      double grace_s, int stop_fd);

// The first line of a child that was asked nothing, without its newline. Errors say how it failed.
Result<std::string> read_line(ChildProcess& child, double limit_s);

}  // namespace nibble
