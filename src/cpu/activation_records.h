// SPDX-License-Identifier: Apache-2.0
// Rows of A as small integers, 16 elements (a group) a record, for integer dot products with codes.
// Every element is held exactly: element = integer * unit, and what a record cannot hold goes into
// a further record of the same group.
//
// `scale` is the record's unit times what the kernels leave out: 1/2 for B's doubled codes (another
// 1/2 where A's are doubled), and for an NVFP4 B 2^8, as its scales are read as f16 without the
// difference in bias.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/gemm_operands.h"
#include "cpu/packed_weights.h"

namespace nibble {

// Kernels see codes of B as c + 12 >= 0, so that one instruction multiplies unsigned by signed
// bytes; `correction` is -12 * sum of the record's integers, modulo 2^32.
template <int kDigits>
struct Record {
  std::int8_t digits[kDigits][kGroupElements];  // most significant first, base 256, signed
  std::int32_t correction;
  float scale;
};
using CodeRecord = Record<1>;   // doubled codes
using DenseRecord = Record<3>;  // integers of at most kMaxDigits

// 127 in each of three digits. A dot product with 16 doubled codes stays below 2^31.
inline constexpr std::int32_t kMaxDigits = 0x7F7F7F;

// How a row of the product comes about.
enum class RowKind : std::uint8_t {
  records,     // by its records
  nan,         // A holds a NaN scale: every output is NaN
  not_finite,  // A holds inf or NaN elements: by IEEE rules, in double
};

struct ExtraDenseRecord {
  std::int64_t group = 0;
  DenseRecord record;
};

// groups() records; all zero where the kind is another.
RowKind make_records(const BlockTensorView& a, std::int64_t row, Format b_format,
                     std::span<CodeRecord> records);

// `extra`: further records, ascending by group; it is emptied first.
RowKind make_records(const DenseTensorView& a, std::int64_t row, Format b_format,
                     std::span<DenseRecord> records, std::vector<ExtraDenseRecord>& extra);

}  // namespace nibble
