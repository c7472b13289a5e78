// SPDX-License-Identifier: Apache-2.0
#include "report/environment_json.h"

#include "report/json_fields.h"

namespace nibble {
namespace {

constexpr std::size_t kMaxEnvironmentBytes = std::size_t{1} << 20;
constexpr int kMaxDepth = 4;

}  // namespace

std::string environment_to_json(const Environment& environment) {
  return dump(json_of(environment));
}

Result<Environment> environment_from_json(std::string_view text) {
  const auto json = parse_json(text, kMaxEnvironmentBytes, kMaxDepth);
  if (!json) return tl::unexpected(json.error());
  Environment environment;
  if (auto status = JsonReader().read(*json, environment); !status)
    return tl::unexpected(status.error());
  return environment;
}

}  // namespace nibble
