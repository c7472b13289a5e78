// SPDX-License-Identifier: Apache-2.0
#include "reference/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "core/float_environment.h"

namespace nibble {
namespace {

struct TypeLimits {
  int significant_bits, least_exponent, largest_exponent;
};

constexpr TypeLimits limits_of(OutType type) {
  switch (type) {
    case OutType::bf16:
      return {8, -126, 127};
    case OutType::f16:
      return {11, -14, 15};
    case OutType::f32:
      return {24, -126, 127};
  }
  return {};
}

// From here on a value rounds to inf: the largest finite one and half a unit more.
double overflow_threshold(OutType type) {
  const auto limits = limits_of(type);
  return std::ldexp(2.0 - std::ldexp(1.0, -limits.significant_bits), limits.largest_exponent);
}

double least_normal(OutType type) { return std::ldexp(1.0, limits_of(type).least_exponent); }

// An integer that grows with the value, so that neighbours of a type are one apart and both zeros
// are 0.
std::int64_t ordered(OutType type, std::uint32_t bits) {
  const std::uint32_t sign = type == OutType::f32 ? 0x80000000u : 0x8000u;
  const auto magnitude = static_cast<std::int64_t>(bits & (sign - 1));
  return (bits & sign) ? -magnitude : magnitude;
}

int ulp_bin(std::int64_t distance) {
  constexpr std::int64_t kUpTo[] = {0, 1, 2, 4, 8, 16, 64, 1024};
  return static_cast<int>(std::lower_bound(std::begin(kUpTo), std::end(kUpTo), distance) -
                          std::begin(kUpTo));
}

// The error of an honest sum beside the final rounding, relative to S: what noise and gain expect.
double drift_factor(std::int64_t k) {
  return std::ldexp(1.0 + std::sqrt(static_cast<double>((k + 15) / 16)) / 4, -24);
}

}  // namespace

double bound_factor(AccumulationClass accumulation, std::int64_t k) {
  const double fp32 = std::ldexp(static_cast<double>(k) + 8, -23);
  switch (accumulation) {
    case AccumulationClass::exact:
      return 0;
    case AccumulationClass::fp32:
      return fp32;
    default:
      return std::max(fp32, std::ldexp(std::sqrt(static_cast<double>((k + 31) / 32)), -13) +
                                std::ldexp(1.0, -10));
  }
}

double half_ulp(OutType type, double v) {
  const auto limits = limits_of(type);
  constexpr int kBias = 1023, kMantissaBits = 52;  // of a double
  // Zero and a double's subnormals come out far below every least exponent.
  const int exponent =
      std::isfinite(v)
          ? static_cast<int>(std::bit_cast<std::uint64_t>(std::fabs(v)) >> kMantissaBits) - kBias
          : limits.least_exponent;
  const int half = std::clamp(exponent, limits.least_exponent, limits.largest_exponent) -
                   limits.significant_bits;
  return std::bit_cast<double>(static_cast<std::uint64_t>(half + kBias) << kMantissaBits);
}

struct Comparison::Element {
  OutType type;
  std::int64_t row, column;
  std::uint32_t bits, expected_bits;
  double out, v, magnitude;  // magnitude: S
  bool outside_fp32;
};

struct Comparison::RowSums {
  double noise = 0, signed_error = 0, out_v = 0, v_v = 0, gain_error = 0;
};

void Comparison::note_wrong(const Element& element, double bound) {
  ++counts_.wrong;
  auto& first = counts_.first_mismatch;
  if (first && std::pair(first->row, first->column) < std::pair(element.row, element.column))
    return;
  first = Mismatch{element.row, element.column, element.out, element.v, bound};
}

// Elements that no bound applies to: NaN on either side, inf expected, no fp32 answer. False for
// all others.
bool Comparison::add_special(const Element& element) {
  const bool nan_out = std::isnan(element.out), nan_expected = std::isnan(element.v);
  // Sums beyond the range are inf - inf in an honest kernel; products below it leave no reason for
  // NaN. The two kinds lie far on either side of 1.
  const bool may_be_nan = element.magnitude >= 1;
  if (!nan_expected && element.outside_fp32 && (!nan_out || may_be_nan)) {
    ++counts_.outside_fp32;
    return true;
  }
  if (!nan_out && !nan_expected && std::isfinite(element.v)) return false;
  ++judged_;
  const bool right = nan_expected ? nan_out : element.out == element.v;
  ++counts_.ulp_histogram[right ? 0 : kUlpBins - 1];
  if (right) return true;
  ++beyond_exact_, ++beyond_fp32_, ++beyond_reduced_;
  worst_fraction_ = std::numeric_limits<double>::infinity();
  note_wrong(element, 0);
  return true;
}

void Comparison::add_element(const Element& element, RowSums& sums) {
  ++counts_.checked;
  if (add_special(element)) return;
  ++judged_;
  const auto distance =
      std::abs(ordered(element.type, element.bits) - ordered(element.type, element.expected_bits));
  ++counts_.ulp_histogram[static_cast<std::size_t>(ulp_bin(distance))];
  if (element.out == 0 && element.expected_bits != 0 &&
      std::fabs(element.v) < least_normal(element.type)) {
    counts_.flushed += distance != 0;
    // The least normal of f16 is 2^-14: too much to lose.
    if (policy_.flushes_subnormals && element.type != OutType::f16) return;
  }

  const double half = half_ulp(element.type, element.v);
  // An inf stands for the threshold from which values round to it.
  const bool overflowed = std::isinf(element.out);
  const double error =
      overflowed ? std::copysign(overflow_threshold(element.type), element.out) - element.v
                 : element.out - element.v;
  const bool beyond_threshold = overflowed &&
                                std::signbit(element.out) == std::signbit(element.v) &&
                                std::fabs(element.v) >= overflow_threshold(element.type);
  const double size = beyond_threshold ? 0 : std::fabs(error);
  const double fp32_bound = half + element.magnitude * fp32_factor_;
  const double reduced_bound = half + element.magnitude * reduced_factor_;
  worst_fraction_ = std::max(worst_fraction_, size / fp32_bound);
  const bool not_exact = distance != 0, not_fp32 = size > fp32_bound,
             not_reduced = size > reduced_bound;
  beyond_exact_ += not_exact, beyond_fp32_ += not_fp32, beyond_reduced_ += not_reduced;
  if (policy_.accept == AccumulationClass::exact  ? not_exact
      : policy_.accept == AccumulationClass::fp32 ? not_fp32
                                                  : not_reduced) {
    note_wrong(element, policy_.accept == AccumulationClass::exact  ? 0
                        : policy_.accept == AccumulationClass::fp32 ? fp32_bound
                                                                    : reduced_bound);
  }
  if (overflowed) return;

  ++compared_;
  const double drift = drift_factor_ * element.magnitude;
  sums.noise += error * error / (half * half / 3 + drift * drift);
  sums.signed_error += (element.v < 0 ? -error : element.v > 0 ? error : 0) / half;
  sums.out_v += element.out * element.v;
  sums.v_v += element.v * element.v;
  sums.gain_error += (half * half + drift * drift) * element.v * element.v;
}

void Comparison::add(const ExactPanel& panel, const OutputView& output) {
  NIBBLE_CHECK(panel.out == output.type && panel.columns == output.columns,
               "a panel of another output");
  NIBBLE_CHECK(k_ == 0 || k_ == panel.k, "panels of one product share k");
  k_ = panel.k;
  fp32_factor_ = bound_factor(AccumulationClass::fp32, k_);
  reduced_factor_ = bound_factor(AccumulationClass::reduced, k_);
  drift_factor_ = drift_factor(k_);
  const DefaultFloatEnvironment environment;
  for (std::int64_t r = 0; r < panel.rows; ++r) {
    RowSums sums;
    const std::int64_t row = panel.row_begin + r;
    for (std::int64_t column = 0; column < panel.columns; ++column) {
      const auto i = static_cast<std::size_t>(r * panel.columns + column);
      const std::uint32_t bits = output.bits(row, column);
      add_element({panel.out, row, column, bits, panel.rounded[i],
                   static_cast<double>(out_value(panel.out, bits)), panel.value[i],
                   panel.magnitude[i], !panel.outside_fp32.empty() && panel.outside_fp32[i] != 0},
                  sums);
    }
    noise_sum_ += sums.noise;
    signed_sum_ += sums.signed_error;
    out_v_sum_ += sums.out_v;
    v_v_sum_ += sums.v_v;
    gain_error_sum_ += sums.gain_error;
  }
}

AccumulationClass Comparison::accumulation(const std::optional<double>& noise) const {
  if (beyond_exact_ == 0) return AccumulationClass::exact;
  const bool noisy =
      policy_.judge_noise && noise && *noise > 1.15 + 3 / std::sqrt(static_cast<double>(compared_));
  if (beyond_fp32_ == 0 && !noisy) return AccumulationClass::fp32;
  return beyond_reduced_ == 0 ? AccumulationClass::reduced : AccumulationClass::none;
}

void Comparison::explain(Accuracy& accuracy) const {
  if (accuracy.wrong > 0) {
    const auto& first = *accuracy.first_mismatch;
    accuracy.why_wrong =
        fmt::format("{} of {} outputs {}, first at row {} column {}: {:.9g}, expected {:.9g}",
                    accuracy.wrong, accuracy.checked,
                    policy_.accept == AccumulationClass::exact
                        ? "differ from the exact result"
                        : fmt::format("lie outside the {} bound", name(policy_.accept)),
                    first.row, first.column, first.value, first.expected);
    if (first.bound > 0) accuracy.why_wrong += fmt::format(" +- {:.3g}", first.bound);
  } else if (accuracy.gain && std::fabs(*accuracy.gain - 1) > *accuracy.gain_tolerance) {
    accuracy.why_wrong = fmt::format("gain {:.6f} is off 1 by more than {:.2g}", *accuracy.gain,
                                     *accuracy.gain_tolerance);
  } else if (accuracy.accumulation > policy_.accept) {
    accuracy.why_wrong = fmt::format("noise {:.3g} is above {:.3g}: accumulation is {}, not {}",
                                     accuracy.noise.value_or(0), accuracy.noise_limit.value_or(0),
                                     name(accuracy.accumulation), name(policy_.accept));
  }
}

Accuracy Comparison::finish() const {
  Accuracy accuracy = counts_;
  if (judged_ > 0) accuracy.worst_fraction_of_bound = worst_fraction_;
  if (compared_ > 0) {
    const auto count = static_cast<double>(compared_);
    accuracy.noise = static_cast<double>(std::sqrt(noise_sum_ / compared_));
    if (policy_.judge_noise) accuracy.noise_limit = 1.15 + 3 / std::sqrt(count);
    accuracy.signed_error = static_cast<double>(signed_sum_ / compared_);
  }
  if (v_v_sum_ > 0 && std::isfinite(v_v_sum_)) {
    accuracy.gain = static_cast<double>(out_v_sum_ / v_v_sum_);
    accuracy.gain_tolerance = static_cast<double>(1e-3 + 4 * std::sqrt(gain_error_sum_) / v_v_sum_);
  }
  accuracy.accumulation = accumulation(accuracy.noise);
  explain(accuracy);
  return accuracy;
}

Result<Accuracy> compare(const GemmInputs& inputs, const OutputView& output,
                         const ComparisonPolicy& policy, const ExactOptions& options) {
  const auto shape = shape_of(inputs);
  if (output.rows != shape.m || output.columns != shape.n) {
    return fail(ErrorKind::invalid_argument,
                fmt::format("compare: output is {}x{}, the product {}x{}", output.rows,
                            output.columns, shape.m, shape.n));
  }
  const std::int64_t row_bytes = shape.n * out_bytes(output.type);
  const auto available = static_cast<std::int64_t>(output.data.size());
  if (shape.m > 0 &&
      (row_bytes > available || output.row_stride_bytes < row_bytes ||
       (shape.m > 1 && output.row_stride_bytes > (available - row_bytes) / (shape.m - 1)))) {
    return fail(ErrorKind::invalid_argument,
                fmt::format("compare: output has {} bytes, too few for {} rows {} bytes apart",
                            available, shape.m, output.row_stride_bytes));
  }
  constexpr std::int64_t kPanelBytes = std::int64_t{64} << 20,
                         kElementBytes = 2 * sizeof(double) + sizeof(std::uint32_t) + 1;
  const std::int64_t panel_rows =
      std::max<std::int64_t>(1, kPanelBytes / (kElementBytes * std::max<std::int64_t>(1, shape.n)));
  Comparison comparison(policy);
  for (std::int64_t row = 0; row < std::max<std::int64_t>(1, shape.m); row += panel_rows) {
    const auto panel =
        exact_product(inputs, output.type, row, std::min(panel_rows, shape.m - row), options);
    if (!panel) return tl::unexpected(panel.error());
    comparison.add(*panel, output);
  }
  return comparison.finish();
}

Verdict judge(const Accuracy& accuracy) {
  if (accuracy.why_wrong.empty()) return Correct{accuracy, std::nullopt};
  return Incorrect{accuracy, accuracy.why_wrong, std::nullopt};
}

OutputStats output_stats(const OutputView& output) {
  const DefaultFloatEnvironment environment;
  OutputStats stats;
  stats.all_zeros = output.rows * output.columns > 0;
  std::int64_t finite = 0;
  double sum = 0;
  for (std::int64_t row = 0; row < output.rows; ++row) {
    for (std::int64_t column = 0; column < output.columns; ++column) {
      const double value = std::fabs(static_cast<double>(output.value(row, column)));
      stats.nan += std::isnan(value);
      stats.all_zeros &= value == 0;
      if (!std::isfinite(value)) continue;
      ++finite;
      sum += value;
      stats.abs_max = std::max(stats.abs_max, value);
    }
  }
  if (finite > 0) stats.abs_mean = sum / static_cast<double>(finite);
  return stats;
}

}  // namespace nibble
