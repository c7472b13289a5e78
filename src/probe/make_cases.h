// SPDX-License-Identifier: Apache-2.0
// From flags to cases: pure, `nibble probe --dry-run` prints its result. docs/probing.md says what
// the defaults are.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.h"
#include "probe/case.h"

namespace nibble {

// B of a checkpoint, as far as a plan needs it.
struct WeightsInfo {
  Format format = Format::nvfp4;
  std::int64_t rows = 0, columns = 0;  // n, k
};

// Empty lists mean the defaults.
struct ProbeRequest {
  std::vector<std::string> backends;
  std::vector<Experiment> experiments;
  std::vector<GemmShape> shapes;
  std::vector<std::int64_t> weights_m;  // with weights; n and k are the tensor's
  std::vector<Activation> activations;
  std::vector<Format> formats;
  std::vector<OutType> outs;
  std::vector<ScaleOrder> a_scales, b_scales;
  std::uint64_t seed = 1;
  AccumulationClass accept = AccumulationClass::fp32;
  double limit_s = kDefaultLimitS;
  std::int64_t memory_limit_bytes = 0;
  int threads = 0;
  std::string filter;  // an ECMAScript regular expression, searched for in case_name(); empty: all
  std::string weights_file, tensor;
  std::optional<ScaleOrder> declared_scales;
  std::optional<WeightsInfo> weights;  // present exactly where weights_file is
};

// In the order of the backends, then of kinds of operands. A kind that a backend does not serve at
// all is one case, which will say so. Errors (invalid_argument): an unknown backend, a bad filter.
Result<std::vector<Case>> make_cases(const ProbeRequest& request,
                                     std::span<const Backend* const> backends, const CpuInfo& cpu);

// "128x256x256", and per dimension lists "1,16,64" and ranges "1-4096*2" (times 2 from 1 to 4096)
// or "1-9+2" (steps of 2; "1-9": of 1). Every combination. Errors name the part that is wrong.
Result<std::vector<GemmShape>> parse_shapes(std::string_view text);

// One dimension alone: "1,16,64".
Result<std::vector<std::int64_t>> parse_sizes(std::string_view text);

}  // namespace nibble
