// SPDX-License-Identifier: Apache-2.0
// A backend that makes exactly one mistake each, written from the definition with its own indexing:
// the hypothesis of that mistake is named, and none that predicts something else.
#include "reference/hypotheses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

#include "support/accumulate.h"

namespace nibble {
namespace {

using testing::Contains;
using testing::IsEmpty;
using testing::StartsWith;

using Value = std::function<double(std::int64_t row, std::int64_t column)>;

constexpr double kMagnitudes[] = {0, .5, 1, 1.5, 2, 3, 4, 6};

double code_value(int code) { return (code & 8) ? -kMagnitudes[code & 7] : kMagnitudes[code & 7]; }

double e4m3(int byte) {
  const int exponent = (byte >> 3) & 15, mantissa = byte & 7;
  return exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
}
double e8m0(int byte) { return std::ldexp(1.0, byte - 127); }

// formats: byte offsets of the three layouts, written out once more.
std::int64_t place(ScaleOrder order, std::int64_t row, std::int64_t block, std::int64_t blocks) {
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
                             {AccumulationClass::fp32, true, false}};
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

std::vector<Shape> setups() {
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

std::string describe(const Shape& s) {
  return std::string(name(s.a_kind)) + " x " + std::string(name(s.b_format)) + " " +
         std::string(name(s.order)) + " " + std::to_string(s.shape.m) + "x" +
         std::to_string(s.shape.n) + "x" + std::to_string(s.shape.k) + " " +
         std::string(name(s.out));
}

// Runs `mistake` on every setup that it takes; it makes the problem wrong and says what must be
// named.
void for_each_setup(
    const std::function<std::optional<std::vector<std::string>>(Problem&)>& mistake) {
  int ran = 0;
  for (const auto& setup : setups()) {
    SCOPED_TRACE(describe(setup));
    Problem problem(setup);
    const auto wanted = mistake(problem);
    if (!wanted) continue;
    ++ran;
    const auto named = problem.diagnose_reading();
    ASSERT_FALSE(named.empty()) << "wanted " << wanted->front();
    // The first is the mistake, and all others predict the same.
    for (const auto& each : named) EXPECT_THAT(*wanted, Contains(each));
    EXPECT_EQ(named.front().substr(0, named.front().find(' ')),
              wanted->front().substr(0, wanted->front().find(' ')));
  }
  EXPECT_GT(ran, 0);
}

using Wanted = std::optional<std::vector<std::string>>;

// The same mistake with A, B and both.
void for_operands(
    const std::string& hypothesis, const std::function<Value(const BlockTensor&)>& mistake,
    const std::function<bool(const Shape&)>& takes = [](const Shape&) { return true; }) {
  for (const char* suffix : {"_a", "_b", "_ab"}) {
    SCOPED_TRACE(hypothesis + suffix);
    const bool in_a = std::string(suffix).find('a') != std::string::npos,
               in_b = std::string(suffix).find('b') != std::string::npos;
    for_each_setup([&](Problem& p) -> Wanted {
      if ((in_a && !p.is_w4a4()) || !takes(p.s)) return std::nullopt;
      if (in_a) p.read_a = mistake(p.a);
      if (in_b) p.read_b = mistake(p.b);
      std::vector<std::string> wanted{hypothesis + suffix};
      // Of some sizes twice forward and twice back are the same permutation.
      if (hypothesis.starts_with("scales_twice_"))
        wanted.push_back("scales_untiled_twice_" + hypothesis.substr(13) + suffix);
      return wanted;
    });
  }
}

// Codes exchanged within each pair of A give the sums that the same exchange in B gives, and both
// at once the right ones.
TEST(Hypotheses, SwappedNibbles) {
  const auto swapped = [](const BlockTensor& t) -> Value {
    return [&t](std::int64_t row, std::int64_t column) {
      const int byte = t.codes[static_cast<std::size_t>(row * t.columns / 2 + column / 2)];
      return code_value(column % 2 ? byte & 15 : byte >> 4) *
             Problem::scale_value(t, Problem::right_byte(t, row, column));
    };
  };
  const std::vector<std::string> either{"swapped_nibbles_a", "swapped_nibbles_b"};
  for_each_setup([&](Problem& p) -> Wanted {
    if (!p.is_w4a4()) return std::nullopt;
    p.read_a = swapped(p.a);
    return either;
  });
  for_each_setup([&](Problem& p) -> Wanted {
    p.read_b = swapped(p.b);
    return p.is_w4a4() ? either : std::vector<std::string>{"swapped_nibbles_b"};
  });
  for (const auto& setup : setups()) {
    Problem p(setup);
    if (!p.is_w4a4()) continue;
    p.read_a = swapped(p.a);
    p.read_b = swapped(p.b);
    EXPECT_THAT(p.diagnose_reading(), IsEmpty());
  }
}

TEST(Hypotheses, SignOfTheCodesLost) {
  for_operands("sign_lost", [](const BlockTensor& t) -> Value {
    return [&t](std::int64_t row, std::int64_t column) {
      return code_value(Problem::code(t, row, column) & 7) *
             Problem::scale_value(t, Problem::right_byte(t, row, column));
    };
  });
}

TEST(Hypotheses, ScaleIgnored) {
  for_operands("scale_ignored", [](const BlockTensor& t) -> Value {
    return [&t](std::int64_t row, std::int64_t column) {
      return code_value(Problem::code(t, row, column));
    };
  });
}

TEST(Hypotheses, ScaleTypeMisread) {
  for_operands(
      "scale_type_misread",
      [](const BlockTensor& t) -> Value {
        return [&t](std::int64_t row, std::int64_t column) {
          const int byte = Problem::right_byte(t, row, column);
          return code_value(Problem::code(t, row, column)) *
                 (t.format == Format::nvfp4 ? e8m0(byte) : e4m3(byte));
        };
      },
      [](const Shape& s) { return s.out != OutType::f16; });
}

TEST(Hypotheses, BlockSizeMisread) {
  for_operands("block_size_misread", [](const BlockTensor& t) -> Value {
    return [&t](std::int64_t row, std::int64_t column) {
      const std::int64_t block = t.format == Format::nvfp4 ? 32 : 16,
                         blocks = (t.columns + block - 1) / block;
      return code_value(Problem::code(t, row, column)) *
             Problem::scale_value(
                 t, Problem::scale_byte(t, place(t.layout.order, row, column / block, blocks)));
    };
  });
}

TEST(Hypotheses, ScalesReadInAnotherLayout) {
  for (const auto order : {ScaleOrder::row_major, ScaleOrder::tiled_128x4, ScaleOrder::tiled_8x4}) {
    const auto mistake = [order](const BlockTensor& t) -> Value {
      return [&t, order](std::int64_t row, std::int64_t column) {
        const int block = Problem::block_of(t);
        return code_value(Problem::code(t, row, column)) *
               Problem::scale_value(
                   t, Problem::scale_byte(t, place(order, row, column / block, t.columns / block)));
      };
    };
    for_operands("scales_read_as_" + std::string(name(order)), mistake,
                 [order](const Shape& s) { return s.order != order; });
  }
}

// The conversion to tiles, applied to what is in tiles already; the kernel reads the result
// rightly.
TEST(Hypotheses, ScalesConvertedTwice) {
  for (const auto order : {ScaleOrder::tiled_128x4, ScaleOrder::tiled_8x4}) {
    for_operands(
        "scales_twice_" + std::string(name(order)),
        [order](const BlockTensor& t) -> Value {
          const int block = Problem::block_of(t);
          const std::int64_t blocks = t.columns / block, padded_blocks = (blocks + 3) / 4 * 4,
                             tile_rows = order == ScaleOrder::tiled_8x4 ? 8 : 128;
          const std::int64_t padded_rows = (t.rows + tile_rows - 1) / tile_rows * tile_rows;
          const auto convert = [&](const std::vector<std::uint8_t>& row_major) {
            std::vector<std::uint8_t> tiled(row_major.size());
            for (std::int64_t row = 0; row < padded_rows; ++row)
              for (std::int64_t c = 0; c < padded_blocks; ++c)
                tiled[static_cast<std::size_t>(place(order, row, c, padded_blocks))] =
                    row_major[static_cast<std::size_t>(row * padded_blocks + c)];
            return tiled;
          };
          std::vector<std::uint8_t> padded(static_cast<std::size_t>(padded_rows * padded_blocks));
          for (std::int64_t row = 0; row < t.rows; ++row)
            for (std::int64_t c = 0; c < blocks; ++c)
              padded[static_cast<std::size_t>(row * padded_blocks + c)] =
                  static_cast<std::uint8_t>(Problem::right_byte(t, row, c * block));
          return [&t, order, padded_blocks, block, twice = convert(convert(padded))](
                     std::int64_t row, std::int64_t column) {
            return code_value(Problem::code(t, row, column)) *
                   Problem::scale_value(t, twice[static_cast<std::size_t>(
                                               place(order, row, column / block, padded_blocks))]);
          };
          // Where the blocks fill their tiles, the first conversion read row by row gives the same.
        },
        [order](const Shape& s) {
          return !(s.order == order && s.shape.k / block_size(s.b_format) % 4 == 0);
        });
  }
}

TEST(Hypotheses, ScalesExchanged) {
  for_each_setup([](Problem& p) -> Wanted {
    if (!p.is_w4a4()) return std::nullopt;
    const auto take = [](const BlockTensor& t, const BlockTensor& from) -> Value {
      return [&t, &from](std::int64_t row, std::int64_t column) {
        const int block = Problem::block_of(t);
        return code_value(Problem::code(t, row, column)) *
               Problem::scale_value(
                   t, Problem::scale_byte(
                          from, place(t.layout.order, row, column / block, t.columns / block)));
      };
    };
    p.read_a = take(p.a, p.b);
    p.read_b = take(p.b, p.a);
    return std::vector<std::string>{"scales_exchanged"};
  });
}

TEST(Hypotheses, Alpha) {
  const auto with = [](const std::string& hypothesis,
                       const std::function<std::optional<double>(const Problem&)>& alpha) {
    SCOPED_TRACE(hypothesis);
    for_each_setup([&](Problem& p) -> Wanted {
      const auto used = alpha(p);
      if (!used || p.alpha == 1.0f || p.s.out == OutType::f16) return std::nullopt;
      p.used_alpha = used;
      return std::vector<std::string>{hypothesis};
    });
  };
  const auto is_nvfp4 = [](const Problem& p) { return p.s.b_format == Format::nvfp4; };
  const auto two_scales = [](const Problem& p) {
    return p.s.a_kind == Activation::nvfp4 && p.s.b_format == Format::nvfp4;
  };
  const auto ga = [](const Problem& p) { return static_cast<double>(p.a.tensor_scale.multiplier); };
  const auto gb = [](const Problem& p) { return static_cast<double>(p.b.tensor_scale.multiplier); };
  using Used = std::optional<double>;
  with("alpha_ignored", [&](const Problem& p) { return is_nvfp4(p) ? Used(1.0) : Used(); });
  with("alpha_twice", [&](const Problem& p) {
    return is_nvfp4(p) ? Used(static_cast<double>(p.alpha) * static_cast<double>(p.alpha)) : Used();
  });
  with("tensor_scale_inverted_a",
       [&](const Problem& p) { return two_scales(p) ? Used(gb(p) / ga(p)) : Used(); });
  with("tensor_scale_inverted_b",
       [&](const Problem& p) { return two_scales(p) ? Used(ga(p) / gb(p)) : Used(); });
  // Both inverted is alpha inverted, where alpha is their product.
  for_each_setup([&](Problem& p) -> Wanted {
    if (!two_scales(p)) return std::nullopt;
    p.used_alpha = 1.0 / static_cast<double>(p.alpha);
    return std::vector<std::string>{"alpha_inverted", "tensor_scale_inverted_ab"};
  });
}

TEST(Hypotheses, SignOfTheOutput) {
  for (const auto& setup : setups()) {
    SCOPED_TRACE(describe(setup));
    const Problem problem(setup);
    auto flipped = problem.outputs(), lost = flipped;
    for (auto& x : flipped) x = -x;
    for (auto& x : lost) x = std::fabs(x);
    EXPECT_THAT(problem.diagnose_values(flipped), testing::ElementsAre("sign_flipped"));
    EXPECT_THAT(problem.diagnose_values(lost), testing::ElementsAre("sign_lost_output"));
  }
}

TEST(Hypotheses, BTransposed) {
  for_each_setup([](Problem& p) -> Wanted {
    p.read_b = [&b = p.b](std::int64_t row, std::int64_t column) {
      const int block = Problem::block_of(b);
      const std::int64_t code_place = column * b.rows + row,
                         scale_place = column / block * b.rows + row, blocks = b.columns / block;
      const int byte = b.codes[static_cast<std::size_t>(code_place / 2)];
      return code_value(code_place % 2 ? byte >> 4 : byte & 15) *
             Problem::scale_value(b,
                                  Problem::scale_byte(b, place(b.layout.order, scale_place / blocks,
                                                               scale_place % blocks, blocks)));
    };
    return std::vector<std::string>{"b_transposed"};
  });
}

TEST(Hypotheses, KTailDropped) {
  for (const std::int64_t dropped : {1, 16, 48}) {
    for_each_setup([dropped](Problem& p) -> Wanted {
      p.dropped_k = dropped;
      // A last element of zero in every row would hide among those dropped; random codes have none.
      return std::vector<std::string>{"k_tail_dropped (" + std::to_string(dropped) + " elements)"};
    });
  }
}

TEST(Hypotheses, PowerOfTwoOff) {
  for (const int exponent : {1, -3, 7}) {
    for_each_setup([exponent](Problem& p) -> Wanted {
      if (p.s.out == OutType::f16) return std::nullopt;
      p.used_alpha = std::ldexp(static_cast<double>(p.alpha), exponent);
      return std::vector<std::string>{"power_of_two_off (2^" + std::to_string(exponent) + ")"};
    });
  }
}

class Patterns : public testing::Test {
 protected:
  Problem problem{
      {{137, 200, 144}, Activation::nvfp4, Format::nvfp4, ScaleOrder::tiled_128x4, OutType::f32}};
  std::vector<float> right = problem.outputs();
  float& at(std::vector<float>& values, std::int64_t row, std::int64_t column) const {
    return values[static_cast<std::size_t>(row * 200 + column)];
  }
  static constexpr std::uint32_t kPoison = 0x7FC0BEEF;
  const float poison = std::bit_cast<float>(kPoison);
};

TEST_F(Patterns, Honest) {
  EXPECT_THAT(problem.diagnose_values(right), IsEmpty());
  for (const auto& setup : setups())
    EXPECT_THAT(Problem(setup).diagnose_reading(), IsEmpty()) << describe(setup);
}

TEST_F(Patterns, RandomGarbageLooksLikeNothing) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 30);
  auto values = right;
  for (auto& x : values) x = normal(random);
  EXPECT_THAT(problem.diagnose_values(values), IsEmpty());
}

TEST_F(Patterns, AllZerosConstantNan) {
  EXPECT_THAT(problem.diagnose_values(std::vector<float>(right.size(), 0.0f)),
              testing::ElementsAre("all_zeros"));
  EXPECT_THAT(problem.diagnose_values(std::vector<float>(right.size(), 2.5f)),
              testing::ElementsAre("constant (2.5)"));
  EXPECT_THAT(problem.diagnose_values(std::vector<float>(right.size(), std::nanf(""))),
              testing::ElementsAre("nan_everywhere"));
  EXPECT_THAT(problem.diagnose_values(std::vector<float>(right.size(), poison), kPoison),
              testing::ElementsAre("nan_everywhere (nothing was written)"));
}

TEST_F(Patterns, PoisonLeft) {
  auto rows = right, columns = right, tile = right;
  for (std::int64_t i = 0; i < 200; ++i) at(rows, 3, i) = at(rows, 4, i) = at(rows, 90, i) = poison;
  for (std::int64_t i = 0; i < 137; ++i) at(columns, i, 17) = poison;
  for (std::int64_t row = 64; row < 80; ++row)
    for (std::int64_t column = 32; column < 40; ++column) at(tile, row, column) = poison;
  EXPECT_THAT(problem.diagnose_values(rows, kPoison), Contains("unwritten_rows (rows 3..4, 90)"));
  EXPECT_THAT(problem.diagnose_values(columns, kPoison),
              Contains("unwritten_columns (columns 17)"));
  EXPECT_THAT(problem.diagnose_values(tile, kPoison),
              Contains("unwritten_elements (128 elements, first at row 64 column 32)"));
}

TEST_F(Patterns, LastTileMissing) {
  auto rows = right, columns = right, poisoned = right;
  for (std::int64_t row = 128; row < 137; ++row)
    for (std::int64_t column = 0; column < 200; ++column)
      at(rows, row, column) = 0, at(poisoned, row, column) = poison;
  for (std::int64_t row = 0; row < 137; ++row)
    for (std::int64_t column = 192; column < 200; ++column) at(columns, row, column) = 0;
  EXPECT_THAT(problem.diagnose_values(rows),
              testing::ElementsAre("last_m_tile_missing (rows 128..136)"));
  EXPECT_THAT(problem.diagnose_values(columns),
              testing::ElementsAre("last_n_tile_missing (columns 192..199)"));
  EXPECT_THAT(problem.diagnose_values(poisoned, kPoison),
              Contains("last_m_tile_missing (rows 128..136)"));
}

TEST_F(Patterns, OutputTransposed) {
  auto values = right;
  for (std::int64_t row = 0; row < 137; ++row)
    for (std::int64_t column = 0; column < 200; ++column)
      values[static_cast<std::size_t>(column * 137 + row)] =
          right[static_cast<std::size_t>(row * 200 + column)];
  EXPECT_THAT(problem.diagnose_values(values), testing::ElementsAre("output_transposed"));
}

TEST_F(Patterns, RowsAndColumnsPermuted) {
  auto rows = right, columns = right;
  for (std::int64_t i = 0; i < 200; ++i) std::swap(at(rows, 0, i), at(rows, 136, i));
  for (std::int64_t i = 0; i < 137; ++i) std::swap(at(columns, i, 0), at(columns, i, 199));
  EXPECT_THAT(problem.diagnose_values(rows),
              testing::ElementsAre("rows_permuted (row 0 holds 136, row 136 holds 0)"));
  EXPECT_THAT(problem.diagnose_values(columns),
              testing::ElementsAre("columns_permuted (column 0 holds 199, column 199 holds 0)"));
  auto interleaved = right;  // a fragment order: rows 8i + j and 8j + i of the first 64
  for (std::int64_t row = 0; row < 64; ++row)
    for (std::int64_t i = 0; i < 200; ++i)
      at(interleaved, row % 8 * 8 + row / 8, i) = right[static_cast<std::size_t>(row * 200 + i)];
  EXPECT_THAT(problem.diagnose_values(interleaved),
              testing::ElementsAre(StartsWith("rows_permuted (row ")));
}

TEST(OutputBits, MisreadTypes) {
  const Problem as_bf16(
      {{20, 72, 144}, Activation::nvfp4, Format::nvfp4, ScaleOrder::row_major, OutType::bf16});
  EXPECT_THAT(as_bf16.diagnose_bytes(Problem::store(as_bf16.outputs(), OutType::f16)),
              testing::ElementsAre("output_f16_read_as_bf16"));
  const Problem as_f16(
      {{20, 72, 144}, Activation::nvfp4, Format::nvfp4, ScaleOrder::row_major, OutType::f16});
  EXPECT_THAT(as_f16.diagnose_bytes(Problem::store(as_f16.outputs(), OutType::bf16)),
              testing::ElementsAre("output_bf16_read_as_f16"));
}

TEST(Precision, Fp16AndShortSums) {
  for (const std::int64_t k : {std::int64_t{256}, std::int64_t{2048}}) {
    Problem problem(
        {{24, 40, k}, Activation::nvfp4, Format::nvfp4, ScaleOrder::row_major, OutType::f32});
    const auto with = [&](const accumulate::Order& order) {
      std::vector<float> values;
      for (std::int64_t row = 0; row < 24; ++row) {
        for (std::int64_t column = 0; column < 40; ++column) {
          std::vector<double> products;
          for (std::int64_t i = 0; i < k; ++i)
            products.push_back(problem.read_a(row, i) * problem.read_b(column, i));
          values.push_back(problem.alpha * order(products));
        }
      }
      return values;
    };
    EXPECT_THAT(problem.diagnose_values(with(accumulate::fp16)),
                testing::ElementsAre("fp16_accumulation"));
    EXPECT_THAT(problem.diagnose_values(
                    with([](accumulate::Products p) { return accumulate::aligned(p, 13, 32); })),
                testing::ElementsAre("reduced_precision"));
    EXPECT_THAT(problem.diagnose_values(with(accumulate::sequential)), IsEmpty());
  }
}

TEST(LargeProblems, AreDiagnosedOnASample) {
  Problem problem(
      {{300, 520, 512}, Activation::nvfp4, Format::nvfp4, ScaleOrder::tiled_128x4, OutType::bf16});
  problem.read_b = [&b = problem.b](std::int64_t row, std::int64_t column) {
    return code_value(Problem::code(b, row, column ^ 1)) *
           e4m3(Problem::right_byte(b, row, column));
  };
  EXPECT_THAT(problem.diagnose_reading(),
              testing::ElementsAre("swapped_nibbles_a", "swapped_nibbles_b"));
}

TEST(Documentation, NamesEveryHypothesis) {
  std::ifstream file(NIBBLE_SOURCE_DIR "/docs/verdicts.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  ASSERT_FALSE(text.empty());
  for (const auto& info : hypotheses()) {
    std::string family(info.name);
    for (const std::string suffix : {"_a", "_b", "_ab"}) {
      if (family.ends_with(suffix) && text.find("`" + family + "`") == std::string::npos) {
        family.resize(family.size() - suffix.size());
        break;
      }
    }
    EXPECT_NE(text.find("`" + family + "`"), std::string::npos) << info.name;
    EXPECT_FALSE(info.advice.empty()) << info.name;
  }
}

}  // namespace
}  // namespace nibble
