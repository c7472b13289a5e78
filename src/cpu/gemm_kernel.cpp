// SPDX-License-Identifier: Apache-2.0
#include "cpu/gemm_kernel.h"

#include <bit>
#include <cstddef>
#include <cstring>

#include "core/small_floats.h"

// VNNI: without it Highway leaves AVX3_DL out.
#undef HWY_WANT_AVX3_DL
#define HWY_WANT_AVX3_DL
// Vectors of unknown size cannot be held in arrays.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/gemm_kernel.cpp"
#include <hwy/foreach_target.h>
// Must follow foreach_target.h.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "cpu/integer_dot-inl.h"
#include "cpu/plain_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace nibble {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

const GemmKernels* kernel_table() { return &plain_gemm_kernels(); }

#else

// Twice the value of a code, plus 12.
alignas(16) constexpr std::uint8_t kCodesPlus12[16] = {12, 13, 14, 15, 16, 18, 20, 24,
                                                       12, 11, 10, 9,  8,  6,  4,  0};

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL

// With VBMI a table of 64 bytes, the 16 four times over, spares the masking of what lies above a
// code.
HWY_INLINE V32 look_up_low_codes(V32 bytes) {
  const auto table = hn::LoadDup128(D8(), kCodesPlus12);
  return V32{_mm512_permutexvar_epi8(bytes.raw, table.raw)};
}
HWY_INLINE V32 look_up_high_codes(V32 bytes) { return look_up_low_codes(hn::ShiftRight<4>(bytes)); }

#else

HWY_INLINE V32 look_up(hn::Vec<D8> codes) {
  return hn::BitCast(D32(), hn::TableLookupBytes(hn::LoadDup128(D8(), kCodesPlus12), codes));
}
HWY_INLINE V32 look_up_low_codes(V32 bytes) {
  return look_up(hn::And(hn::BitCast(D8(), bytes), hn::Set(D8(), 0x0F)));
}
HWY_INLINE V32 look_up_high_codes(V32 bytes) {
  return look_up(hn::ShiftRight<4>(hn::BitCast(D8(), bytes)));
}

#endif

// codes[i]: those of k = 4 i .. 4 i + 3, lanes are columns. `vector` counts the vectors of a panel.
HWY_INLINE void decode_codes(const std::uint8_t* group, std::size_t vector, V32 (&codes)[4]) {
  HWY_UNROLL(2) for (std::size_t half = 0; half < 2; ++half) {
    const auto bytes = hn::BitCast(D32(), hn::Load(D8(), group + half * 64 + vector * 4 * kLanes));
    codes[2 * half] = look_up_low_codes(bytes);
    codes[2 * half + 1] = look_up_high_codes(bytes);
  }
}

// NVFP4: the bits of an E4M3 without its sign, moved to where f16 has them, are the scale * 2^-8.
// MXFP4: the byte is the exponent of a float; byte 0 is the subnormal 2^-127.
template <Format kFormat>
HWY_INLINE VF decode_scales(const std::uint8_t* bytes) {
  const hn::Rebind<std::uint8_t, D32> d8;
  const auto scales = hn::LoadU(d8, bytes);
  if constexpr (kFormat == Format::nvfp4) {
    const hn::Rebind<std::uint16_t, D32> d16;
    const hn::Rebind<hwy::float16_t, D32> d_half;
    const auto magnitude = hn::And(scales, hn::Set(d8, 0x7F));
    return hn::PromoteTo(DF(),
                         hn::BitCast(d_half, hn::ShiftLeft<7>(hn::PromoteTo(d16, magnitude))));
  } else {
    const auto exponents = hn::ShiftLeft<23>(hn::PromoteTo(D32(), scales));
    return hn::BitCast(DF(), hn::Max(exponents, hn::Set(D32(), 1 << 22)));
  }
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL

// sum of codes * integers. Each digit's dot is a chain of its own: one long chain would fill the
// schedulers.
template <int kDigits>
HWY_INLINE V32 dot_group(const Record<kDigits>& record, const V32 (&codes)[4]) {
  Dots dots[kDigits];
  HWY_UNROLL(3) for (int digit = 0; digit < kDigits; ++digit) {
    dots[digit] = digit + 1 == kDigits ? hn::Set(D32(), record.correction) : hn::Zero(D32());
  }
  HWY_UNROLL(4) for (std::size_t k = 0; k < 4; ++k) {
    HWY_UNROLL(3) for (int digit = 0; digit < kDigits; ++digit) {
      add_dots(dots[digit], codes[k], record.digits[digit] + 4 * k);
    }
  }
  V32 total = dots[0];
  HWY_UNROLL(2) for (int digit = 1; digit < kDigits; ++digit) {
    total = hn::Add(hn::ShiftLeft<8>(total), dots[digit]);
  }
  return total;
}

#else

template <int kDigits>
HWY_INLINE V32 dot_group(const Record<kDigits>& record, const V32 (&codes)[4]) {
  V32 total = hn::Zero(D32());
  HWY_UNROLL(3) for (int digit = 0; digit < kDigits; ++digit) {
    if (digit > 0) total = hn::ShiftLeft<8>(total);
    Dots dots = begin_dots(total);
    HWY_UNROLL(4) for (std::size_t k = 0; k < 4; ++k) {
      add_dots(dots, codes[k], record.digits[digit] + 4 * k);
    }
    total = end_dots(dots, total);
  }
  return hn::Add(total, hn::Set(D32(), record.correction));
}

#endif

template <int kDigits>
HWY_INLINE VF add_group(const Record<kDigits>& record, const V32 (&codes)[4], VF scales, VF sum) {
  const VF dot = hn::ConvertTo(DF(), dot_group(record, codes));
  return hn::MulAdd(hn::Mul(dot, hn::Set(DF(), record.scale)), scales, sum);
}

// Hardware prefetchers stop at pages; the next panel follows in memory.
HWY_INLINE void prefetch_ahead(const std::uint8_t* group_codes, const std::uint8_t* group_scales) {
  constexpr std::size_t kAhead = 2048;
  hwy::Prefetch(group_codes + kAhead);
  hwy::Prefetch(group_codes + kAhead + 64);
  hwy::Prefetch(group_scales + kAhead / 8);
}

template <int kDigits, Format kFormat>
HWY_INLINE void add_row_of(const Record<kDigits>* row, const PanelView& panel, float* sums) {
  constexpr std::int64_t kGroupsABlock = block_size(kFormat) / kGroupElements;
  VF sum[kVectors];
  for (std::size_t v = 0; v < kVectors; ++v) sum[v] = hn::LoadU(DF(), sums + v * kLanes);
  for (std::int64_t group = 0; group < panel.groups; ++group) {
    const std::uint8_t* group_codes = panel.codes + group * kGroupCodeBytes;
    const std::uint8_t* group_scales = panel.scales + group / kGroupsABlock * kPanelColumns;
    prefetch_ahead(group_codes, group_scales);
    HWY_UNROLL(4) for (std::size_t v = 0; v < kVectors; ++v) {
      V32 codes[4];
      decode_codes(group_codes, v, codes);
      const VF scales = decode_scales<kFormat>(group_scales + v * kLanes);
      sum[v] = add_group(row[group], codes, scales, sum[v]);
    }
  }
  for (std::size_t v = 0; v < kVectors; ++v) hn::StoreU(sum[v], DF(), sums + v * kLanes);
}

template <int kDigits>
void add_row(const Record<kDigits>* row, const PanelView& panel, float* sums) {
  panel.format == Format::nvfp4 ? add_row_of<kDigits, Format::nvfp4>(row, panel, sums)
                                : add_row_of<kDigits, Format::mxfp4>(row, panel, sums);
}

void decode(const PanelView& panel, DecodedGroup* groups) {
  const bool nvfp4 = panel.format == Format::nvfp4;
  const std::int64_t groups_a_block = block_size(panel.format) / kGroupElements;
  for (std::int64_t group = 0; group < panel.groups; ++group) {
    DecodedGroup& to = groups[group];
    const std::uint8_t* scales = panel.scales + group / groups_a_block * kPanelColumns;
    for (std::size_t v = 0; v < kVectors; ++v) {
      V32 codes[4];
      decode_codes(panel.codes + group * kGroupCodeBytes, v, codes);
      for (std::size_t k = 0; k < 4; ++k) {
        hn::Store(hn::BitCast(D8(), codes[k]), D8(), to.codes_plus_12[k][0] + v * 4 * kLanes);
      }
      const VF decoded = nvfp4 ? decode_scales<Format::nvfp4>(scales + v * kLanes)
                               : decode_scales<Format::mxfp4>(scales + v * kLanes);
      hn::Store(decoded, DF(), to.scales + v * kLanes);
    }
  }
}

HWY_INLINE V32 load_codes(const DecodedGroup& group, std::size_t k, std::size_t vector) {
  return hn::BitCast(D32(), hn::Load(D8(), group.codes_plus_12[k][0] + vector * 4 * kLanes));
}

void add_dense_group(const DenseRecord& record, const DecodedGroup& group, float* sums) {
  for (std::size_t v = 0; v < kVectors; ++v) {
    const V32 codes[4] = {load_codes(group, 0, v), load_codes(group, 1, v), load_codes(group, 2, v),
                          load_codes(group, 3, v)};
    const VF scales = hn::Load(DF(), group.scales + v * kLanes);
    const VF sum = hn::LoadU(DF(), sums + v * kLanes);
    hn::StoreU(add_group(record, codes, scales, sum), DF(), sums + v * kLanes);
  }
}

// One group of kTileRows rows and vector `vector` of each panel in `columns`.
template <int kDigits, std::size_t kWide>
HWY_INLINE void add_tile_group(const Record<kDigits>* rows,
                               const DecodedGroup* const (&columns)[kWide], std::size_t vector,
                               VF (&sum)[kTileRows][kWide]) {
  V32 total[kTileRows][kWide];
  HWY_UNROLL(4) for (std::size_t r = 0; r < kTileRows; ++r) {
    HWY_UNROLL(2) for (std::size_t w = 0; w < kWide; ++w) {
      total[r][w] = hn::Set(D32(), kDigits == 1 ? rows[r].correction : 0);
    }
  }
  HWY_UNROLL(3) for (int digit = 0; digit < kDigits; ++digit) {
    Dots dots[kTileRows][kWide];
    HWY_UNROLL(4) for (std::size_t r = 0; r < kTileRows; ++r) {
      HWY_UNROLL(2) for (std::size_t w = 0; w < kWide; ++w) {
        if (digit > 0) total[r][w] = hn::ShiftLeft<8>(total[r][w]);
        dots[r][w] = begin_dots(total[r][w]);
      }
    }
    HWY_UNROLL(4) for (std::size_t k = 0; k < 4; ++k) {
      V32 codes[kWide];
      HWY_UNROLL(2) for (std::size_t w = 0; w < kWide; ++w) {
        codes[w] = load_codes(*columns[w], k, vector);
      }
      HWY_UNROLL(4) for (std::size_t r = 0; r < kTileRows; ++r) {
        const auto four = set_four_bytes(rows[r].digits[digit] + 4 * k);
        HWY_UNROLL(2) for (std::size_t w = 0; w < kWide; ++w) {
          add_dots(dots[r][w], codes[w], four);
        }
      }
    }
    HWY_UNROLL(4) for (std::size_t r = 0; r < kTileRows; ++r) {
      HWY_UNROLL(2) for (std::size_t w = 0; w < kWide; ++w) {
        total[r][w] = end_dots(dots[r][w], total[r][w]);
      }
    }
  }
  HWY_UNROLL(4) for (std::size_t r = 0; r < kTileRows; ++r) {
    HWY_UNROLL(2) for (std::size_t w = 0; w < kWide; ++w) {
      if (kDigits > 1) {
        total[r][w] = hn::Add(total[r][w], hn::Set(D32(), rows[r].correction));
      }
      const VF term = hn::Mul(hn::ConvertTo(DF(), total[r][w]), hn::Set(DF(), rows[r].scale));
      sum[r][w] = hn::MulAdd(term, hn::Load(DF(), columns[w]->scales + vector * kLanes), sum[r][w]);
    }
  }
}

template <int kDigits, std::size_t kWide>
HWY_INLINE void add_tile_vector(const Record<kDigits>* rows,
                                const DecodedGroup* const (&panels)[kWide], std::int64_t groups,
                                std::size_t vector, float* sums) {
  VF sum[kTileRows][kWide];
  HWY_UNROLL(4) for (std::size_t r = 0; r < kTileRows; ++r) {
    HWY_UNROLL(2) for (std::size_t w = 0; w < kWide; ++w) {
      sum[r][w] = hn::LoadU(DF(), sums + r * kTileColumns + w * kPanelColumns + vector * kLanes);
    }
  }
  const DecodedGroup* columns[kWide];
  for (std::size_t w = 0; w < kWide; ++w) columns[w] = panels[w];
  for (std::int64_t group = 0; group < groups; ++group) {
    add_tile_group<kDigits, kWide>(rows + group * kTileRows, columns, vector, sum);
    HWY_UNROLL(2) for (std::size_t w = 0; w < kWide; ++w)++ columns[w];
  }
  HWY_UNROLL(4) for (std::size_t r = 0; r < kTileRows; ++r) {
    HWY_UNROLL(2) for (std::size_t w = 0; w < kWide; ++w) {
      hn::StoreU(sum[r][w], DF(), sums + r * kTileColumns + w * kPanelColumns + vector * kLanes);
    }
  }
}

// Both panels at once where there are 32 registers.
template <int kDigits>
void add_tile(const Record<kDigits>* rows, const DecodedGroup* columns, std::int64_t panel_stride,
              std::int64_t groups, float* sums) {
  for (std::size_t vector = 0; vector < kVectors; ++vector) {
#if HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3
    for (int panel = 0; panel < kTilePanels; ++panel) {
      const DecodedGroup* const one[1] = {columns + panel * panel_stride};
      add_tile_vector<kDigits, 1>(rows, one, groups, vector, sums + panel * kPanelColumns);
    }
#else
    const DecodedGroup* const both[2] = {columns, columns + panel_stride};
    add_tile_vector<kDigits, 2>(rows, both, groups, vector, sums);
#endif
  }
}

// To nearest even; NaN becomes a quiet NaN.
HWY_INLINE void store_bf16(VF values, std::byte* to) {
  const hn::Rebind<std::uint16_t, D32> d16;
  const hn::RebindToUnsigned<D32> d_bits;
  const auto bits = hn::BitCast(d_bits, values);
  const auto upper = hn::ShiftRight<16>(bits);
  const auto odd = hn::And(upper, hn::Set(d_bits, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(d_bits, 0x7FFF)), odd));
  const auto quiet = hn::Or(upper, hn::Set(d_bits, 0x40));
  const auto is_nan = hn::RebindMask(d_bits, hn::IsNaN(values));
  const auto narrow = hn::DemoteTo(d16, hn::BitCast(D32(), hn::IfThenElse(is_nan, quiet, rounded)));
  alignas(64) std::uint16_t lanes[kPanelColumns];
  hn::Store(narrow, d16, lanes);
  std::memcpy(to, lanes, 2 * kLanes);
}

HWY_INLINE void store_f16(VF values, std::byte* to) {
  alignas(64) std::uint16_t lanes[kPanelColumns];
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  const hn::Rebind<hwy::float16_t, D32> d_half;
  const hn::Rebind<std::uint16_t, D32> d16;
  hn::Store(hn::BitCast(d16, hn::DemoteTo(d_half, values)), d16, lanes);
#else
  alignas(64) float wide[kPanelColumns];
  hn::Store(values, DF(), wide);
  for (std::size_t i = 0; i < kLanes; ++i) lanes[i] = f16_encode(wide[i]);
#endif
  std::memcpy(to, lanes, 2 * kLanes);
}

bool store(const float* sums, const OutputRow& row) {
  const VF alpha = hn::Set(DF(), row.alpha);
  auto finite = hn::FirstN(DF(), kLanes);
  std::int64_t column = 0;
  for (; column + static_cast<std::int64_t>(kLanes) <= row.count; column += kLanes) {
    const VF sum = hn::LoadU(DF(), sums + column);
    finite = hn::And(finite, hn::IsFinite(sum));
    const VF scaled = hn::Mul(sum, alpha);
    std::byte* to = row.to + column * out_bytes(row.type);
    if (row.type == OutType::f32) {
      alignas(64) float lanes[kPanelColumns];
      hn::Store(scaled, DF(), lanes);
      std::memcpy(to, lanes, 4 * kLanes);
    } else if (row.type == OutType::bf16) {
      store_bf16(scaled, to);
    } else {
      store_f16(scaled, to);
    }
  }
  bool all_finite = hn::AllTrue(DF(), finite);
  for (; column < row.count; ++column) {
    const float sum = sums[column], scaled = row.alpha * sum;
    all_finite &= (std::bit_cast<std::uint32_t>(sum) & 0x7F800000) != 0x7F800000;
    std::byte* to = row.to + column * out_bytes(row.type);
    const std::uint16_t narrow =
        row.type == OutType::bf16 ? bf16_encode(scaled) : f16_encode(scaled);
    row.type == OutType::f32 ? std::memcpy(to, &scaled, 4) : std::memcpy(to, &narrow, 2);
  }
  return all_finite;
}

const GemmKernels* kernel_table() {
  static const GemmKernels table{
      add_row<1>,  add_row<3>,  add_dense_group, decode,
      add_tile<1>, add_tile<3>, store,           hwy::TargetName(HWY_TARGET)};
  return &table;
}

#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace nibble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nibble {

HWY_EXPORT(kernel_table);

const GemmKernels& gemm_kernels() { return *HWY_DYNAMIC_DISPATCH(kernel_table)(); }

std::int64_t gemm_kernel_targets() { return hwy::SupportedTargets() & HWY_TARGETS; }

}  // namespace nibble
#endif
