// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "backends/backend.h"

namespace nibble {
namespace {

template <class E>
std::string unlisted(const char* what, E value, const std::vector<E>& offered) {
  if (std::find(offered.begin(), offered.end(), value) != offered.end()) return {};
  std::vector<std::string_view> names;
  for (const E each : offered) names.push_back(name(each));
  return fmt::format("{} {} is not offered (offered: {})", what, name(value),
                     fmt::join(names, ", "));
}

std::string off_multiple(const char* what, std::int64_t value, std::int64_t multiple) {
  if (value % multiple == 0) return {};
  return fmt::format("{}={} is not a multiple of {}", what, value, multiple);
}

int activation_block(Activation a) {
  if (a == Activation::q8_0) return 32;
  if (!is_block_format(a)) return 1;
  return block_size(a == Activation::nvfp4 ? Format::nvfp4 : Format::mxfp4);
}

}  // namespace

Support check_contract(const Contract& contract, const GemmProblem& problem) {
  const bool tiles_a = is_block_format(problem.a);
  const std::string clauses[] = {
      unlisted("A", problem.a, contract.activations),
      unlisted("B", problem.b, contract.formats),
      unlisted("output", problem.out, contract.outs),
      tiles_a ? unlisted("scale layout of A", problem.a_scales, contract.a_scales) : std::string(),
      unlisted("scale layout of B", problem.b_scales, contract.b_scales),
      problem.groups == 1 ? std::string() : fmt::format("groups={} is not offered", problem.groups),
      off_multiple("m", problem.shape.m, contract.m_multiple),
      off_multiple("n", problem.shape.n, contract.n_multiple),
      off_multiple("k", problem.shape.k, contract.k_multiple),
      off_multiple("k", problem.shape.k, block_size(problem.b)),
      off_multiple("k", problem.shape.k, activation_block(problem.a)),
  };
  for (const auto& clause : clauses) {
    if (!clause.empty()) return Unsupported{clause};
  }
  return Supported{};
}

}  // namespace nibble
