// SPDX-License-Identifier: Apache-2.0
// Outcomes as JSON, both ways: a child answers its parent with one such line, and JSONL streams
// hold them.
#pragma once

#include <string>
#include <string_view>

#include "core/report.h"

namespace nibble {

// One line without a newline; keys as in docs/schema/report.schema.json.
std::string outcome_to_json(const Outcome& outcome);

// Nothing in `text` is trusted: a missing key, a wrong type, an unknown name, a number out of range
// or nesting deeper than the schema's is an Error of kind corrupt that names the key.
Result<Outcome> outcome_from_json(std::string_view text);

// GemmProblem alone, for the case line that a parent sends.
std::string problem_to_json(const GemmProblem& problem);
Result<GemmProblem> problem_from_json(std::string_view text);

}  // namespace nibble
