// SPDX-License-Identifier: Apache-2.0
// The parent's side of a probe: runs cases in child processes that may crash, hang or lie
// (docs/probing.md, Isolation).
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/report.h"
#include "probe/case.h"

namespace nibble {

struct IsolationOptions {
  bool child_per_case = false;  // else one for all cases of a backend, while it is well
  double grace_s = 0.5;         // between SIGTERM and SIGKILL
  std::vector<std::string> worker{"/proc/self/exe", "worker"};  // the command that calls run_worker
  int stop_fd = -1;                                             // readable: end now (Interrupt::fd)
  std::function<void(const Case&)> on_start;                    // before each case
  std::function<void(const Outcome&)> on_outcome;  // after each, in the order of the cases
};

struct IsolatedRun {
  std::vector<Outcome> outcomes;  // of the first cases, in their order; of all where not `stopped`
  bool stopped = false;
};

// Runs in the calling thread, one case at a time: SIGPIPE is ignored meanwhile. Every way in which
// a child can fail is a verdict of its case; a bad answer of a child that had run other cases is
// confirmed in a fresh one.
IsolatedRun run_isolated(std::span<const Case> cases, const IsolationOptions& options);

}  // namespace nibble
