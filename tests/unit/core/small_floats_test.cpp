// SPDX-License-Identifier: Apache-2.0
// Every code against ml_dtypes (tests/interop/make_codec_goldens.py) and against the definition.
#include "core/small_floats.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/e2m1.h"

namespace nibble {
namespace {

const nlohmann::json& golden() {
  static const auto json =
      nlohmann::json::parse(std::ifstream(NIBBLE_TEST_DATA "/core/ml_dtypes_codecs.json"));
  return json;
}

bool same(float mine, std::uint32_t golden_bits) {
  const float theirs = std::bit_cast<float>(golden_bits);
  return std::isnan(theirs) ? std::isnan(mine) : std::bit_cast<std::uint32_t>(mine) == golden_bits;
}

TEST(E2m1, EveryCodeDecodesAsMlDtypes) {
  for (int code = 0; code < 16; ++code) {
    EXPECT_TRUE(same(e2m1_value(static_cast<std::uint8_t>(code)), golden()["e2m1"][code])) << code;
    EXPECT_EQ(e2m1_doubled(static_cast<std::uint8_t>(code)),
              2 * e2m1_value(static_cast<std::uint8_t>(code)));
  }
}

TEST(E4m3, EveryCodeDecodesAsMlDtypes) {
  for (int code = 0; code < 256; ++code) {
    EXPECT_TRUE(same(e4m3_value(static_cast<std::uint8_t>(code)), golden()["e4m3"][code])) << code;
  }
}

TEST(E4m3, AScaleIgnoresTheSignBit) {
  for (int code = 0; code < 128; ++code) {
    const auto byte = static_cast<std::uint8_t>(code),
               negative = static_cast<std::uint8_t>(code | 0x80);
    EXPECT_EQ(e4m3_units(byte), e4m3_units(negative));
    if (e4m3_is_nan(byte)) {
      EXPECT_TRUE(std::isnan(e4m3_scale(negative)));
    } else {
      EXPECT_EQ(e4m3_scale(negative), e4m3_value(byte));
      EXPECT_EQ(std::ldexp(e4m3_units(byte), -9), e4m3_value(byte));
    }
  }
  EXPECT_EQ(e4m3_units(0x7E), 229376u);
  EXPECT_EQ(e4m3_scale(0x01), std::ldexp(1.0f, -9));
}

TEST(E8m0, EveryCodeDecodesAsMlDtypes) {
  for (int code = 0; code < 256; ++code) {
    EXPECT_TRUE(same(e8m0_value(static_cast<std::uint8_t>(code)), golden()["e8m0"][code])) << code;
  }
  EXPECT_EQ(e8m0_value(0), std::ldexp(1.0f, -127));
}

template <class Encode>
void expect_encodes(const char* key, Encode encode) {
  const auto& x = golden()[key]["x"];
  const auto& code = golden()[key]["code"];
  ASSERT_GT(x.size(), 20u);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto value = std::bit_cast<float>(x[i].get<std::uint32_t>());
    EXPECT_EQ(encode(value), code[i].get<unsigned>()) << key << " of " << value;
  }
}

TEST(Encode, RoundsAsMlDtypes) {
  expect_encodes("encode_e2m1", e2m1_encode);
  expect_encodes("encode_e4m3", [](float x) { return e4m3_encode(x); });
  expect_encodes("encode_bf16", bf16_encode);
  expect_encodes("encode_f16", f16_encode);
}

TEST(Encode, TiesOfE2m1GoToTheEvenCode) {
  const float ties[] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
  const float to[] = {0, 1, 1, 2, 2, 4, 4};
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(e2m1_value(e2m1_encode(ties[i])), to[i]);
    EXPECT_EQ(e2m1_value(e2m1_encode(-ties[i])), -to[i]);
  }
  EXPECT_EQ(e2m1_encode(-0.1f), 8);
  EXPECT_EQ(e2m1_encode(-0.0f), 8);
  EXPECT_EQ(e2m1_encode(0.0f), 0);
}

TEST(Encode, ClampsBeyondTheLargest) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(e2m1_encode(1e30f), 7);
  EXPECT_EQ(e2m1_encode(-inf), 15);
  EXPECT_EQ(e4m3_encode(449.0f), 0x7E);
  EXPECT_EQ(e4m3_encode(464.0f), 0x7E);
  EXPECT_EQ(e4m3_encode(inf), 0x7E);
  EXPECT_EQ(e4m3_encode(-1e9f), 0xFE);
  EXPECT_EQ(e4m3_encode(std::numeric_limits<float>::quiet_NaN()), 0x7F);
  EXPECT_EQ(bf16_encode(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(f16_encode(65519.996f), 0x7BFF);
  EXPECT_EQ(f16_encode(65520.0f), 0x7C00);
  EXPECT_TRUE(std::isnan(f16_value(f16_encode(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_TRUE(std::isnan(bf16_value(bf16_encode(std::bit_cast<float>(0x7F800001u)))));
}

TEST(Encode, ADoubleIsRoundedOnce) {
  // Just above the tie of 1 and 1.125 in double; the float nearest to it is the tie itself, which
  // goes to 1.
  const double x = 1.0625 + 1e-12;
  EXPECT_EQ(static_cast<float>(x), 1.0625f);
  EXPECT_EQ(e4m3_encode(x), 0x39);
  EXPECT_EQ(e4m3_encode(static_cast<float>(x)), 0x38);
}

TEST(Encode, EveryCodeSurvivesARoundTrip) {
  for (int code = 0; code < 256; ++code) {
    const auto byte = static_cast<std::uint8_t>(code);
    if (!e4m3_is_nan(byte)) {
      EXPECT_EQ(e4m3_encode(e4m3_value(byte)), byte);
    }
    if (code < 16) {
      EXPECT_EQ(e2m1_encode(e2m1_value(byte)), byte);
    }
  }
  for (int code = 0; code < 65536; ++code) {
    const auto bits = static_cast<std::uint16_t>(code);
    if (!std::isnan(f16_value(bits))) {
      EXPECT_EQ(f16_encode(f16_value(bits)), bits);
    }
    if (!std::isnan(bf16_value(bits))) {
      EXPECT_EQ(bf16_encode(bf16_value(bits)), bits);
    }
  }
}

TEST(Pack, TheLowNibbleIsTheEvenIndex) {
  EXPECT_EQ(pack_codes(e2m1_encode(1.0f), e2m1_encode(-0.5f)), 0x92);
  EXPECT_EQ(unpack_code(0x92, false), 2);
  EXPECT_EQ(unpack_code(0x92, true), 9);
}

}  // namespace
}  // namespace nibble
