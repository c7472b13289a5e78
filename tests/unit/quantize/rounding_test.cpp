// SPDX-License-Identifier: Apache-2.0
// Every rounding tie of codes and block scales, zeros of both signs, saturation. Expected values
// are written out from docs/formats.md.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/e2m1.h"
#include "core/small_floats.h"
#include "unit/quantize/quantize_support.h"

namespace nibble::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::int64_t block_of(const std::string& rule) { return rule.starts_with("nvfp4") ? 16 : 32; }

// A tensor scale of 2^-4, in both forms; none for MXFP4.
QuantizeOptions unit_options(const std::string& rule) {
  if (rule.starts_with("mxfp4")) return {};
  return {.tensor_scale = TensorScale{0.0625f, 16.0f}};
}
float unit_of(const std::string& rule) { return rule.starts_with("nvfp4") ? 0.0625f : 1.0f; }

// The code of value * unit in a block whose largest magnitude is 6 units, so that its scale is 1.
int code_of(const std::string& rule, float value) {
  Source source{.rows = 1, .columns = block_of(rule)};
  source.x.assign(static_cast<std::size_t>(source.columns), 0.0f);
  source.x[0] = 6 * unit_of(rule);
  source.x[5] = value * unit_of(rule);
  const auto got = quantize(rule, source, unit_options(rule));
  EXPECT_TRUE(got.has_value());
  EXPECT_EQ(got->tensor.scales[0], rule.starts_with("nvfp4") ? 0x38 : 127) << rule;
  return got->tensor.view().code(0, 5);
}

bool ties_toward_zero(const std::string& rule) {
  return rule == "mxfp4 modelopt" || rule == "mxfp4 gguf";
}

class QuantizeRounding : public testing::TestWithParam<std::string> {};
std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  name[5] = '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(Rules, QuantizeRounding, testing::ValuesIn(all_rules()), test_name);

TEST_P(QuantizeRounding, EveryTieOfACode) {
  const std::string& rule = GetParam();
  constexpr float kTies[7] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
  constexpr int kEven[7] = {0, 2, 2, 4, 4, 6, 6};
  for (int i = 0; i < 7; ++i) {
    const float tie = kTies[i];
    const int at_tie = ties_toward_zero(rule) ? i : kEven[i];
    for (const int sign : {0, 8}) {
      const float factor = sign ? -1.0f : 1.0f;
      // gguf knows no code 8; the others keep the sign of what rounds to zero.
      const auto with_sign = [&](int code) {
        return code == 0 && rule == "mxfp4 gguf" ? 0 : code | sign;
      };
      EXPECT_EQ(code_of(rule, factor * tie), with_sign(at_tie)) << factor * tie;
      EXPECT_EQ(code_of(rule, factor * std::nextafter(tie, 0.0f)), with_sign(i)) << factor * tie;
      EXPECT_EQ(code_of(rule, factor * std::nextafter(tie, 9.0f)), with_sign(i + 1))
          << factor * tie;
    }
  }
}

TEST_P(QuantizeRounding, EveryCodeIsItself) {
  for (std::uint8_t code = 1; code < 16; ++code) {
    if (code == 8) continue;
    EXPECT_EQ(code_of(GetParam(), e2m1_value(code)), code);
  }
}

TEST_P(QuantizeRounding, ZerosByTheRule) {
  const std::string& rule = GetParam();
  const bool drops_sign = rule == "nvfp4 modelopt" || rule == "nvfp4 compressed_tensors" ||
                          rule == "mxfp4 compressed_tensors" || rule == "mxfp4 gguf";
  EXPECT_EQ(code_of(rule, 0.0f), rule == "mxfp4 modelopt" ? 8 : 0);
  EXPECT_EQ(code_of(rule, -0.0f), drops_sign ? 0 : 8);
  EXPECT_EQ(code_of(rule, 0.1f), 0);
  EXPECT_EQ(code_of(rule, -0.1f), rule == "mxfp4 gguf" ? 0 : 8);
}

struct Byte {
  std::uint8_t scale, first_code;
};

Byte block_with_largest(const std::string& rule, float bm, const QuantizeOptions& options) {
  Source source{.rows = 1, .columns = block_of(rule)};
  source.x.assign(static_cast<std::size_t>(source.columns), 0.0f);
  source.x[0] = bm;
  const auto got = quantize(rule, source, options);
  EXPECT_TRUE(got.has_value());
  return {got->tensor.scales[0], got->tensor.view().code(0, 0)};
}

// The rules whose block scale has no rounded step before E4M3 when the tensor scale is a power of
// two. modelopt ends at byte 1, torchao at byte 8, compressed_tensors writes 0x20 for 0.
TEST(QuantizeScales, EveryTieOfAnE4m3Scale) {
  for (const std::string rule :
       {"nvfp4 rn", "nvfp4 modelopt", "nvfp4 torchao", "nvfp4 compressed_tensors"}) {
    const auto stored = [&](int byte) {
      if (rule == "nvfp4 modelopt") return std::max(byte, 1);
      if (rule == "nvfp4 torchao") return std::max(byte, 8);
      return rule == "nvfp4 compressed_tensors" && byte == 0 ? 0x20 : byte;
    };
    for (int low = 0; low < 0x7E; ++low) {
      const float middle = 0.5f * (e4m3_value(static_cast<std::uint8_t>(low)) +
                                   e4m3_value(static_cast<std::uint8_t>(low + 1)));
      const float bm = 6 * 0.0625f * middle;
      const int even = low % 2 == 0 ? low : low + 1;
      const QuantizeOptions options = unit_options(rule);
      EXPECT_EQ(block_with_largest(rule, bm, options).scale, stored(even)) << rule << " " << low;
      EXPECT_EQ(block_with_largest(rule, std::nextafter(bm, 0.0f), options).scale, stored(low));
      EXPECT_EQ(block_with_largest(rule, std::nextafter(bm, kInfinity), options).scale,
                stored(low + 1));
    }
  }
}

// Found and decided with Python fractions: the real quotient lies on one side of a tie, the
// quotient that modelopt rounds to fp32 on the tie or beyond it.
TEST(QuantizeScales, RnDecidesWhereARoundedQuotientDoesNot) {
  struct Case {
    float g, bm;
    int real, rounded;
  };
  for (const Case& each :
       {Case{0x1.8306bep-1f, 0x1.58b2p+7f, 97, 98}, Case{0x1.24e7a4p-1f, 0x1.d2d12ep+9f, 121, 120},
        Case{0x1.6c5f2p-1f, 0x1.aaff7ap+0f, 45, 44}, Case{0x1.d3e452p-1f, 0x1.3e053p+0f, 39, 38}}) {
    const QuantizeOptions options{.tensor_scale = TensorScale{each.g, std::nullopt}};
    EXPECT_EQ(block_with_largest("nvfp4 rn", each.bm, options).scale, each.real);
    EXPECT_EQ(block_with_largest("nvfp4 modelopt", each.bm, options).scale, each.rounded);
  }
}

TEST(QuantizeScales, RnDecidesCodesWhereARoundedQuotientDoesNot) {
  struct Case {
    float g, scale, x;
    int real, rounded;
  };
  for (const Case& each : {Case{0x1.54694cp-1f, e4m3_value(0x48), 0x1.29dc22p+2f, 3, 4},
                           Case{0x1.4d9e2ep-1f, e4m3_value(0x65), 0x1.0f1086p+3f, 1, 0},
                           Case{0x1.c017e6p-1f, e4m3_value(0x27), 0x1.a41668p-5f, 1, 0},
                           Case{0x1.7c357ap-1f, e4m3_value(0x29), 0x1.abbc2ap-5f, 1, 0}}) {
    Source source{.rows = 1, .columns = 16, .x = std::vector<float>(16, -each.x)};
    source.x[3] = 6 * each.scale * each.g;
    const QuantizeOptions options{.tensor_scale = TensorScale{each.g, std::nullopt}};
    EXPECT_EQ(quantize("nvfp4 rn", source, options)->tensor.view().code(0, 7), 8 | each.real);
    EXPECT_EQ(quantize("nvfp4 modelopt", source, options)->tensor.view().code(0, 7),
              8 | each.rounded);
  }
}

struct Boundary {
  float bm;
  int floor, ceil, even;  // exponents of the scale
};

TEST(QuantizeScales, Mxfp4ScalesAtTheirBoundaries) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  const Boundary boundaries[] = {
      {4.0f, 0, 0, 0},
      {std::nextafter(4.0f, 0.0f), -1, 0, 0},
      {6.0f, 0, 0, 0},
      {std::nextafter(6.0f, 9.0f), 0, 1, 0},
      {std::nextafter(7.0f, 0.0f), 0, 1, 0},
      {7.0f, 0, 1, 1},
      {std::nextafter(8.0f, 0.0f), 0, 1, 1},
      {8.0f, 1, 1, 1},
      {0x1p-100f, -102, -102, -102},
      {kLargest, 125, 126, 126},
      {0x1p-126f, -127, -127, -127},  // the exponent -128 is clamped
      {0x1p-149f, -127, -127, -127},
      {0.0f, -127, -127, -127},
  };
  for (const Boundary& boundary : boundaries) {
    EXPECT_EQ(block_with_largest("mxfp4 floor", boundary.bm, {}).scale, boundary.floor + 127)
        << boundary.bm;
    EXPECT_EQ(block_with_largest("mxfp4 ceil", boundary.bm, {}).scale, boundary.ceil + 127)
        << boundary.bm;
    EXPECT_EQ(block_with_largest("mxfp4 even", boundary.bm, {}).scale, boundary.even + 127)
        << boundary.bm;
  }
}

TEST(QuantizeScales, ValuesBeyondTheScaleSaturate) {
  // floor leaves up to 8 units; a tensor_amax that is too small leaves more.
  EXPECT_EQ(block_with_largest("mxfp4 floor", 7.9f, {}).first_code, 7);
  EXPECT_EQ(block_with_largest("mxfp4 floor", -7.9f, {}).first_code, 15);
  for (const auto& [rule, text] : EnumNames<Nvfp4Rule>::table) {
    const Byte byte =
        block_with_largest("nvfp4 " + std::string(text), -1000.0f, {.tensor_amax = 1.0f});
    EXPECT_EQ(byte.scale, 0x7E) << text;
    EXPECT_EQ(byte.first_code, 15) << text;
  }
}

TEST(QuantizeScales, TensorScaleOfRn) {
  const auto scale_for = [](float amax) {
    return quantize_nvfp4({}, 0, 16, Nvfp4Rule::rn, {.tensor_amax = amax})
        ->tensor.tensor_scale.multiplier;
  };
  EXPECT_EQ(scale_for(2688.0f), 1.0f);
  EXPECT_EQ(scale_for(1.0f), 0x1.861862p-12f);  // fl(1 / 2688)
  EXPECT_EQ(scale_for(0.0f), 1.0f);
  EXPECT_EQ(scale_for(0x1p-149f), 0x1p-126f);
  EXPECT_EQ(scale_for(2688 * 0x1p-126f), 0x1p-126f);
}

TEST(QuantizeScales, LostToZeroScaleIsCounted) {
  // amax 448 * 6 * 2^-4: the blocks of 2^-10 * 6 * 2^-4 and less have the scale 0 by the tie.
  Source source{.rows = 2, .columns = 32};
  source.x.assign(64, 0.0f);
  source.x[0] = 168.0f;
  for (std::size_t i = 16; i < 32; ++i) source.x[i] = (i % 2 ? -1.0f : 1.0f) * 6 * 0x1p-14f;
  source.x[20] = 0;
  source.x[32] = std::nextafter(6 * 0x1p-14f, 1.0f);  // scale 2^-9: not lost
  source.x[48] = -0x1p-149f;
  const auto rn = quantize("nvfp4 rn", source);
  EXPECT_EQ(rn->lost_to_zero_scale, 15 + 1);
  EXPECT_EQ(rn->tensor.scales, (std::vector<std::uint8_t>{0x7E, 0, 1, 0}));
  for (std::int64_t column = 16; column < 32; ++column)
    EXPECT_EQ(rn->tensor.view().code(0, column), 0) << "no sign under a zero scale";
  // compressed_tensors puts 0.125 there, the values are lost all the same.
  EXPECT_EQ(quantize("nvfp4 compressed_tensors", source)->lost_to_zero_scale, 15 + 1);
  EXPECT_EQ(quantize("nvfp4 flashinfer", source)->lost_to_zero_scale, 15 + 1);
  // modelopt and torchao have a smallest scale instead.
  EXPECT_EQ(quantize("nvfp4 modelopt", source)->lost_to_zero_scale, 0);
  EXPECT_EQ(quantize("nvfp4 torchao", source)->lost_to_zero_scale, 0);
  EXPECT_EQ(quantize("mxfp4 floor", source)->lost_to_zero_scale, 0);
}

TEST(QuantizeScales, ReciprocalsThatOverflowLeaveZerosZero) {
  // g = 2^-126 and the least scale of torchao, 2^-6: 1 / (s g) is 2^132.
  Source source{.rows = 1, .columns = 32, .x = std::vector<float>(32, 0.0f)};
  source.x[0] = 2688 * 0x1p-126f;
  source.x[16] = 0x1p-149f;
  for (const std::string rule : {"nvfp4 torchao", "nvfp4 flashinfer"}) {
    const auto got = quantize(rule, source, {.tensor_scale = TensorScale{0x1p-126f, 0x1p126f}});
    EXPECT_EQ(got->tensor.view().code(0, 0), 7) << rule;
    for (std::int64_t column = 17; column < 32; ++column)
      EXPECT_EQ(got->tensor.view().code(0, column), 0) << rule;
  }
}

TEST_P(QuantizeRounding, AllZeroTensorIsZeros) {
  const std::string& rule = GetParam();
  Source source{.rows = 2, .columns = 64};
  source.x.assign(128, 0.0f);
  const auto got = quantize(rule, source);
  ASSERT_TRUE(got.has_value());
  const int scale = rule == "nvfp4 modelopt"             ? 0x38
                    : rule == "nvfp4 torchao"            ? 0x08
                    : rule == "nvfp4 compressed_tensors" ? 0x20
                                                         : 0;
  for (const std::uint8_t byte : got->tensor.scales) EXPECT_EQ(byte, scale);
  const int code = rule == "mxfp4 modelopt" ? 8 : 0;
  for (std::int64_t column = 0; column < 64; ++column)
    EXPECT_EQ(got->tensor.view().code(1, column), code);
  EXPECT_EQ(got->tensor.tensor_scale.multiplier, 1.0f);
  EXPECT_EQ(got->lost_to_zero_scale, 0);
}

}  // namespace
}  // namespace nibble::test
