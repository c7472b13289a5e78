// SPDX-License-Identifier: Apache-2.0
// A backend that makes exactly one mistake with its operands: the hypothesis of that mistake is
// named, and none that predicts something else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mistaken_gemm.h"

namespace nibble {
namespace {

using testing::Contains;
using testing::IsEmpty;

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
}  // namespace
}  // namespace nibble
