// SPDX-License-Identifier: Apache-2.0
#include "reference/hypothesis_sample.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace nibble {
namespace {

constexpr std::int64_t kCornerSide = 8;

// Sums of finite operands that leave the fp32 range have no answer; inf and NaN operands have one.
bool has_fp32_answer(double size, double alpha) {
  const double largest = std::max(size, alpha * size);
  return !std::isfinite(largest) || largest < 0x1p128;
}

// Where every product may lie below 2^-126 and be flushed, as ExactPanel::outside_fp32 has it.
double flush_slack(double size, double alpha, std::int64_t k) {
  const auto products = static_cast<double>(k);
  return size < products * 0x1p-102 ? std::min(size, products * 0x1p-126) * alpha : 0;
}

// What an honest kernel strays by.
double honest_error(OutType type, const Predicted& predicted, std::int64_t k) {
  const double half = half_ulp(type, predicted.value);
  const double drift =
      std::ldexp(1 + std::sqrt(static_cast<double>((k + 15) / 16)) / 4, -24) * predicted.magnitude;
  return std::sqrt(half * half / 3 + drift * drift) + predicted.slack;
}

// [indices, k]: the operand's rows at `indices`.
std::vector<double> read_rows(const std::function<double(std::int64_t, std::int64_t)>& value,
                              const std::vector<std::int64_t>& indices, std::int64_t k) {
  std::vector<double> values;
  values.reserve(indices.size() * static_cast<std::size_t>(k));
  for (const auto index : indices) {
    for (std::int64_t column = 0; column < k; ++column) values.push_back(value(index, column));
  }
  return values;
}

Predicted dot(const double* a, const double* b, std::int64_t k, const Reading& reading) {
  constexpr int kLanes = 8;  // independent sums, so that one addition need not wait for another
  std::array<double, kLanes> sums{}, sizes{};
  std::int64_t i = 0;
  for (; i + kLanes <= k; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const double product = a[i + lane] * b[i + lane];
      sums[static_cast<std::size_t>(lane)] += product;
      sizes[static_cast<std::size_t>(lane)] += std::fabs(product);
    }
  }
  double sum = 0, size = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    sum += sums[static_cast<std::size_t>(lane)];
    size += sizes[static_cast<std::size_t>(lane)];
  }
  for (; i < k; ++i) {
    sum += a[i] * b[i];
    size += std::fabs(a[i] * b[i]);
  }
  const double value = reading.alpha * sum, alpha_size = std::fabs(reading.alpha);
  return {reading.absolute ? std::fabs(value) : value, alpha_size * size,
          flush_slack(size, alpha_size, k), has_fp32_answer(size, alpha_size)};
}

Sample corner_of(const Sample& sample) {
  // The first few, and the last: tails show there.
  const auto thin = [](const std::vector<std::int64_t>& all) {
    std::vector<std::size_t> picked;
    const std::size_t step = std::max<std::size_t>(1, all.size() / kCornerSide);
    for (std::size_t i = 0; i < all.size(); i += step) picked.push_back(i);
    if (picked.back() + 1 != all.size()) picked.push_back(all.size() - 1);
    return picked;
  };
  Sample corner{{}, {}, sample.k, sample.type, {}};
  const auto rows = thin(sample.rows), columns = thin(sample.columns);
  for (const auto row : rows) corner.rows.push_back(sample.rows[row]);
  for (const auto column : columns) corner.columns.push_back(sample.columns[column]);
  for (const auto row : rows) {
    for (const auto column : columns)
      corner.out.push_back(sample.out[row * sample.columns.size() + column]);
  }
  return corner;
}

}  // namespace

std::vector<std::int64_t> spread(std::int64_t count, std::int64_t wanted, std::int64_t side) {
  std::set<std::int64_t> picked;
  if (count <= side) {
    for (std::int64_t i = 0; i < count; ++i) picked.insert(i);
  } else {
    // An odd step in place of an even one meets every residue of the powers of two that tiles are
    // made of.
    for (std::int64_t i = 0; i < side - 2; ++i)
      picked.insert((i * count / (side - 2) + i * 5 % 7) % count);
    picked.insert(count - 1);
    if (wanted >= 0 && wanted < count) picked.insert(wanted);
  }
  return {picked.begin(), picked.end()};
}

Sample take_sample(const OutputView& output, std::int64_t k, std::vector<std::int64_t> rows,
                   std::vector<std::int64_t> columns, OutType read_as) {
  Sample sample{std::move(rows), std::move(columns), k, read_as, {}};
  sample.out.reserve(sample.rows.size() * sample.columns.size());
  for (const auto row : sample.rows) {
    for (const auto column : sample.columns) {
      sample.out.push_back(static_cast<double>(out_value(read_as, output.bits(row, column))));
    }
  }
  return sample;
}

std::vector<Predicted> predict(const Reading& reading, const std::vector<std::int64_t>& rows,
                               const std::vector<std::int64_t>& columns, std::int64_t k) {
  const auto a = read_rows(reading.a, rows, k), b = read_rows(reading.b, columns, k);
  std::vector<Predicted> predicted;
  predicted.reserve(rows.size() * columns.size());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (std::size_t column = 0; column < columns.size(); ++column) {
      predicted.push_back(dot(a.data() + row * static_cast<std::size_t>(k),
                              b.data() + column * static_cast<std::size_t>(k), k, reading));
    }
  }
  return predicted;
}

bool is_within_bound(OutType type, double out, const Predicted& predicted, std::int64_t k) {
  if (!predicted.has_fp32_answer) return true;
  if (std::isnan(predicted.value) || std::isnan(out))
    return std::isnan(predicted.value) && std::isnan(out);
  if (std::isinf(out) || std::isinf(predicted.value)) {
    // Overflow: the prediction must round to inf too, or nearly.
    const double largest = type == OutType::f16 ? 65504 : 3.3e38;
    return std::signbit(out) == std::signbit(predicted.value) &&
           std::fabs(predicted.value) >= largest;
  }
  const double bound = half_ulp(type, predicted.value) +
                       predicted.magnitude * bound_factor(AccumulationClass::fp32, k) +
                       predicted.slack;
  return std::fabs(out - predicted.value) <= bound;
}

bool fits(const Sample& sample, const std::vector<Predicted>& predicted, bool judge_noise) {
  double noise = 0;
  std::int64_t count = 0;
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    if (!is_within_bound(sample.type, sample.out[i], predicted[i], sample.k)) return false;
    if (!predicted[i].has_fp32_answer || !std::isfinite(sample.out[i]) ||
        !std::isfinite(predicted[i].value))
      continue;
    const double error =
        (sample.out[i] - predicted[i].value) / honest_error(sample.type, predicted[i], sample.k);
    noise += error * error;
    ++count;
  }
  if (!judge_noise || count == 0) return !predicted.empty();
  return std::sqrt(noise / static_cast<double>(count)) <=
         1.15 + 3 / std::sqrt(static_cast<double>(count));
}

double evidence_bits(OutType type, double out, const Predicted& expected,
                     const Predicted& predicted, std::int64_t k) {
  constexpr double kMostBits = 24, kBitsOfSpecial = 4;
  if (!expected.has_fp32_answer || !predicted.has_fp32_answer) return 0;
  const bool finite =
      std::isfinite(out) && std::isfinite(expected.value) && std::isfinite(predicted.value);
  if (!finite || predicted.magnitude == 0)
    return is_within_bound(type, out, expected, k) ? 0 : kBitsOfSpecial;
  const double least = honest_error(type, predicted, k);
  const double ratio = std::max(least, std::fabs(out - expected.value)) /
                       std::max(least, std::fabs(out - predicted.value));
  return std::clamp(std::log2(ratio), -kMostBits, kMostBits);
}

std::optional<double> explains(const Sample& sample, const std::vector<Predicted>& expected,
                               const std::vector<Predicted>& predicted, bool judge_noise,
                               double alternatives) {
  if (!fits(sample, predicted, judge_noise)) return std::nullopt;
  double bits = 0;
  for (std::size_t i = 0; i < predicted.size(); ++i)
    bits += evidence_bits(sample.type, sample.out[i], expected[i], predicted[i], sample.k);
  if (bits < kLeastEvidenceBits + std::log2(alternatives)) return std::nullopt;
  return bits;
}

std::optional<double> explains(const Sample& sample, const std::vector<Predicted>& expected,
                               const Reading& reading, bool judge_noise, double alternatives) {
  if (sample.out.empty()) return std::nullopt;
  const Sample corner = corner_of(sample);
  if (!fits(corner, predict(reading, corner.rows, corner.columns, sample.k), false))
    return std::nullopt;
  return explains(sample, expected, predict(reading, sample.rows, sample.columns, sample.k),
                  judge_noise, alternatives);
}

}  // namespace nibble
