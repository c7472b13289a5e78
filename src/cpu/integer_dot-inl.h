// SPDX-License-Identifier: Apache-2.0
// Dot products of four unsigned by four signed bytes in each 32-bit lane, over 16 bytes along k:
// begin_dots(so far), four times add_dots, end_dots(dots, so far). For gemm_kernel.cpp only, which
// includes it once for each instruction set. The unsigned bytes are at most 24.
#if defined(NIBBLE_CPU_INTEGER_DOT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef NIBBLE_CPU_INTEGER_DOT_INL_H
#undef NIBBLE_CPU_INTEGER_DOT_INL_H
#else
#define NIBBLE_CPU_INTEGER_DOT_INL_H
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <cstring>

#include "cpu/packed_weights.h"

HWY_BEFORE_NAMESPACE();
namespace nibble {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

// Lanes are columns of a panel.
using D32 = hn::CappedTag<std::int32_t, kPanelColumns>;
using DF = hn::RebindToFloat<D32>;
using D16 = hn::Repartition<std::int16_t, D32>;
using D8 = hn::Repartition<std::uint8_t, D32>;
using V32 = hn::Vec<D32>;
using VF = hn::Vec<DF>;
inline constexpr std::size_t kLanes = hn::MaxLanes(D32());
inline constexpr std::size_t kVectors = kPanelColumns / kLanes;

HWY_INLINE V32 set_four_bytes(const std::int8_t* bytes) {
  std::int32_t four;
  std::memcpy(&four, bytes, sizeof(four));
  return hn::Set(D32(), four);
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL

using Dots = V32;
HWY_INLINE Dots begin_dots(V32 so_far) { return so_far; }
HWY_INLINE V32 end_dots(Dots dots, V32) { return dots; }

// Assembly, as Highway's target string for AVX3_DL lacks avx512vnni.
HWY_INLINE void add_dots(Dots& dots, V32 unsigned_bytes, V32 signed_bytes) {
  asm("vpdpbusd %2, %1, %0" : "+v"(dots.raw) : "v"(unsigned_bytes.raw), "v"(signed_bytes.raw));
}
HWY_INLINE void add_dots(Dots& dots, V32 unsigned_bytes, const std::int8_t* four) {
  asm("vpdpbusd %2%{1to16%}, %1, %0"
      : "+v"(dots.raw)
      : "v"(unsigned_bytes.raw), "m"(*reinterpret_cast<const std::int8_t(*)[4]>(four)));
}

#else

// Sums of 16 bits: eight products of at most 24 * 128 stay below 2^15.
using Dots = hn::Vec<D16>;
HWY_INLINE Dots begin_dots(V32) { return hn::Zero(D16()); }

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3

#if HWY_TARGET <= HWY_AVX3
HWY_INLINE Dots pairs(V32 a, V32 b) { return Dots{_mm512_maddubs_epi16(a.raw, b.raw)}; }
HWY_INLINE V32 neighbours(Dots dots) {
  return V32{_mm512_madd_epi16(dots.raw, _mm512_set1_epi16(1))};
}
#elif HWY_TARGET == HWY_AVX2
HWY_INLINE Dots pairs(V32 a, V32 b) { return Dots{_mm256_maddubs_epi16(a.raw, b.raw)}; }
HWY_INLINE V32 neighbours(Dots dots) {
  return V32{_mm256_madd_epi16(dots.raw, _mm256_set1_epi16(1))};
}
#else
HWY_INLINE Dots pairs(V32 a, V32 b) { return Dots{_mm_maddubs_epi16(a.raw, b.raw)}; }
HWY_INLINE V32 neighbours(Dots dots) { return V32{_mm_madd_epi16(dots.raw, _mm_set1_epi16(1))}; }
#endif

#else

HWY_INLINE Dots pairs(V32 a, V32 b) {
  const hn::RebindToUnsigned<D16> unsigned16;
  const auto wide_a = hn::BitCast(unsigned16, a);
  const auto wide_b = hn::BitCast(D16(), b);
  const Dots a_even = hn::BitCast(D16(), hn::And(wide_a, hn::Set(unsigned16, 0xFF)));
  const Dots a_odd = hn::BitCast(D16(), hn::ShiftRight<8>(wide_a));
  const Dots b_even = hn::ShiftRight<8>(hn::ShiftLeft<8>(wide_b));
  return hn::Add(hn::Mul(a_even, b_even), hn::Mul(a_odd, hn::ShiftRight<8>(wide_b)));
}
HWY_INLINE V32 neighbours(Dots dots) {
  const V32 both = hn::BitCast(D32(), dots);
  return hn::Add(hn::ShiftRight<16>(hn::ShiftLeft<16>(both)), hn::ShiftRight<16>(both));
}

#endif

HWY_INLINE V32 end_dots(Dots dots, V32 so_far) { return hn::Add(so_far, neighbours(dots)); }
HWY_INLINE void add_dots(Dots& dots, V32 unsigned_bytes, V32 signed_bytes) {
  dots = hn::Add(dots, pairs(unsigned_bytes, signed_bytes));
}
HWY_INLINE void add_dots(Dots& dots, V32 unsigned_bytes, const std::int8_t* four) {
  add_dots(dots, unsigned_bytes, set_four_bytes(four));
}

#endif

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace nibble
HWY_AFTER_NAMESPACE();
#endif
