// SPDX-License-Identifier: Apache-2.0
#include "report/outcome_json.h"

#include "report/json_fields.h"

namespace nibble {
namespace {

constexpr std::size_t kMaxOutcomeBytes = std::size_t{16} << 20;
constexpr int kMaxDepth = 4;  // outcome, accuracy, first_mismatch, and one to spare

Status check_groups(const GemmProblem& problem, const char* key) {
  if (problem.groups >= 1) return {};
  return fail(ErrorKind::corrupt, "JSON: key '" + std::string(key) + "' must be at least 1");
}

}  // namespace

std::string outcome_to_json(const Outcome& outcome) { return dump(json_of(to_record(outcome))); }

Result<Outcome> outcome_from_json(std::string_view text) {
  const auto json = parse_json(text, kMaxOutcomeBytes, kMaxDepth);
  if (!json) return tl::unexpected(json.error());
  OutcomeRecord record;
  if (auto status = JsonReader().read(*json, record); !status)
    return tl::unexpected(status.error());
  if (auto status = check_groups(record.problem, "problem.groups"); !status)
    return tl::unexpected(status.error());
  return from_record(std::move(record));
}

std::string problem_to_json(const GemmProblem& problem) { return dump(json_of(problem)); }

Result<GemmProblem> problem_from_json(std::string_view text) {
  const auto json = parse_json(text, kMaxOutcomeBytes, kMaxDepth);
  if (!json) return tl::unexpected(json.error());
  GemmProblem problem;
  if (auto status = JsonReader().read(*json, problem); !status)
    return tl::unexpected(status.error());
  if (auto status = check_groups(problem, "groups"); !status) return tl::unexpected(status.error());
  return problem;
}

}  // namespace nibble
