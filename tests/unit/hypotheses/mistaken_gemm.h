// SPDX-License-Identifier: Apache-2.0
// A GEMM in double, written from the definition with its own indexing, whose way of reading an
// operand a test replaces by a mistaken one; and the shapes that mistakes are tried on.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "reference/hypotheses.h"

namespace nibble {

using Value = std::function<double(std::int64_t row, std::int64_t column)>;

inline constexpr double kMagnitudes[] = {0, .5, 1, 1.5, 2, 3, 4, 6};

inline double code_value(int code) {
  return (code & 8) ? -kMagnitudes[code & 7] : kMagnitudes[code & 7];
}

inline double e4m3(int byte) {
  const int exponent = (byte >> 3) & 15, mantissa = byte & 7;
  return exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
}
inline double e8m0(int byte) { return std::ldexp(1.0, byte - 127); }

// formats: byte offsets of the three layouts, written out once more.
inline std::int64_t place(ScaleOrder order, std::int64_t row, std::int64_t block,
                          std::int64_t blocks) {
  const std::int64_t tiles = (blocks + 3) / 4;
  if (order == ScaleOrder::row_major) return row * blocks + block;
  if (order == ScaleOrder::tiled_8x4)
    return ((row / 8) * tiles + block / 4) * 32 + (row % 8) * 4 + block % 4;
  return ((row / 128) * tiles + block / 4) * 512 + (row % 32) * 16 + ((row % 128) / 32) * 4 +
         block % 4;
}

struct Shape {
  GemmShape shape;
  Activation a_kind;
  Format b_format;
  ScaleOrder order;
  OutType out = OutType::f32;
};

// Random operands, and the values that a right kernel reads.
class Problem {
 public:
  explicit Problem(const Shape& setup) : s(setup), random_(17) {
    b = blocks(s.b_format, s.shape.n, 0.031f);
    if (is_block_format(s.a_kind)) {
      a = blocks(s.a_kind == Activation::nvfp4 ? Format::nvfp4 : Format::mxfp4, s.shape.m, 0.27f);
      read_a = right(a);
    } else {
      std::normal_distribution<float> normal;
      for (std::int64_t i = 0; i < s.shape.m * s.shape.k; ++i)
        dense.push_back(bf16_encode(normal(random_)));
      read_a = [this](std::int64_t row, std::int64_t column) {
        return static_cast<double>(
            bf16_value(dense[static_cast<std::size_t>(row * s.shape.k + column)]));
      };
    }
    read_b = right(b);
    alpha = a.tensor_scale.multiplier * b.tensor_scale.multiplier;
  }

  bool is_w4a4() const { return is_block_format(s.a_kind); }

  static int block_of(const BlockTensor& t) { return t.format == Format::nvfp4 ? 16 : 32; }
  static double scale_value(const BlockTensor& t, int byte) {
    return t.format == Format::nvfp4 ? e4m3(byte) : e8m0(byte);
  }
  static int code(const BlockTensor& t, std::int64_t row, std::int64_t column) {
    const int byte = t.codes[static_cast<std::size_t>(row * t.columns / 2 + column / 2)];
    return column % 2 ? byte >> 4 : byte & 15;
  }
  static int scale_byte(const BlockTensor& t, std::int64_t offset) {
    return offset < static_cast<std::int64_t>(t.scales.size())
               ? t.scales[static_cast<std::size_t>(offset)]
               : 0;
  }
  static int right_byte(const BlockTensor& t, std::int64_t row, std::int64_t column) {
    return scale_byte(t, place(t.layout.order, row, column / block_of(t), t.columns / block_of(t)));
  }
  static Value right(const BlockTensor& t) {
    return [&t](std::int64_t row, std::int64_t column) {
      return code_value(code(t, row, column)) * scale_value(t, right_byte(t, row, column));
    };
  }

  // sums[m, n] of what is read, in double.
  std::vector<double> sums() const {
    std::vector<double> result, a_values, b_values;
    for (std::int64_t row = 0; row < s.shape.m; ++row)
      for (std::int64_t i = 0; i < s.shape.k; ++i) a_values.push_back(read_a(row, i));
    for (std::int64_t row = 0; row < s.shape.n; ++row)
      for (std::int64_t i = 0; i < s.shape.k; ++i) b_values.push_back(read_b(row, i));
    for (std::int64_t row = 0; row < s.shape.m; ++row) {
      for (std::int64_t column = 0; column < s.shape.n; ++column) {
        double sum = 0;
        for (std::int64_t i = 0; i < summed_k(); ++i)
          sum += a_values[static_cast<std::size_t>(row * s.shape.k + i)] *
                 b_values[static_cast<std::size_t>(column * s.shape.k + i)];
        result.push_back(sum);
      }
    }
    return result;
  }
  std::int64_t summed_k() const { return s.shape.k - dropped_k; }

  std::vector<float> outputs() const {
    std::vector<float> values;
    for (const double sum : sums())
      values.push_back(static_cast<float>(used_alpha.value_or(static_cast<double>(alpha)) * sum));
    return values;
  }

  static std::vector<std::byte> store(const std::vector<float>& values, OutType type) {
    std::vector<std::byte> bytes(values.size() * static_cast<std::size_t>(out_bytes(type)));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint32_t bits = type == OutType::f32    ? std::bit_cast<std::uint32_t>(values[i])
                                 : type == OutType::bf16 ? bf16_encode(values[i])
                                                         : f16_encode(values[i]);
      std::memcpy(&bytes[i * static_cast<std::size_t>(out_bytes(type))], &bits,
                  static_cast<std::size_t>(out_bytes(type)));
    }
    return bytes;
  }

  std::vector<std::string> diagnose_bytes(const std::vector<std::byte>& bytes,
                                          std::uint32_t poison = 0) const {
    DiagnosisRequest request{inputs(),
                             {s.out, s.shape.m, s.shape.n, s.shape.n * out_bytes(s.out), bytes},
                             poison,
                             {AccumulationClass::fp32, judge_noise, false}};
    const auto diagnosis = diagnose(request);
    EXPECT_TRUE(diagnosis) << diagnosis.error().message;
    return *diagnosis ? (*diagnosis)->looks_like : std::vector<std::string>{};
  }
  std::vector<std::string> diagnose_values(const std::vector<float>& values,
                                           std::uint32_t poison = 0) const {
    return diagnose_bytes(store(values, s.out), poison);
  }
  std::vector<std::string> diagnose_reading() const { return diagnose_values(outputs()); }

  GemmInputs inputs() const {
    if (is_w4a4()) return {a.view(), b.view(), alpha};
    return {DenseTensorView{DenseType::bf16, s.shape.m, s.shape.k, s.shape.k * 2,
                            std::as_bytes(std::span(dense))},
            b.view(), alpha};
  }

  Shape s;
  BlockTensor a, b;
  std::vector<std::uint16_t> dense;
  float alpha = 1;
  Value read_a, read_b;  // replaced by a mistake
  std::optional<double> used_alpha;
  std::int64_t dropped_k = 0;
  bool judge_noise = true;

 private:
  BlockTensor blocks(Format format, std::int64_t rows, float multiplier) {
    auto tensor = make_block_tensor(format, rows, s.shape.k, s.order).value();
    for (auto& byte : tensor.codes) byte = static_cast<std::uint8_t>(random_());
    const int block = format == Format::nvfp4 ? 16 : 32;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t c = 0; c < s.shape.k / block; ++c) {
        tensor.scales[static_cast<std::size_t>(place(s.order, row, c, s.shape.k / block))] =
            static_cast<std::uint8_t>(format == Format::nvfp4 ? 0x20 + random_() % 40
                                                              : 112 + random_() % 12);
      }
    }
    if (format == Format::nvfp4) tensor.tensor_scale.multiplier = multiplier;
    return tensor;
  }

  std::mt19937_64 random_;
};

inline std::vector<Shape> setups() {
  std::vector<Shape> all;
  for (const auto order : {ScaleOrder::row_major, ScaleOrder::tiled_128x4, ScaleOrder::tiled_8x4}) {
    all.push_back({{5, 200, 144}, Activation::nvfp4, Format::nvfp4, order});
    all.push_back({{137, 72, 208}, Activation::nvfp4, Format::nvfp4, order, OutType::bf16});
    all.push_back({{20, 136, 224}, Activation::mxfp4, Format::mxfp4, order});
  }
  all.push_back({{33, 200, 176}, Activation::bf16, Format::nvfp4, ScaleOrder::tiled_128x4});
  all.push_back(
      {{9, 130, 160}, Activation::bf16, Format::mxfp4, ScaleOrder::row_major, OutType::f16});
  return all;
}

inline std::string describe(const Shape& s) {
  return std::string(name(s.a_kind)) + " x " + std::string(name(s.b_format)) + " " +
         std::string(name(s.order)) + " " + std::to_string(s.shape.m) + "x" +
         std::to_string(s.shape.n) + "x" + std::to_string(s.shape.k) + " " +
         std::string(name(s.out));
}

}  // namespace nibble
