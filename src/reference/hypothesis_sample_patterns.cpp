// SPDX-License-Identifier: Apache-2.0
#include "reference/hypothesis_sample_patterns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace nibble {
namespace {

using Indices = std::vector<std::int64_t>;

bool judges_noise(const Evidence& evidence) { return evidence.request.policy.judge_noise; }

Detail misread_as(const Evidence& evidence, OutType declared, OutType written) {
  if (evidence.request.output.type != declared) return std::nullopt;
  const auto sample = take_sample(evidence.request.output, evidence.sample.k, evidence.sample.rows,
                                  evidence.sample.columns, written);
  std::vector<Predicted> zeros = evidence.expected;  // what it could be instead: anything
  for (auto& zero : zeros) zero.value = 0;
  return explains(sample, zeros, evidence.expected, false) ? Detail("") : std::nullopt;
}

// One axis of the output: `line` is a row, and places lie in columns, or the reverse.
struct Axis {
  const Evidence& evidence;
  bool rows;
  Indices across;                    // places of a line that are compared
  std::vector<Predicted> predicted;  // [all lines, across]
  std::int64_t lines() const {
    return rows ? evidence.request.output.rows : evidence.request.output.columns;
  }
  double out(std::int64_t line, std::size_t i) const {
    const auto& output = evidence.request.output;
    return static_cast<double>(rows ? output.value(line, across[i])
                                    : output.value(across[i], line));
  }
  const Predicted& expected(std::int64_t line, std::size_t i) const {
    return predicted[static_cast<std::size_t>(line) * across.size() + i];
  }
};

// In parts: the values of a whole operand in double may not fit the memory.
void predict_lines(Axis& axis) {
  constexpr std::int64_t kPartElements = std::int64_t{1} << 20;
  const std::int64_t k = axis.evidence.sample.k, lines = axis.lines(),
                     step = std::max<std::int64_t>(1, kPartElements / k);
  const auto places = axis.across.size();
  axis.predicted.resize(static_cast<std::size_t>(lines) * places);
  for (std::int64_t begin = 0; begin < lines; begin += step) {
    Indices part;
    for (std::int64_t line = begin; line < std::min(lines, begin + step); ++line)
      part.push_back(line);
    const auto values = axis.rows ? predict(axis.evidence.honest, part, axis.across, k)
                                  : predict(axis.evidence.honest, axis.across, part, k);
    for (std::size_t line = 0; line < part.size(); ++line) {
      for (std::size_t i = 0; i < places; ++i) {
        axis.predicted[(static_cast<std::size_t>(begin) + line) * places + i] =
            values[axis.rows ? line * places + i : i * part.size() + line];
      }
    }
  }
}

bool holds(const Axis& axis, std::int64_t line, std::int64_t of) {
  const auto& sample = axis.evidence.sample;
  for (std::size_t i = 0; i < axis.across.size(); ++i) {
    if (!is_within_bound(sample.type, axis.out(line, i), axis.expected(of, i), sample.k))
      return false;
  }
  return true;
}

struct Source {
  std::int64_t line = 0;
  double bits = 0;  // evidence that this is the line
};

// The line of the right result that explains this one best, among all that fit.
std::optional<Source> find_source(const Axis& axis, std::int64_t line) {
  const auto& sample = axis.evidence.sample;
  std::optional<Source> best;
  for (std::int64_t of = 0; of < axis.lines(); ++of) {
    if (!holds(axis, line, of)) continue;
    double bits = 0;
    for (std::size_t i = 0; i < axis.across.size(); ++i)
      bits += evidence_bits(sample.type, axis.out(line, i), axis.expected(line, i),
                            axis.expected(of, i), sample.k);
    if (!best || bits > best->bits) best = Source{of, bits};
  }
  return best;
}

// Each sampled line of the output is some line of the right result. Short lines find a match among
// thousands by chance, so each has to be matched better than the best of that many would be.
Detail lines_permuted(const Evidence& evidence, bool rows) {
  constexpr std::int64_t kAcross = 12;
  constexpr std::int64_t kMostElements = std::int64_t{1}
                                         << 26;  // of the operand that is read whole
  constexpr double kBitsOverBestOfMany = 3;
  const auto& output = evidence.request.output;
  const std::int64_t k = evidence.sample.k;
  Axis axis{evidence, rows, spread(rows ? output.columns : output.rows, -1, kAcross), {}};
  if (axis.lines() < 2 || k == 0 || axis.lines() > kMostElements / k) return std::nullopt;
  predict_lines(axis);
  std::string detail;
  int moved = 0;
  double bits = 0;
  for (const auto line : spread(axis.lines(), -1)) {
    if (holds(axis, line, line)) continue;
    const auto source = find_source(axis, line);
    if (!source) return std::nullopt;
    bits += source->bits - std::log2(static_cast<double>(axis.lines())) - kBitsOverBestOfMany;
    if (++moved <= 3)
      detail += fmt::format("{}{} {} holds {}", moved > 1 ? ", " : "", rows ? "row" : "column",
                            line, source->line);
  }
  if (moved == 0 || bits < kLeastEvidenceBits) return std::nullopt;
  return detail + (moved > 3 ? ", ..." : "");
}

// [t]: what speaks, in a few outputs, for the last t elements along k being left out; -inf where
// one of them forbids it.
std::vector<double> tail_evidence(const Evidence& evidence) {
  constexpr std::int64_t kProbes = 6;
  const auto& sample = evidence.sample;
  const auto rows = spread(static_cast<std::int64_t>(sample.rows.size()), -1, kProbes);
  const auto columns = spread(static_cast<std::int64_t>(sample.columns.size()), -1, kProbes);
  std::vector<double> bits(static_cast<std::size_t>(sample.k), 0.0);
  for (const auto r : rows) {
    for (const auto c : columns) {
      const auto row = sample.rows[static_cast<std::size_t>(r)],
                 column = sample.columns[static_cast<std::size_t>(c)];
      const auto place =
          static_cast<std::size_t>(r) * sample.columns.size() + static_cast<std::size_t>(c);
      const auto& expected = evidence.expected[place];
      Predicted predicted{0, 0, expected.slack, expected.has_fp32_answer};
      for (std::int64_t i = 0; i < sample.k; ++i) {
        const double product =
            evidence.honest.alpha * evidence.honest.a(row, i) * evidence.honest.b(column, i);
        predicted.value += product;
        predicted.magnitude += std::fabs(product);
        auto& sum = bits[static_cast<std::size_t>(sample.k - 1 - i)];
        if (std::isinf(sum)) continue;
        sum += is_within_bound(sample.type, sample.out[place], predicted, sample.k)
                   ? evidence_bits(sample.type, sample.out[place], expected, predicted, sample.k)
                   : -std::numeric_limits<double>::infinity();
      }
    }
  }
  return bits;
}

}  // namespace

// The buffer holds D^T: [n, m] where [m, n] was wanted.
Detail output_transposed(const Evidence& evidence) {
  constexpr std::size_t kPlaces = 200;
  const auto& output = evidence.request.output;
  if (output.rows < 2 || output.columns < 2) return std::nullopt;  // D^T is D
  const std::size_t all = evidence.sample.out.size(),
                    step = std::max<std::size_t>(1, all / kPlaces) | 1;
  Sample places{{}, {}, evidence.sample.k, output.type, {}};
  std::vector<Predicted> expected, predicted;
  for (std::size_t i = 0; i < all; i += step) {
    const auto row = evidence.sample.rows[i / evidence.sample.columns.size()];
    const auto column = evidence.sample.columns[i % evidence.sample.columns.size()];
    const std::int64_t place = row * output.columns + column;
    places.out.push_back(evidence.sample.out[i]);
    expected.push_back(evidence.expected[i]);
    predicted.push_back(
        predict(evidence.honest, {place % output.rows}, {place / output.rows}, places.k).front());
    if (!is_within_bound(output.type, places.out.back(), predicted.back(), places.k))
      return std::nullopt;
  }
  return explains(places, expected, predicted, judges_noise(evidence)) ? Detail("") : std::nullopt;
}

Detail f16_in_bf16(const Evidence& evidence) {
  return misread_as(evidence, OutType::bf16, OutType::f16);
}
Detail bf16_in_f16(const Evidence& evidence) {
  return misread_as(evidence, OutType::f16, OutType::bf16);
}

Detail rows_permuted(const Evidence& evidence) { return lines_permuted(evidence, true); }
Detail columns_permuted(const Evidence& evidence) { return lines_permuted(evidence, false); }

// The sum stops early. Neighbouring numbers of elements may fit too: the best of them is named.
Detail k_tail_dropped(const Evidence& evidence) {
  constexpr int kMostTried = 3;
  const auto& sample = evidence.sample;
  auto promising = tail_evidence(evidence);
  std::int64_t best = 0;
  double best_bits = 0;
  for (int tried = 0; tried < kMostTried && sample.k > 1; ++tried) {
    const auto most = std::max_element(promising.begin() + 1, promising.end());
    if (std::isinf(*most)) break;
    *most = -std::numeric_limits<double>::infinity();
    const std::int64_t left_out = most - promising.begin();
    Reading reading = evidence.honest;
    reading.a = [a = evidence.honest.a, end = sample.k - left_out](std::int64_t row,
                                                                   std::int64_t column) {
      return column < end ? a(row, column) : 0.0;
    };
    const auto bits = explains(sample, evidence.expected, reading, judges_noise(evidence),
                               static_cast<double>(sample.k));
    if (bits && *bits > best_bits) best = left_out, best_bits = *bits;
  }
  return best > 0 ? Detail(fmt::format("{} elements", best)) : std::nullopt;
}

Detail power_of_two_off(const Evidence& evidence) {
  double out_v = 0, v_v = 0;
  for (std::size_t i = 0; i < evidence.sample.out.size(); ++i) {
    const double out = evidence.sample.out[i], v = evidence.expected[i].value;
    if (!evidence.expected[i].has_fp32_answer || !std::isfinite(out) || !std::isfinite(v)) continue;
    out_v += out * v;
    v_v += v * v;
  }
  if (!(out_v > 0) || !(v_v > 0)) return std::nullopt;
  const auto exponent = static_cast<int>(std::lround(std::log2(out_v / v_v)));
  if (exponent == 0) return std::nullopt;
  Reading reading = evidence.honest;
  reading.alpha = std::ldexp(reading.alpha, exponent);
  if (!explains(evidence.sample, evidence.expected, reading, judges_noise(evidence)))
    return std::nullopt;
  return fmt::format("2^{}", exponent);
}

}  // namespace nibble
