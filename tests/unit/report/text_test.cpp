// SPDX-License-Identifier: Apache-2.0
#include "report/text.h"

#include <gtest/gtest.h>

namespace nibble {
namespace {

constexpr const char* kBad = "\xEF\xBF\xBD";

TEST(Sanitize, KeepsTextOfAnyScript) {
  for (const char* text : {"", "plain", "naïve", "模型", "a\xF0\x9F\x98\x80z", "x | y"})
    EXPECT_EQ(sanitize(text), text);
}

TEST(Sanitize, RemovesEscapeSequencesWhole) {
  EXPECT_EQ(sanitize("a\x1b[31;1mb\x1b[0mc"), "abc");
  EXPECT_EQ(sanitize("a\x1b]0;title\x07"
                     "b"),
            "ab");
  EXPECT_EQ(sanitize("a\x1b]8;;http://x\x1b\\b"), "ab");
  EXPECT_EQ(sanitize("a\x1bPq#0\x1b\\b"), "ab");
  EXPECT_EQ(sanitize("a\x1b"
                     "cb"),
            "ab");
  EXPECT_EQ(sanitize("a\x1b(Bb"), "ab");
  EXPECT_EQ(sanitize("a\x1b[31"), "a");
  EXPECT_EQ(sanitize("a\x1b"), "a");
  EXPECT_EQ(sanitize("a\x1b]never ends\nb"), "a b");
}

TEST(Sanitize, ReplacesControlsAndBrokenBytes) {
  EXPECT_EQ(sanitize("a\tb\r\nc\nd\re"), "a b c d e");
  EXPECT_EQ(sanitize(std::string_view("a\0b", 3)), std::string("a") + kBad + "b");
  EXPECT_EQ(sanitize("\x7f"), kBad);
  EXPECT_EQ(sanitize("\xc2\x9b"), kBad);      // C1: another way to write CSI
  EXPECT_EQ(sanitize("\xe2\x80\xae"), kBad);  // right-to-left override
  EXPECT_EQ(sanitize("\xff"), kBad);
  EXPECT_EQ(sanitize("\xc0\xaf"), std::string(kBad) + kBad);             // overlong
  EXPECT_EQ(sanitize("\xed\xa0\x80"), std::string(kBad) + kBad + kBad);  // a surrogate
  EXPECT_EQ(sanitize("\xf4\x90\x80\x80"), std::string(kBad) + kBad + kBad + kBad);
  EXPECT_EQ(sanitize("\xe2\x82"), std::string(kBad) + kBad);  // ends too early
}

TEST(Columns, CountCodePoints) {
  EXPECT_EQ(columns_of("naïve"), 5u);
  EXPECT_EQ(fit("naïve", 5), "naïve");
  EXPECT_EQ(fit("naïveté", 4), "naï…");
  EXPECT_EQ(fit("abc", 0), "");
  EXPECT_EQ(pad_right("ï", 3), "ï  ");
  EXPECT_EQ(pad_left("ï", 3), "  ï");
}

TEST(Wrap, BreaksAtSpacesAndElseAnywhere) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(wrap("", 10), Lines{""});
  EXPECT_EQ(wrap("one two three", 7), (Lines{"one two", "three"}));
  EXPECT_EQ(wrap("onetwothree", 4), (Lines{"onet", "woth", "ree"}));
  EXPECT_EQ(wrap("ïïïïï", 2), (Lines{"ïï", "ïï", "ï"}));
  EXPECT_EQ(wrap(" leading", 4), (Lines{" lea", "ding"}));
}

}  // namespace
}  // namespace nibble
