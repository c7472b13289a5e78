// SPDX-License-Identifier: Apache-2.0
// exact_product() against fractions over ml_dtypes decoding (tests/interop/check_exact_product.py),
// on every path that takes the operands.
#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "exact_operands.h"
#include "reference/exact_product.h"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace nibble {
namespace {

using Json = nlohmann::json;

template <class Byte>
std::vector<Byte> from_hex(const std::string& text) {
  std::vector<Byte> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<Byte>(std::stoul(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

double double_from_hex(const std::string& text) {
  return std::bit_cast<double>(std::uint64_t{std::stoull(text, nullptr, 16)});
}

struct Operand {
  Json json;
  std::vector<std::uint8_t> codes, scales;
  std::vector<std::byte> data;

  explicit Operand(const Json& from) : json(from) {
    const auto& hex = json["data"].get_ref<const std::string&>();
    codes = from_hex<std::uint8_t>(hex);
    data = from_hex<std::byte>(hex);
    scales = from_hex<std::uint8_t>(json.value("scales", ""));
  }
  std::string kind() const { return json["kind"]; }
  std::int64_t rows() const { return json["rows"]; }
  std::int64_t columns() const { return json["columns"]; }

  BlockTensorView block() const {
    const Format format = *parse_enum<Format>(kind());
    const ScaleOrder order = *parse_enum<ScaleOrder>(json["layout"].get<std::string>());
    const ScaleLayout layout{order, rows(), columns() / block_size(format)};
    return {format, rows(), columns(), json["stride"], codes, scales, layout, {}};
  }
  ActivationView activation() const {
    if (kind() == "q8_0") return Q8TensorView{rows(), columns(), data};
    if (parse_enum<Format>(kind())) return block();
    const DenseType type = kind() == "bf16"  ? DenseType::bf16
                           : kind() == "f16" ? DenseType::f16
                                             : DenseType::f32;
    return DenseTensorView{type, rows(), columns(), json["stride"], data};
  }
};

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

// S of the integer path may be rounded up.
bool good_magnitude(double found, double exact, ExactPath path) {
  if (path == ExactPath::superaccumulator || !std::isfinite(exact)) return same(found, exact);
  return found >= exact && found <= exact * (1 + 1e-6);
}

void expect_case(const Json& json, const GemmInputs& inputs, ExactPath path) {
  SCOPED_TRACE(json["name"].get<std::string>() +
               (path == ExactPath::integer ? ", integer" : ", superaccumulator"));
  const OutType out = *parse_enum<OutType>(json["out"].get<std::string>());
  const auto panel = exact_product(inputs, out, 0, shape_of(inputs).m, {path, 2});
  ASSERT_TRUE(panel.has_value()) << panel.error().message;
  ASSERT_EQ(panel->rounded.size(), json["rounded"].size());
  for (std::size_t i = 0; i < panel->rounded.size(); ++i) {
    SCOPED_TRACE("element " + std::to_string(i));
    EXPECT_EQ(panel->rounded[i], json["rounded"][i].get<std::uint32_t>());
    const double value = double_from_hex(json["value"][i]);
    EXPECT_TRUE(same(panel->value[i], value)) << panel->value[i] << " for " << value;
    const double magnitude = double_from_hex(json["magnitude"][i]);
    EXPECT_TRUE(good_magnitude(panel->magnitude[i], magnitude, path))
        << panel->magnitude[i] << " for " << magnitude;
    const int outside = panel->outside_fp32.empty() ? 0 : panel->outside_fp32[i];
    EXPECT_EQ(outside, json["outside_fp32"][i].get<int>());
  }
}

void expect_every_case() {
  std::ifstream file(NIBBLE_TEST_DATA "/exact_product/cases.json");
  ASSERT_TRUE(file.is_open());
  const Json golden = Json::parse(file);
  int integer_cases = 0;
  for (const Json& json : golden["cases"]) {
    const Operand a(json["a"]), b(json["b"]);
    const auto alpha_bits =
        static_cast<std::uint32_t>(std::stoul(json["alpha"].get<std::string>(), nullptr, 16));
    const GemmInputs inputs{a.activation(), b.block(), std::bit_cast<float>(alpha_bits)};
    expect_case(json, inputs, ExactPath::superaccumulator);
    if (a.kind() == "nvfp4" && b.kind() == "nvfp4") {
      expect_case(json, inputs, ExactPath::integer);
      ++integer_cases;
    }
  }
  EXPECT_GE(integer_cases, 15);
}

TEST(ExactProduct, AgreesWithFractions) { expect_every_case(); }

// As after loading a library that was built with -ffast-math, and worse.
TEST(ExactProduct, AgreesInAnyFloatEnvironment) {
  std::fenv_t saved;
  std::fegetenv(&saved);
  for (const int rounding : {FE_TONEAREST, FE_TOWARDZERO, FE_UPWARD}) {
    std::fesetround(rounding);
#if defined(__SSE__)
    constexpr unsigned kFlushToZero = 0x8000, kSubnormalsAreZero = 0x40;
    _mm_setcsr(_mm_getcsr() | kFlushToZero | kSubnormalsAreZero);
    const unsigned control = _mm_getcsr();
#endif
    const auto a = test::filled(Format::nvfp4, 70, 16, 1, 0x01);
    const auto small = exact_product({a.view(), a.view(), 0x1p-130f}, OutType::f32, 0, 70, {{}, 3});
    const auto b = test::filled(Format::mxfp4, 70, 32, 2, 0),
               one = test::filled(Format::mxfp4, 1, 32, 2, 127);
    const auto smaller = exact_product({b.view(), one.view(), 1}, OutType::f32, 0, 70, {{}, 3});
    EXPECT_EQ(std::fegetround(), rounding);
#if defined(__SSE__)
    EXPECT_EQ(_mm_getcsr(), control) << "the caller's environment must come back";
#endif
    std::fesetenv(&saved);
    ASSERT_TRUE(small.has_value() && smaller.has_value());
    // 16 * 2^-20 * 2^-130 is 8 times the least subnormal; 32 * 2^-127 is 2^-122.
    EXPECT_EQ(small->rounded, std::vector<std::uint32_t>(70 * 70, 8));
    EXPECT_EQ(smaller->rounded, std::vector<std::uint32_t>(70, 5u << 23));
  }
}

}  // namespace
}  // namespace nibble
