// SPDX-License-Identifier: Apache-2.0
// What a benchmark record must say besides its numbers: which CPU, which commit.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace nibble {

// First line of what a command prints; empty where it fails.
inline std::string first_line_of(const char* command) {
  std::string line;
  if (FILE* pipe = popen(command, "r")) {
    char text[256];
    if (std::fgets(text, sizeof(text), pipe) != nullptr) line = text;
    pclose(pipe);
  }
  while (!line.empty() && line.back() == '\n') line.pop_back();
  return line;
}

inline std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

// Call before benchmark::RunSpecifiedBenchmarks. The commit is that of the directory it runs in.
inline void add_record_context() {
  benchmark::AddCustomContext("cpu_model", cpu_model());
  const std::string sha = first_line_of("git rev-parse HEAD 2>/dev/null");
  benchmark::AddCustomContext("git_sha", sha.empty() ? "unknown" : sha);
  const bool dirty = !first_line_of("git status --porcelain -uno 2>/dev/null").empty();
  benchmark::AddCustomContext("git_dirty", dirty ? "true" : "false");
}

}  // namespace nibble
