// SPDX-License-Identifier: Apache-2.0
// Runs the built program as a user does, through a shell.
#pragma once

#include <string>

namespace nibble {

struct ProgramResult {
  int exit_code = -1;  // 128 + the signal where one ended it
  std::string out, err;
};

// `arguments` as typed behind "nibble"; `prefix` before it ("NO_COLOR=1"); stdout and stderr apart.
ProgramResult run_nibble(const std::string& arguments, const std::string& prefix = "");

}  // namespace nibble
