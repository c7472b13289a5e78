// SPDX-License-Identifier: Apache-2.0
#include "reference/superaccumulator_operands.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/e2m1.h"
#include "core/small_floats.h"

namespace nibble {
namespace {

struct Scaled {
  std::uint64_t integer;  // odd, or 0
  int exponent;
};

// |x| of a finite double of normal range, or zero.
Scaled split(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x) & 0x7FFFFFFFFFFFFFFF;
  if (bits == 0) return {0, 0};
  const std::uint64_t significand =
      (bits & ((std::uint64_t{1} << 52) - 1)) | (std::uint64_t{1} << 52);
  const int zeros = std::countr_zero(significand);
  return {significand >> zeros, static_cast<int>(bits >> 52) - 1075 + zeros};
}

double block_element(const BlockTensorView& view, std::int64_t row, std::int64_t column) {
  const std::uint8_t byte = view.scale(row, column / block_size(view.format));
  // 6 * 2^127 is no float.
  const double scale = view.format == Format::nvfp4 ? e4m3_scale(byte) : e8m0_value(byte);
  return scale * static_cast<double>(e2m1_value(view.code(row, column)));
}

double element(const ActivationView& a, std::int64_t row, std::int64_t column) {
  return std::visit(
      [&](const auto& view) -> double {
        if constexpr (std::is_same_v<std::decay_t<decltype(view)>, BlockTensorView>) {
          return block_element(view, row, column);
        } else {
          return view.value(row, column);
        }
      },
      a);
}

// Moves the elements of a group (in `rest`, signs in `negative`) into planes, lowest bits first.
void add_planes(std::int64_t group, std::array<Scaled, kGroup>& rest,
                const std::array<bool, kGroup>& negative, RowPlanes& into) {
  while (true) {
    int least = std::numeric_limits<int>::max();
    for (const Scaled& each : rest) {
      if (each.integer != 0) least = std::min(least, each.exponent);
    }
    if (least == std::numeric_limits<int>::max()) return;
    const auto base = into.integers.size();
    into.integers.resize(base + kGroup);
    for (std::size_t i = 0; i < kGroup; ++i) {
      Scaled& each = rest[i];
      const int top = each.exponent + static_cast<int>(std::bit_width(each.integer));
      if (each.integer == 0 || top > least + kPlaneBits) continue;
      const auto integer = static_cast<std::int64_t>(each.integer << (each.exponent - least));
      into.integers[base + i] = negative[i] ? -integer : integer;
      into.top_exponent = std::max(into.top_exponent, top);
      each.integer = 0;
    }
    into.least_exponent = std::min(into.least_exponent, least);
    into.planes.push_back({group, least});
  }
}

}  // namespace

RowPlanes decode_activation_row(const ActivationView& a, std::int64_t row) {
  RowPlanes result;
  result.least_exponent = std::numeric_limits<int>::max();
  result.top_exponent = std::numeric_limits<int>::min();
  const std::int64_t columns = std::visit([](const auto& view) { return view.columns; }, a);
  for (std::int64_t group = 0; group * kGroup < columns; ++group) {
    std::array<Scaled, kGroup> scaled{};
    std::array<bool, kGroup> negative{};
    for (int i = 0; i < kGroup && group * kGroup + i < columns; ++i) {
      const std::int64_t column = group * kGroup + i;
      const double x = element(a, row, column);
      const auto at = static_cast<std::size_t>(i);
      negative[at] = std::signbit(x);
      if (std::isnan(x)) {
        result.has_nan = true;
      } else if (std::isinf(x)) {
        result.infinities.push_back({column, negative[at]});
      } else {
        scaled[at] = split(x);
      }
    }
    add_planes(group, scaled, negative, result);
  }
  if (result.planes.empty()) result.least_exponent = result.top_exponent = 0;
  return result;
}

void decode_weight_row(const BlockTensorView& b, std::int64_t row, WeightRow& into) {
  const std::int64_t groups = b.columns / kGroup;
  into.doubled_codes.resize(static_cast<std::size_t>(b.columns));
  into.significands.resize(static_cast<std::size_t>(groups));
  into.exponents.resize(static_cast<std::size_t>(groups));
  into.has_nan = false;
  const std::uint8_t* codes = b.codes.data() + row * b.code_stride_bytes;
  for (std::size_t i = 0; i < static_cast<std::size_t>(b.columns / 2); ++i) {
    into.doubled_codes[2 * i] = static_cast<std::int8_t>(e2m1_doubled(codes[i] & 15));
    into.doubled_codes[2 * i + 1] = static_cast<std::int8_t>(e2m1_doubled(codes[i] >> 4));
  }
  int least = std::numeric_limits<int>::max(), top = std::numeric_limits<int>::min();
  const int groups_a_block = block_size(b.format) / kGroup;
  for (std::int64_t group = 0; group < groups; ++group) {
    const std::uint8_t byte = b.scale(row, group / groups_a_block);
    Scaled scale{1, static_cast<int>(byte) - 127};
    if (b.format == Format::nvfp4) {
      into.has_nan |= e4m3_is_nan(byte);
      const std::uint32_t units = e4m3_units(byte);
      const int zeros = units == 0 ? 0 : std::countr_zero(units);
      scale = {units >> zeros, zeros - 9};
    } else {
      into.has_nan |= e8m0_is_nan(byte);
    }
    into.significands[static_cast<std::size_t>(group)] = static_cast<std::uint8_t>(scale.integer);
    into.exponents[static_cast<std::size_t>(group)] = static_cast<std::int16_t>(scale.exponent - 1);
    if (scale.integer == 0) continue;
    least = std::min(least, scale.exponent - 1);
    top = std::max(top, scale.exponent - 1 + static_cast<int>(std::bit_width(scale.integer)));
  }
  const bool none = top == std::numeric_limits<int>::min();
  into.least_exponent = none ? 0 : least;
  into.top_exponent = none ? 0 : top;
}

}  // namespace nibble
