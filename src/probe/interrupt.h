// SPDX-License-Identifier: Apache-2.0
// Ctrl-C and SIGTERM as a descriptor that becomes readable. A second one ends the process at once
// with exit code 130; its children die with it.
#pragma once

namespace nibble {

// One at a time in a process. The former handlers come back when it goes.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  int fd() const;  // readable from the first signal on
  bool requested() const;
};

}  // namespace nibble
