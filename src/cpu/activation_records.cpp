// SPDX-License-Identifier: Apache-2.0
#include "cpu/activation_records.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/e2m1.h"

namespace nibble {
namespace {

// -log2 of B's doubled codes, and +8 where B's E4M3 scales are read as f16.
constexpr int weight_exponent(Format b_format) { return b_format == Format::nvfp4 ? 7 : -1; }

constexpr std::array<std::array<std::int8_t, 2>, 256> kDoubledPairs = [] {
  std::array<std::array<std::int8_t, 2>, 256> pairs{};
  for (int byte = 0; byte < 256; ++byte) {
    pairs[static_cast<std::size_t>(byte)] = {
        static_cast<std::int8_t>(e2m1_doubled(static_cast<std::uint8_t>(byte & 15))),
        static_cast<std::int8_t>(e2m1_doubled(static_cast<std::uint8_t>(byte >> 4)))};
  }
  return pairs;
}();

void decode_codes(const std::uint8_t* codes, CodeRecord& record) {
  std::int32_t sum = 0;
  for (int i = 0; i < kGroupElements / 2; ++i) {
    const auto& pair = kDoubledPairs[codes[i]];
    record.digits[0][2 * i] = pair[0];
    record.digits[0][2 * i + 1] = pair[1];
    sum += pair[0] + pair[1];
  }
  record.correction = -12 * sum;
}

constexpr std::uint32_t magnitude_bits(float x) {
  return std::bit_cast<std::uint32_t>(x) & 0x7FFFFFFF;
}

// Every bf16 and f16 is a multiple of 2^-133.
constexpr int kLeastUnitExponent = -133;

// The exponent of the finest unit in which `largest` has at most kMaxDigits.
int unit_exponent(std::uint32_t largest) {
  const int exponent = static_cast<int>(largest >> 23) - 127 - 22;
  if (exponent < kLeastUnitExponent) return kLeastUnitExponent;
  // largest = 1.mantissa * 2^22 units.
  const std::uint32_t units_doubled = (largest & 0x7FFFFF) | 0x800000;
  return units_doubled > 2u * kMaxDigits ? exponent + 1 : exponent;
}

void set_digits(std::int32_t integer, int i, DenseRecord& record) {
  for (int digit = 2; digit >= 0; --digit) {
    const auto low = static_cast<std::int8_t>(integer & 0xFF);
    record.digits[digit][i] = low;
    integer = (integer - low) >> 8;
  }
}

// Moves to the record what its unit divides; true where elements other than zero are left.
bool take_record(std::array<float, kGroupElements>& elements, int weight_exponent_,
                 DenseRecord& record) {
  std::uint32_t largest = 0;
  for (const float x : elements) largest = std::max(largest, magnitude_bits(x));
  if (largest == 0) {
    record = {};
    return false;
  }
  const int exponent = unit_exponent(largest);
  const double per_unit = std::bit_cast<double>(static_cast<std::uint64_t>(1023 - exponent) << 52);
  bool left = false;
  std::int32_t sum = 0;
  for (int i = 0; i < kGroupElements; ++i) {
    const double units = static_cast<double>(elements[static_cast<std::size_t>(i)]) * per_unit;
    auto integer = static_cast<std::int32_t>(units);
    const bool whole = static_cast<double>(integer) == units;
    if (!whole) integer = 0;
    left |= !whole;
    if (whole) elements[static_cast<std::size_t>(i)] = 0;
    sum += integer;
    set_digits(integer, i, record);
  }
  record.correction =
      static_cast<std::int32_t>(static_cast<std::uint32_t>(-12) * static_cast<std::uint32_t>(sum));
  record.scale = exp2_float(exponent + weight_exponent_);
  return left;
}

std::array<float, kGroupElements> load_group(const DenseTensorView& a, std::int64_t row,
                                             std::int64_t group) {
  std::array<std::uint16_t, kGroupElements> bits;
  std::memcpy(bits.data(), a.data.data() + row * a.row_stride_bytes + group * kGroupElements * 2,
              sizeof(bits));
  std::array<float, kGroupElements> elements;
  for (std::size_t i = 0; i < kGroupElements; ++i) {
    elements[i] = a.type == DenseType::bf16 ? bf16_value(bits[i]) : f16_value(bits[i]);
  }
  return elements;
}

template <class R>
RowKind give_up(RowKind kind, std::span<R> records) {
  std::fill(records.begin(), records.end(), R{});
  return kind;
}

}  // namespace

RowKind make_records(const BlockTensorView& a, std::int64_t row, Format b_format,
                     std::span<CodeRecord> records) {
  const bool nvfp4 = a.format == Format::nvfp4;
  const std::int64_t groups_a_block = block_size(a.format) / kGroupElements;
  const float left_out = exp2_float(weight_exponent(b_format) - 1);
  for (std::size_t group = 0; group < records.size(); ++group) {
    const auto index = static_cast<std::int64_t>(group);
    const std::uint8_t byte = a.scale(row, index / groups_a_block);
    if (nvfp4 ? e4m3_is_nan(byte) : e8m0_is_nan(byte)) return give_up(RowKind::nan, records);
    const float scale = nvfp4 ? e4m3_scale(byte) : e8m0_value(byte);
    decode_codes(a.codes.data() + row * a.code_stride_bytes + index * kGroupElements / 2,
                 records[group]);
    records[group].scale = scale * left_out;
  }
  return RowKind::records;
}

RowKind make_records(const DenseTensorView& a, std::int64_t row, Format b_format,
                     std::span<DenseRecord> records, std::vector<ExtraDenseRecord>& extra) {
  extra.clear();
  for (std::size_t group = 0; group < records.size(); ++group) {
    auto elements = load_group(a, row, static_cast<std::int64_t>(group));
    for (const float x : elements) {
      if (!std::isfinite(x)) {
        extra.clear();
        return give_up(RowKind::not_finite, records);
      }
    }
    bool left = take_record(elements, weight_exponent(b_format), records[group]);
    while (left) {
      ExtraDenseRecord further{static_cast<std::int64_t>(group), {}};
      left = take_record(elements, weight_exponent(b_format), further.record);
      extra.push_back(further);
    }
  }
  return RowKind::records;
}

}  // namespace nibble
