// SPDX-License-Identifier: Apache-2.0
// docs/man/nibble.1 has every flag that a command has, and no other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "cli/run_nibble.h"

namespace nibble {
namespace {

std::set<std::string> flags_in(const std::string& text) {
  const std::regex flag("--[a-z][a-z-]*");
  return {std::sregex_token_iterator(text.begin(), text.end(), flag), {}};
}

TEST(ManPage, HasTheFlagsOfTheProgram) {
  std::ifstream file(NIBBLE_SOURCE_DIR "/docs/man/nibble.1");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  std::set<std::string> wanted;
  for (const char* command : {"", "probe", "doctor", "list"}) {
    for (const char* help : {" --help", " --help-all"})
      wanted.merge(flags_in(run_nibble(command + std::string(help)).out));
  }
  EXPECT_EQ(flags_in(std::regex_replace(page, std::regex("\\\\-"), "-")), wanted);
}

}  // namespace
}  // namespace nibble
