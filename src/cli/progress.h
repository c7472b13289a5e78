// SPDX-License-Identifier: Apache-2.0
// How far a run is, on stderr: one line that is rewritten on a terminal, a line a step elsewhere,
// nothing where quiet.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace nibble {

class Progress {
 public:
  Progress(std::int64_t total, bool quiet);
  ~Progress();  // leaves the terminal's line clean
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // One more step is done; `label` says which ("cpu nvfp4 x nvfp4 random: correct").
  void step(std::string_view label);
  // So many steps will not come after all.
  void drop(std::int64_t steps) { total_ -= steps; }

 private:
  void draw(std::string_view label);

  std::int64_t total_, done_ = 0;
  bool quiet_, terminal_;
};

}  // namespace nibble
