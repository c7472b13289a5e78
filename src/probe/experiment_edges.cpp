// SPDX-License-Identifier: Apache-2.0
// edges: m, n and k round every tile size, and k that is no whole number of blocks. Each size is
// served right or refused in words before the launch; there is no third thing.
#include <fmt/format.h>

#include <array>
#include <numeric>

#include "probe/experiment_run.h"

namespace nibble {
namespace {

constexpr std::array<std::int64_t, 5> kTiles{8, 16, 32, 64, 128};
constexpr int kMixedShapes = 12;

std::vector<std::int64_t> sizes_round_tiles() {
  std::vector<std::int64_t> sizes{1, 2};
  for (const std::int64_t tile : kTiles) {
    sizes.push_back(tile - 1);
    sizes.push_back(tile);
    sizes.push_back(tile + 1);
  }
  return sizes;
}

std::int64_t k_block(const GemmProblem& problem) {
  const std::int64_t b = block_size(problem.b);
  if (problem.a == Activation::nvfp4) return std::lcm(b, std::int64_t{16});
  const bool blocks_of_32 = problem.a == Activation::mxfp4 || problem.a == Activation::q8_0;
  return blocks_of_32 ? std::lcm(b, std::int64_t{32}) : b;
}

std::vector<GemmShape> edge_shapes(const Trial& trial) {
  const GemmProblem& problem = trial.the_case.problem;
  const Contract& contract = trial.contract;
  const std::int64_t block = k_block(problem);
  const GemmShape base{round_up(5, contract.m_multiple), round_up(33, contract.n_multiple),
                       round_up(128, std::lcm(block, contract.k_multiple))};
  std::vector<GemmShape> shapes;
  const auto sizes = sizes_round_tiles();
  for (const std::int64_t size : sizes) shapes.push_back({size, base.n, base.k});
  for (const std::int64_t size : sizes) shapes.push_back({base.m, size, base.k});
  for (std::int64_t blocks = 1; blocks <= 17; ++blocks)
    shapes.push_back({base.m, base.n, blocks * block});
  for (const std::int64_t blocks : {31, 32, 33, 63, 65})
    shapes.push_back({base.m, base.n, blocks * block});
  RandomBits random(trial.the_case.seed);
  for (int i = 0; i < kMixedShapes; ++i)
    shapes.push_back({1 + random.below(70), 1 + random.below(140), block * (1 + random.below(20))});
  return shapes;
}

// A backend may refuse a shape that its supports() took: here that is an answer.
Finding try_shape(Trial& trial, const GemmShape& shape, std::int64_t& refused) {
  GemmProblem problem = trial.the_case.problem;
  problem.shape = shape;
  const auto what = fmt::format("m={} n={} k={}", shape.m, shape.n, shape.k);
  const auto kernel = is_supported(trial, problem)
                          ? trial.backend.prepare(problem)
                          : Result<std::unique_ptr<PreparedGemm>>(
                                fail(ErrorKind::unsupported, "supports() says no"));
  if (!kernel) {
    if (kernel.error().message.empty()) return incorrect(what, "prepare refused without a word");
    ++refused;
    return std::nullopt;
  }
  const auto operands = make_integer_operands(problem, trial.the_case.seed);
  return try_product(trial, what, problem, operands, sharp_policy(trial));
}

// There is no such tensor, so nobody may say that it can be multiplied.
Finding try_broken_k(Trial& trial) {
  GemmProblem problem = trial.the_case.problem;
  const std::int64_t block = k_block(problem);
  for (const std::int64_t k : {block / 2, block + block / 2, 5 * block + 2, 4 * block + 1}) {
    problem.shape.k = k;
    if (!is_supported(trial, problem)) continue;
    if (trial.backend.prepare(problem))
      return incorrect("", fmt::format("k={} is no whole number of blocks of {}, yet prepare() "
                                       "accepted it",
                                       k, block));
  }
  return std::nullopt;
}

}  // namespace

Finding try_edges(Trial& trial) {
  if (auto wrong = try_broken_k(trial)) return wrong;
  const auto shapes = edge_shapes(trial);
  std::int64_t refused = 0;
  for (const auto& shape : shapes) {
    if (auto wrong = try_shape(trial, shape, refused)) return wrong;
  }
  if (refused == static_cast<std::int64_t>(shapes.size()))
    return Unsupported{fmt::format("all {} sizes round the tiles are refused", refused)};
  return std::nullopt;
}

}  // namespace nibble
