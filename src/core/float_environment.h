// SPDX-License-Identifier: Apache-2.0
// Reference arithmetic must not depend on what a library left in the floating-point control
// register: one built with -ffast-math turns subnormals off for the thread that loads it, and new
// threads inherit that.
#pragma once

#include <cfenv>

namespace nibble {

// While it lives, this thread rounds to nearest even and keeps subnormals; then all is as before.
class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatEnvironment() { std::fesetenv(&saved_); }
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
  std::fenv_t saved_;
};

}  // namespace nibble
