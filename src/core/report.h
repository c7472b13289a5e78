// SPDX-License-Identifier: Apache-2.0
// The result of a run, as plain data: what was here, what was tried, what came out. Writers live in
// src/report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/experiment.h"
#include "core/gemm_problem.h"
#include "core/verdict.h"

namespace nibble {

// Raised when the way of judging or measuring changes: results of different versions are not
// comparable.
inline constexpr int kMethodVersion = 1;

struct CpuInfo {
  std::string model;
  int logical_cpus = 0;  // usable by this process
  std::int64_t last_level_cache_bytes = 0;
  std::int64_t memory_bytes = 0;
  std::vector<std::string>
      vector_extensions;        // "avx2", "avx512f", "avx512_vnni", "avx512_bf16", "neon"
  std::string dispatch_target;  // what Highway chose: "AVX3_DL"
};

struct GpuInfo {
  std::string name, uuid, compute_capability;
  std::int64_t memory_bytes = 0;
};

struct LibraryInfo {
  std::string name;
  std::optional<std::string> version, path;  // absent: not found
  std::string note;                          // when absent: how to get it
};

struct Environment {
  CpuInfo cpu;
  std::vector<GpuInfo> gpus;
  std::string no_gpu_reason;  // empty where there is one
  std::vector<LibraryInfo> libraries;
};

struct Outcome {
  std::string backend, version, kernel;
  Experiment experiment = Experiment::random;
  GemmProblem problem;
  std::uint64_t seed = 0;
  Verdict verdict = Unsupported{};
  std::optional<OutputStats> stats;
  std::string note;   // what the row must say though it judges nothing ("activations are Q8_0")
  std::string rerun;  // the command that runs this case alone
  double elapsed_s = 0;
};

struct GitState {
  std::string sha;
  bool dirty = false;
};

struct Report {
  std::vector<std::string> argv;
  GitState git;
  int method_version = kMethodVersion;
  bool partial = false;  // interrupted: what was done until then
  Environment environment;
  std::vector<Outcome> outcomes;
};

}  // namespace nibble
