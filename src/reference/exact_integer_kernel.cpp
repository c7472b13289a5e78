// SPDX-License-Identifier: Apache-2.0
#include "reference/exact_integer_kernel.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

// VNNI: without it Highway leaves AVX3_DL out.
#undef HWY_WANT_AVX3_DL
#define HWY_WANT_AVX3_DL
// Vectors of unknown size cannot be held in arrays.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reference/exact_integer_kernel.cpp"
#include <hwy/foreach_target.h>
// Must follow foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace nibble {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

void add_block(const RowBlock& row, const ColumnBlock& column, TileSums& sums) {
  for (int r = 0; r < kTileRows; ++r) {
    for (int c = 0; c < kTileColumns; ++c) {
      std::int32_t dot = row.correction[r], absolute = 0;
      for (int k = 0; k < 16; ++k) {
        dot += row.codes[k / 4][r][k % 4] * column.codes_plus_12[k / 4][c][k % 4];
        absolute += row.absolute[k / 4][r][k % 4] * column.absolute[k / 4][c][k % 4];
      }
      const double scale = static_cast<double>(row.scales[r]) * column.scales[c];
      sums.sum[r][c] += dot * static_cast<std::int64_t>(scale);
      sums.absolute[r][c] += absolute * scale;
    }
  }
}

void add_products(const RowBlock* rows, std::int64_t row_tiles, const ColumnBlock* columns,
                  std::int64_t blocks, TileSums* sums) {
  for (std::int64_t tile = 0; tile < row_tiles; ++tile) {
    for (std::int64_t block = 0; block < blocks; ++block) {
      add_block(rows[tile * blocks + block], columns[block], sums[tile]);
    }
  }
}

#else

using D32 = hn::CappedTag<std::int32_t, kTileColumns>;
using DF = hn::RebindToFloat<D32>;
using D16 = hn::Repartition<std::int16_t, D32>;
using D8 = hn::Repartition<std::uint8_t, D32>;
using DHalf = hn::Half<DF>;
using DD = hn::Rebind<double, DHalf>;
using D64 = hn::RebindToSigned<DD>;
using V32 = hn::Vec<D32>;
using VF = hn::Vec<DF>;
using VD = hn::Vec<DD>;

HWY_INLINE V32 set_four_bytes(const std::uint8_t* bytes) {
  std::int32_t four;
  std::memcpy(&four, bytes, sizeof(four));
  return hn::Set(D32(), four);
}

// Dot products of 4 bytes a 32-bit lane: start() from the correction, step() adds unsigned times
// signed bytes, finish() gives the lane's integer.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL

using Dots = V32;
HWY_INLINE Dots start(V32 correction) { return correction; }
HWY_INLINE V32 finish(Dots dots) { return dots; }
// Assembly, as Highway's target string for AVX3_DL lacks avx512vnni.
HWY_INLINE void step(Dots& dots, V32 column, const std::uint8_t* row) {
  asm("vpdpbusd %2%{1to16%}, %1, %0"
      : "+v"(dots.raw)
      : "v"(column.raw), "m"(*reinterpret_cast<const std::uint8_t(*)[4]>(row)));
}

#else

// 16-bit lanes: eight products of at most 24 * 12 and a correction of at most 12 * 192 stay below
// 2^13.
using Dots = hn::Vec<D16>;

HWY_INLINE Dots start(V32 correction) {
  return hn::BitCast(D16(), hn::And(correction, hn::Set(D32(), 0xFFFF)));
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3

// Stops the compiler from regrouping the sum, which costs it a fifth of its speed in spills.
HWY_INLINE void keep_order(Dots& dots) { asm("" : "+v"(dots.raw)); }

#if HWY_TARGET <= HWY_AVX3
HWY_INLINE Dots pairs(V32 column, V32 row) {
  return Dots{_mm512_maddubs_epi16(column.raw, row.raw)};
}
HWY_INLINE V32 finish(Dots dots) { return V32{_mm512_madd_epi16(dots.raw, _mm512_set1_epi16(1))}; }
#elif HWY_TARGET == HWY_AVX2
HWY_INLINE Dots pairs(V32 column, V32 row) {
  return Dots{_mm256_maddubs_epi16(column.raw, row.raw)};
}
HWY_INLINE V32 finish(Dots dots) { return V32{_mm256_madd_epi16(dots.raw, _mm256_set1_epi16(1))}; }
#else
HWY_INLINE Dots pairs(V32 column, V32 row) { return Dots{_mm_maddubs_epi16(column.raw, row.raw)}; }
HWY_INLINE V32 finish(Dots dots) { return V32{_mm_madd_epi16(dots.raw, _mm_set1_epi16(1))}; }
#endif

#else

HWY_INLINE void keep_order(Dots&) {}
HWY_INLINE Dots pairs(V32 column, V32 row) {
  const hn::RebindToUnsigned<D16> unsigned16;
  const auto c = hn::BitCast(unsigned16, column);
  const auto r = hn::BitCast(D16(), row);
  const Dots c_even = hn::BitCast(D16(), hn::And(c, hn::Set(unsigned16, 0xFF)));
  const Dots c_odd = hn::BitCast(D16(), hn::ShiftRight<8>(c));
  const Dots r_even = hn::ShiftRight<8>(hn::ShiftLeft<8>(r));
  return hn::Add(hn::Mul(c_even, r_even), hn::Mul(c_odd, hn::ShiftRight<8>(r)));
}
HWY_INLINE V32 finish(Dots dots) {
  const V32 both = hn::BitCast(D32(), dots);
  return hn::Add(hn::ShiftRight<16>(hn::ShiftLeft<16>(both)), hn::ShiftRight<16>(both));
}

#endif

HWY_INLINE void step(Dots& dots, V32 column, const std::uint8_t* row) {
  dots = hn::Add(dots, pairs(column, set_four_bytes(row)));
  keep_order(dots);
}

#endif

// Adds whole doubles below 2^51 to int64: adding 1.5 * 2^52 leaves them in the low mantissa bits.
HWY_INLINE void add_whole(VD whole, std::int64_t* into) {
  const VD magic = hn::Set(DD(), 6755399441055744.0);
  const auto integer =
      hn::Sub(hn::BitCast(D64(), hn::Add(whole, magic)), hn::BitCast(D64(), magic));
  hn::StoreU(hn::Add(hn::LoadU(D64(), into), integer), D64(), into);
}

HWY_INLINE void add_double(VD value, double* into) {
  hn::StoreU(hn::Add(hn::LoadU(DD(), into), value), DD(), into);
}

// Each field of a block holds 4 bytes a row or column (and k group), so one pointer that is moved
// by 4 bytes a row or column serves all fields.
constexpr std::size_t kRowCodes = offsetof(RowBlock, codes);
constexpr std::size_t kRowAbsolute = offsetof(RowBlock, absolute);
constexpr std::size_t kRowCorrection = offsetof(RowBlock, correction);
constexpr std::size_t kRowScales = offsetof(RowBlock, scales);
constexpr std::size_t kColumnCodes = offsetof(ColumnBlock, codes_plus_12);
constexpr std::size_t kColumnAbsolute = offsetof(ColumnBlock, absolute);
constexpr std::size_t kColumnScales = offsetof(ColumnBlock, scales);

HWY_INLINE V32 column_bytes(const std::uint8_t* column, std::size_t field) {
  return hn::BitCast(D32(), hn::LoadU(D8(), column + field));
}
HWY_INLINE VF set_float(const std::uint8_t* bytes) {
  return hn::BitCast(DF(), set_four_bytes(bytes));
}

// At most kPanelBlocks blocks of rows [row, row + kRows) and columns [column, column + lanes).
template <int kRows>
HWY_INLINE void add_panel(const RowBlock* rows, const ColumnBlock* columns, std::int64_t blocks,
                          int row, int column, TileSums& sums) {
  VD low[kRows], high[kRows];
  VF total[kRows];
  HWY_UNROLL(4) for (std::size_t r = 0; r < kRows; ++r) {
    low[r] = high[r] = hn::Zero(DD());
    total[r] = hn::Zero(DF());
  }
  const std::uint8_t* a = reinterpret_cast<const std::uint8_t*>(rows) + 4 * row;
  const std::uint8_t* b = reinterpret_cast<const std::uint8_t*>(columns) + 4 * column;
  for (std::int64_t block = 0; block < blocks; ++block) {
    Dots dots[kRows], absolute[kRows];
    HWY_UNROLL(4) for (std::size_t r = 0; r < kRows; ++r) {
      dots[r] = start(set_four_bytes(a + kRowCorrection + 4 * r));
      absolute[r] = start(hn::Zero(D32()));
    }
    HWY_UNROLL(4) for (std::size_t k = 0; k < 4; ++k) {
      const V32 codes = column_bytes(b, kColumnCodes + 64 * k);
      const V32 absolute_codes = column_bytes(b, kColumnAbsolute + 64 * k);
      HWY_UNROLL(4) for (std::size_t r = 0; r < kRows; ++r) {
        step(dots[r], codes, a + kRowCodes + 16 * k + 4 * r);
        step(absolute[r], absolute_codes, a + kRowAbsolute + 16 * k + 4 * r);
      }
    }
    const VF column_scales = hn::BitCast(DF(), column_bytes(b, kColumnScales));
    HWY_UNROLL(4) for (std::size_t r = 0; r < kRows; ++r) {
      const VF scales = hn::Mul(column_scales, set_float(a + kRowScales + 4 * r));
      const VF term = hn::Mul(hn::ConvertTo(DF(), finish(dots[r])), scales);
      total[r] = hn::MulAdd(hn::ConvertTo(DF(), finish(absolute[r])), scales, total[r]);
      low[r] = hn::Add(low[r], hn::PromoteTo(DD(), hn::LowerHalf(DHalf(), term)));
      high[r] = hn::Add(high[r], hn::PromoteTo(DD(), hn::UpperHalf(DHalf(), term)));
    }
    a += sizeof(RowBlock);
    b += sizeof(ColumnBlock);
  }
  const auto half = static_cast<int>(hn::Lanes(DHalf()));
  HWY_UNROLL(4) for (std::size_t r = 0; r < kRows; ++r) {
    add_whole(low[r], &sums.sum[row + r][column]);
    add_whole(high[r], &sums.sum[row + r][column + half]);
    add_double(hn::PromoteTo(DD(), hn::LowerHalf(DHalf(), total[r])),
               &sums.absolute[row + r][column]);
    add_double(hn::PromoteTo(DD(), hn::UpperHalf(DHalf(), total[r])),
               &sums.absolute[row + r][column + half]);
  }
}

// As many rows at once as the registers hold.
#if HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3
constexpr int kRowsAtOnce = 2;
#else
constexpr int kRowsAtOnce = 4;
#endif

// A panel of the columns stays in the L1 cache while all rows pass.
void add_products(const RowBlock* rows, std::int64_t row_tiles, const ColumnBlock* columns,
                  std::int64_t blocks, TileSums* sums) {
  for (std::int64_t begin = 0; begin < blocks; begin += kPanelBlocks) {
    const std::int64_t count = std::min<std::int64_t>(kPanelBlocks, blocks - begin);
    for (std::int64_t tile = 0; tile < row_tiles; ++tile) {
      for (int column = 0; column < kTileColumns; column += static_cast<int>(hn::Lanes(D32()))) {
        for (int row = 0; row < kTileRows; row += kRowsAtOnce) {
          add_panel<kRowsAtOnce>(rows + tile * blocks + begin, columns + begin, count, row, column,
                                 sums[tile]);
        }
      }
    }
  }
}

#endif  // HWY_TARGET == HWY_SCALAR

const char* target_name() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace nibble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nibble {

HWY_EXPORT(add_products);
HWY_EXPORT(target_name);

void add_tile_products(const RowBlock* rows, std::int64_t row_tiles, const ColumnBlock* columns,
                       std::int64_t blocks, TileSums* sums) {
  HWY_DYNAMIC_DISPATCH(add_products)(rows, row_tiles, columns, blocks, sums);
}

const char* integer_kernel_target() { return HWY_DYNAMIC_DISPATCH(target_name)(); }

std::int64_t integer_kernel_targets() { return hwy::SupportedTargets() & HWY_TARGETS; }

}  // namespace nibble
#endif
