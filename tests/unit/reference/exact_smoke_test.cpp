// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "core/e2m1.h"
#include "reference/exact_product.h"

namespace nibble {
namespace {

TEST(ExactProduct, HandComputed) {
  auto a = make_block_tensor(Format::nvfp4, 1, 16);
  auto b = make_block_tensor(Format::nvfp4, 2, 16);
  a->codes[0] = pack_codes(7, 2);    // 6, 1
  b->codes[0] = pack_codes(3, 0xF);  // 1.5, -6
  b->codes[8] = pack_codes(2, 7);    // 1, 6
  a->scales = {0x38};                // 1
  b->scales = {0x40, 0x39};          // 2, 1.125
  const GemmInputs inputs{a->view(), b->view(), 0.5f};
  const auto panel = exact_product(inputs, OutType::f32, 0, 1);
  ASSERT_TRUE(panel.has_value());
  EXPECT_EQ(panel->value[0], 3.0);
  EXPECT_EQ(panel->magnitude[0], 15.0);
  EXPECT_EQ(panel->value[1], 6.75);
  EXPECT_EQ(panel->rounded[1], 0x40D80000u);
  EXPECT_TRUE(panel->outside_fp32.empty());
}

}  // namespace
}  // namespace nibble
