// SPDX-License-Identifier: Apache-2.0
#include "probe/isolated_environment.h"

#include "device/environment.h"
#include "probe/child_answer.h"
#include "report/environment_json.h"

namespace nibble {
namespace {

Result<Environment> ask_child_for_environment(const std::vector<std::string>& worker,
                                              double limit_s) {
  auto child = ChildProcess::start(worker);
  if (!child) return tl::unexpected(child.error());
  const auto line = read_line(*child, limit_s);
  if (!line) return tl::unexpected(line.error());
  return environment_from_json(*line);
}

}  // namespace

Environment read_environment_isolated(const std::vector<std::string>& worker, double limit_s) {
  auto environment = ask_child_for_environment(worker, limit_s);
  if (environment) return std::move(*environment);
  Environment seen;
  seen.cpu = read_cpu();
  seen.no_gpu_reason = "not looked for";
  seen.libraries.push_back(
      {"(all)", {}, {}, "looking for libraries failed: " + environment.error().message});
  return seen;
}

}  // namespace nibble
