// SPDX-License-Identifier: Apache-2.0
// The flags of `nibble probe`, and the request that they make.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/output_flags.h"
#include "probe/make_cases.h"

namespace nibble {

// Who shares a child process. `backend`: one for all cases of a backend, while it is well.
enum class IsolateMode : std::uint8_t { backend, one_case };

template <>
struct EnumNames<IsolateMode> {
  static constexpr std::array table{std::pair{IsolateMode::backend, std::string_view("backend")},
                                    std::pair{IsolateMode::one_case, std::string_view("case")}};
};

// Which accumulation is still correct: AccumulationClass without `none`.
enum class AcceptClass : std::uint8_t { exact, fp32, reduced };

template <>
struct EnumNames<AcceptClass> {
  static constexpr std::array table{std::pair{AcceptClass::exact, std::string_view("exact")},
                                    std::pair{AcceptClass::fp32, std::string_view("fp32")},
                                    std::pair{AcceptClass::reduced, std::string_view("reduced")}};
};

struct ProbeFlags {
  ProbeRequest request;  // what the parser can fill in by itself
  std::vector<std::string> shapes;
  AcceptClass accept = AcceptClass::fp32;
  std::vector<ScaleOrder> declared_scales;  // one at most
  std::int64_t memory_limit_mib = 0;
  IsolateMode isolate = IsolateMode::backend;
  bool dry_run = false;
  OutputFlags output;
};

// `flags` must outlive the parse.
void add_probe_flags(CLI::App& app, ProbeFlags& flags);

// Errors (invalid_argument) name the flag; with --weights, those of reading the tensor too.
Result<ProbeRequest> to_request(const ProbeFlags& flags);

}  // namespace nibble
