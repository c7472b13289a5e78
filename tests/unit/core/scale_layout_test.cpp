// SPDX-License-Identifier: Apache-2.0
// Each layout maps every scale to a place of its own inside the buffer; a few places by hand from
// the definition.
#include "core/scale_layout.h"

#include <gtest/gtest.h>

#include <vector>

namespace nibble {
namespace {

constexpr ScaleOrder kOrders[] = {ScaleOrder::row_major, ScaleOrder::tiled_128x4,
                                  ScaleOrder::tiled_8x4};

static_assert(ScaleLayout{ScaleOrder::tiled_128x4, 256, 8}.offset(33, 5) ==
                  512 + 1 * 16 + 1 * 4 + 1,
              "a layout is usable at compile time");

TEST(ScaleLayout, EveryScaleHasAPlaceOfItsOwn) {
  for (const auto order : kOrders) {
    for (const std::int64_t rows : {0, 1, 7, 8, 9, 127, 128, 129, 300}) {
      for (const std::int64_t blocks : {0, 1, 3, 4, 5, 16, 47}) {
        const ScaleLayout layout{order, rows, blocks};
        std::vector<bool> taken(static_cast<std::size_t>(layout.bytes()));
        for (std::int64_t row = 0; row < rows; ++row) {
          for (std::int64_t block = 0; block < blocks; ++block) {
            const auto at = static_cast<std::size_t>(layout.offset(row, block));
            ASSERT_LT(at, taken.size()) << name(order) << " " << rows << "x" << blocks;
            ASSERT_FALSE(taken[at]) << name(order) << " " << row << "," << block;
            taken[at] = true;
          }
        }
      }
    }
  }
}

TEST(ScaleLayout, PlacesByHand) {
  const ScaleLayout tiled{ScaleOrder::tiled_128x4, 200, 9};  // three tiles across, two down
  EXPECT_EQ(tiled.bytes(), 256 * 12);
  EXPECT_EQ(tiled.offset(0, 3), 3);
  EXPECT_EQ(tiled.offset(1, 0), 16);
  EXPECT_EQ(tiled.offset(32, 0), 4);
  EXPECT_EQ(tiled.offset(127, 3), 31 * 16 + 3 * 4 + 3);
  EXPECT_EQ(tiled.offset(128, 0), 3 * 512);
  EXPECT_EQ(tiled.offset(130, 8), 5 * 512 + 2 * 16);
  const ScaleLayout small{ScaleOrder::tiled_8x4, 10, 6};
  EXPECT_EQ(small.bytes(), 16 * 8);
  EXPECT_EQ(small.offset(7, 3), 7 * 4 + 3);
  EXPECT_EQ(small.offset(9, 5), 3 * 32 + 1 * 4 + 1);
  EXPECT_EQ((ScaleLayout{ScaleOrder::row_major, 10, 6}.offset(9, 5)), 59);
}

TEST(ScaleLayout, OffsetsBeyond32BitsAreRight) {
  const ScaleLayout large{ScaleOrder::tiled_128x4, 3'000'000, 4096};
  EXPECT_EQ(large.offset(2'999'999, 4095), ((2'999'999LL / 128) * 1024 + 1023) * 512 +
                                               (2'999'999 % 32) * 16 + (2'999'999 % 128) / 32 * 4 +
                                               3);
  EXPECT_GT(large.bytes(), std::int64_t{1} << 32);
}

// Bug case C6: a swizzle that reshaped to the sizes before padding.
TEST(LayoutBugCases, C6_PaddedSizesOf130x5) {
  EXPECT_EQ((ScaleLayout{ScaleOrder::tiled_128x4, 130, 5}.bytes()), 256 * 8);
}

}  // namespace
}  // namespace nibble
