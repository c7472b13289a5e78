// SPDX-License-Identifier: Apache-2.0
// A sample of outputs, and what a kernel that reads its operands in a given way would have written
// there.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "reference/hypotheses.h"

namespace nibble {

// One way to read operands and finish the sum: the honest one, or a mistaken one.
struct Reading {
  std::function<double(std::int64_t row, std::int64_t column)> a,
      b;  // values, block scale included
  double alpha = 1;
  bool absolute = false;  // the output lost its sign
};

// Rows and columns of the output. Large outputs are thinned to `kSampleSide` of each.
struct Sample {
  std::vector<std::int64_t> rows, columns;
  std::int64_t k = 0;
  OutType type = OutType::bf16;
  std::vector<double> out;  // [rows, columns]
};

inline constexpr std::int64_t kSampleSide = 64;

// Spread over `count`, with the last one and `wanted` among them.
std::vector<std::int64_t> spread(std::int64_t count, std::int64_t wanted,
                                 std::int64_t side = kSampleSide);

// The outputs at rows x columns, their bits read as `read_as`.
Sample take_sample(const OutputView& output, std::int64_t k, std::vector<std::int64_t> rows,
                   std::vector<std::int64_t> columns, OutType read_as);

// What is expected of one output.
struct Predicted {
  double value = 0, magnitude = 0;  // v and S
  double slack = 0;                 // beside the bound: what flushed products may take away
  bool has_fp32_answer = true;      // else anything may come out, and nothing follows from it
};

// [rows, columns], in double: the error against the real sum is far below every bound here.
std::vector<Predicted> predict(const Reading& reading, const std::vector<std::int64_t>& rows,
                               const std::vector<std::int64_t>& columns, std::int64_t k);

// |out - v| lies within the fp32 bound; NaN meets NaN.
bool is_within_bound(OutType type, double out, const Predicted& predicted, std::int64_t k);

// Every output of the sample is within the bound, and where noise is judged, so is the noise of
// all. Takes any list of outputs, not only rows x columns.
bool fits(const Sample& sample, const std::vector<Predicted>& predicted, bool judge_noise);

// How much better than `expected` a prediction explains one output: the binary logarithm of the
// ratio of their errors, each at least what honest accumulation makes. At most 24 (an f32 output's
// worth); a zero, an inf or a NaN that comes as predicted counts 4: zeros have many causes.
double evidence_bits(OutType type, double out, const Predicted& expected,
                     const Predicted& predicted, std::int64_t k);

// A fit with less evidence may be chance. There are about 50 hypotheses; those that choose among
// `alternatives` need log2(alternatives) more.
inline constexpr double kLeastEvidenceBits = 16;

// The evidence for a prediction over the sample; nullopt where it does not fit or may be chance.
std::optional<double> explains(const Sample& sample, const std::vector<Predicted>& expected,
                               const std::vector<Predicted>& predicted, bool judge_noise,
                               double alternatives = 1);

// The same for a reading. Tries a corner of the sample first: most hypotheses fail there.
std::optional<double> explains(const Sample& sample, const std::vector<Predicted>& expected,
                               const Reading& reading, bool judge_noise, double alternatives = 1);

}  // namespace nibble
