// SPDX-License-Identifier: Apache-2.0
// The child's side of a probe: takes cases from one descriptor, answers on another, until the
// parent closes the first.
#pragma once

namespace nibble {

// Returns the exit code. A line is "NONCE JSON"; the answer repeats the nonce.
int run_worker(int case_fd, int result_fd);

// One line instead: what is on this machine (report/environment_json.h).
int run_environment_worker(int result_fd);

}  // namespace nibble
