// SPDX-License-Identifier: Apache-2.0
#include "reference/hypothesis_patterns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reference/hypothesis_sample_patterns.h"

namespace nibble {
namespace {

using Indices = std::vector<std::int64_t>;

template <class Is>
bool every_output(const OutputView& output, Is is) {
  for (std::int64_t row = 0; row < output.rows; ++row) {
    for (std::int64_t column = 0; column < output.columns; ++column) {
      if (!is(output.bits(row, column))) return false;
    }
  }
  return output.rows * output.columns > 0;
}

Detail all_zeros(const Evidence& evidence) {
  const auto type = evidence.request.output.type;
  if (!every_output(evidence.request.output,
                    [type](std::uint32_t bits) { return out_value(type, bits) == 0; }))
    return std::nullopt;
  return "";
}

Detail nan_everywhere(const Evidence& evidence) {
  const auto type = evidence.request.output.type;
  if (!every_output(evidence.request.output,
                    [type](std::uint32_t bits) { return std::isnan(out_value(type, bits)); })) {
    return std::nullopt;
  }
  const auto poison = evidence.request.poison_bits;
  if (poison != 0 && every_output(evidence.request.output,
                                  [poison](std::uint32_t bits) { return bits == poison; })) {
    return "nothing was written";
  }
  return "";
}

Detail constant(const Evidence& evidence) {
  const auto& output = evidence.request.output;
  if (output.rows * output.columns < 2) return std::nullopt;
  const auto first = output.bits(0, 0);
  if (!every_output(output, [first](std::uint32_t bits) { return bits == first; }))
    return std::nullopt;
  return fmt::format("{:g}", out_value(output.type, first));
}

// "3, 7..9": runs of indices.
std::string ranges(const Indices& indices) {
  std::string text;
  int shown = 0;
  for (std::size_t i = 0; i < indices.size() && shown < 4; ++shown) {
    std::size_t end = i;
    while (end + 1 < indices.size() && indices[end + 1] == indices[end] + 1) ++end;
    text += (text.empty() ? "" : ", ") + std::to_string(indices[i]);
    if (end > i) text += ".." + std::to_string(indices[end]);
    i = end + 1;
    if (shown == 3 && i < indices.size()) text += ", ...";
  }
  return text;
}

// Lines along one axis of which every element satisfies `is`.
template <class Is>
Indices full_lines(const OutputView& output, bool rows, Is is) {
  Indices full;
  const std::int64_t count = rows ? output.rows : output.columns,
                     length = rows ? output.columns : output.rows;
  for (std::int64_t line = 0; line < count; ++line) {
    bool all = length > 0;
    for (std::int64_t i = 0; all && i < length; ++i)
      all = is(rows ? output.bits(line, i) : output.bits(i, line));
    if (all) full.push_back(line);
  }
  return full;
}

Detail unwritten_lines(const Evidence& evidence, bool rows) {
  const auto poison = evidence.request.poison_bits;
  if (poison == 0) return std::nullopt;
  const auto full = full_lines(evidence.request.output, rows,
                               [poison](std::uint32_t bits) { return bits == poison; });
  if (full.empty()) return std::nullopt;
  return fmt::format("{} {}", rows ? "rows" : "columns", ranges(full));
}

Detail unwritten_rows(const Evidence& evidence) { return unwritten_lines(evidence, true); }
Detail unwritten_columns(const Evidence& evidence) { return unwritten_lines(evidence, false); }

Detail unwritten_elements(const Evidence& evidence) {
  const auto poison = evidence.request.poison_bits;
  if (poison == 0 || unwritten_rows(evidence) || unwritten_columns(evidence)) return std::nullopt;
  const auto& output = evidence.request.output;
  std::int64_t count = 0, first_row = -1, first_column = -1;
  for (std::int64_t row = 0; row < output.rows; ++row) {
    for (std::int64_t column = 0; column < output.columns; ++column) {
      if (output.bits(row, column) != poison) continue;
      if (count++ == 0) first_row = row, first_column = column;
    }
  }
  if (count == 0) return std::nullopt;
  return fmt::format("{} elements, first at row {} column {}", count, first_row, first_column);
}

// The last lines are zero or poison, and the outputs before them are right.
Detail last_tile_missing(const Evidence& evidence, bool rows) {
  const auto& output = evidence.request.output;
  const auto poison = evidence.request.poison_bits;
  const std::int64_t count = rows ? output.rows : output.columns;
  const auto empty = full_lines(output, rows, [&](std::uint32_t bits) {
    return (poison != 0 && bits == poison) || out_value(output.type, bits) == 0;
  });
  std::int64_t begin = count;
  for (auto line = empty.rbegin(); line != empty.rend() && *line == begin - 1; ++line) --begin;
  if (begin == count || begin == 0) return std::nullopt;
  const auto& sample = evidence.sample;
  bool missing = false;
  for (std::size_t i = 0; i < sample.out.size(); ++i) {
    const auto line =
        rows ? sample.rows[i / sample.columns.size()] : sample.columns[i % sample.columns.size()];
    const bool right = is_within_bound(sample.type, sample.out[i], evidence.expected[i], sample.k);
    if (line < begin && !right) return std::nullopt;
    missing |= line >= begin && !right;
  }
  if (!missing) return std::nullopt;
  return fmt::format("{} {}..{}", rows ? "rows" : "columns", begin, count - 1);
}

Detail last_m_tile_missing(const Evidence& evidence) { return last_tile_missing(evidence, true); }
Detail last_n_tile_missing(const Evidence& evidence) { return last_tile_missing(evidence, false); }

// Every output within `factor` * S of what is expected.
bool is_within(const Evidence& evidence, double factor) {
  const auto& sample = evidence.sample;
  bool any = false;
  for (std::size_t i = 0; i < sample.out.size(); ++i) {
    const auto& expected = evidence.expected[i];
    if (!expected.has_fp32_answer || (std::isnan(sample.out[i]) && std::isnan(expected.value)))
      continue;
    const double bound = half_ulp(sample.type, expected.value) + expected.magnitude * factor;
    if (!(std::fabs(sample.out[i] - expected.value) <= bound)) return false;
    any = true;
  }
  return any;
}

// Right but for one factor that all outputs share: no matter of precision.
bool is_a_factor(const Evidence& evidence) {
  if (!evidence.accuracy.gain) return false;
  // How far off the gain may be by itself, beside the part that is allowed to all.
  const double uncertainty = *evidence.accuracy.gain_tolerance - 1e-3;
  auto scaled = evidence.expected;
  for (auto& each : scaled) {
    each.slack += std::fabs(each.value) * uncertainty;
    each.value *= *evidence.accuracy.gain;
    each.magnitude *= std::fabs(*evidence.accuracy.gain);
  }
  return fits(evidence.sample, scaled, true);
}

bool is_reduced(const Evidence& evidence) {
  return is_within(evidence, bound_factor(AccumulationClass::reduced, evidence.sample.k)) &&
         !is_a_factor(evidence);
}

// An f32 output that is alpha times a number of eleven significant bits, everywhere.
bool holds_f16_sums(const Evidence& evidence) {
  if (evidence.sample.type != OutType::f32 || evidence.honest.alpha == 0) return false;
  for (const double out : evidence.sample.out) {
    if (out == 0 || !std::isfinite(out)) continue;
    const double sum = out / evidence.honest.alpha;
    const int shift = 10 - std::ilogb(sum);
    const double rounded = std::ldexp(std::nearbyint(std::ldexp(sum, shift)), -shift);
    if (std::fabs(rounded - sum) > std::ldexp(std::fabs(sum), -23)) return false;
  }
  return true;
}

// Each addition may lose 2^-12 of what it holds, and what it holds is no larger than S.
Detail fp16_accumulation(const Evidence& evidence) {
  const double worst = std::ldexp(static_cast<double>(evidence.sample.k) + 8, -12);
  return holds_f16_sums(evidence) && is_within(evidence, std::min(worst, 0.25)) ? Detail("")
                                                                                : std::nullopt;
}

Detail reduced_precision(const Evidence& evidence) {
  return is_reduced(evidence) && !holds_f16_sums(evidence) ? Detail("") : std::nullopt;
}

constexpr PatternHypothesis kPatterns[] = {
    {{"all_zeros",
      "Nothing was computed, or every scale was read as zero: check statuses, and the types of "
      "scalars."},
     all_zeros,
     PatternScope::settles},
    {{"nan_everywhere",
      "A NaN scale or stale memory reaches every output, or nothing was written at all."},
     nan_everywhere,
     PatternScope::settles},
    {{"constant",
      "Every output has the same value: operands or strides are not what the kernel was told."},
     constant,
     PatternScope::settles},
    {{"unwritten_rows", "Whole rows were never written: the grid does not cover m."},
     unwritten_rows,
     PatternScope::whole},
    {{"unwritten_columns", "Whole columns were never written: the grid does not cover n."},
     unwritten_columns,
     PatternScope::whole},
    {{"unwritten_elements", "Some outputs were never written: predication of a tile's edge."},
     unwritten_elements,
     PatternScope::whole},
    {{"last_m_tile_missing", "The last rows are empty: m is not rounded up to the tile."},
     last_m_tile_missing},
    {{"last_n_tile_missing", "The last columns are empty: n is not rounded up to the tile."},
     last_n_tile_missing},
    {{"output_transposed", "The output is D^T: exchange the operands or the output's order."},
     output_transposed},
    {{"output_f16_read_as_bf16", "The kernel wrote f16 into an output that is declared bf16."},
     f16_in_bf16},
    {{"output_bf16_read_as_f16", "The kernel wrote bf16 into an output that is declared f16."},
     bf16_in_f16},
    {{"rows_permuted", "Rows of the right result stand in other places."}, rows_permuted},
    {{"columns_permuted", "Columns of the right result stand in other places."}, columns_permuted},
    {{"k_tail_dropped",
      "The last elements along k are not summed: k is not rounded up to the tile."},
     k_tail_dropped},
    {{"power_of_two_off",
      "Every output is off by one power of two: an exponent bias, or codes taken as twice their "
      "value."},
     power_of_two_off},
};

constexpr PatternHypothesis kPrecision[] = {
    {{"fp16_accumulation", "Sums are held in fp16: eleven significant bits, largest 65504."},
     fp16_accumulation},
    {{"reduced_precision",
      "Right but for its precision: a short accumulator, weights rounded to 16 bits with their "
      "tensor scale, or one of many products lost."},
     reduced_precision},
};

}  // namespace

std::span<const PatternHypothesis> precision_hypotheses() { return kPrecision; }

std::span<const PatternHypothesis> pattern_hypotheses() { return kPatterns; }

}  // namespace nibble
