// SPDX-License-Identifier: Apache-2.0
// tools/completion/nibble.bash, asked as bash asks it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace nibble {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The words that bash would offer for the last of `words`, one a line.
std::string completions(const std::string& words) {
  const std::string script = "PATH=" NIBBLE_BINARY_DIR ":$PATH; source " NIBBLE_SOURCE_DIR
                             "/tools/completion/nibble.bash; COMP_WORDS=(" +
                             words +
                             "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _nibble; "
                             "printf \"%s\\n\" \"${COMPREPLY[@]}\"";
  FILE* pipe = popen(("bash -c '" + script + "'").c_str(), "r");
  if (pipe == nullptr) return "";
  std::string text;
  for (int c; (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
  pclose(pipe);
  return text;
}

TEST(Completion, OffersCommandsFlagsAndValues) {
  EXPECT_THAT(completions("nibble d"), HasSubstr("doctor"));
  EXPECT_THAT(completions("nibble d"), Not(HasSubstr("list")));
  EXPECT_THAT(completions("nibble \"\""), Not(HasSubstr("worker")));
  EXPECT_EQ(completions("nibble list --j"), "--json\n");
  EXPECT_EQ(completions("nibble list --color a"), "auto\nalways\n");
  EXPECT_EQ(completions("nibble list e"), "experiments\n");
  EXPECT_THAT(completions("nibble probe --backend o"), HasSubstr("openblas"));
  EXPECT_EQ(completions("nibble probe --experiment ca"), "canary\n");
}

}  // namespace
}  // namespace nibble
