// SPDX-License-Identifier: Apache-2.0
// Golden files: a text is compared with a file of the tree, or written there where
// NIBBLE_UPDATE_GOLDEN=1 is set.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace nibble {

inline void expect_golden(const std::string& path, const std::string& text) {
  const char* update = std::getenv("NIBBLE_UPDATE_GOLDEN");
  if (update != nullptr && *update != '\0') {
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  std::ifstream file(path, std::ios::binary);
  ASSERT_TRUE(file) << path << " is missing: run again with NIBBLE_UPDATE_GOLDEN=1";
  const std::string expected{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text, expected) << path
                            << "; where the change is meant, NIBBLE_UPDATE_GOLDEN=1 writes it";
}

}  // namespace nibble
