// SPDX-License-Identifier: Apache-2.0
// A product of normal data quantized by `rn`, with tensor scales that are no powers of two, and its
// single products.
#pragma once

#include <cstdint>
#include <vector>

#include "core/gemm_operands.h"
#include "reference/comparison.h"
#include "support/accumulate.h"

namespace nibble {

class RandomProblem {
 public:
  RandomProblem(Activation a, std::int64_t m, std::int64_t n, std::int64_t k,
                std::uint64_t seed = 3);
  RandomProblem(const RandomProblem&) = delete;

  GemmInputs inputs() const;
  // The products that output (row, column) is the sum of, without alpha.
  std::vector<double> products(std::int64_t row, std::int64_t column) const;

  // What a kernel of this order writes: round(fl32(alpha * sum)).
  std::vector<std::byte> run(const accumulate::Order& order, OutType out) const;
  // The same, with the products of each output changed first.
  std::vector<std::byte> run(const accumulate::Order& order, OutType out,
                             const std::function<void(std::vector<double>&)>& change) const;
  OutputView view(const std::vector<std::byte>& output, OutType out) const;
  Accuracy judge(const std::vector<std::byte>& output, OutType out,
                 AccumulationClass accept = AccumulationClass::fp32, bool noise = true) const;

  std::int64_t m, n, k;
  float alpha, g_b;          // alpha = fl(gA * gB) brought to outputs of a few hundred
  std::vector<double> a, b;  // values without tensor scales, [m, k] and [n, k]

 private:
  BlockTensor a_blocks_, b_blocks_;
  std::vector<std::uint16_t> a_dense_;
  Activation kind_;
};

void store(std::vector<std::byte>& output, OutType out, std::int64_t index, float value);

}  // namespace nibble
