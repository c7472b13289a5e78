// SPDX-License-Identifier: Apache-2.0
#include "cli/run_nibble.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace nibble {
namespace {

std::string take_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  std::filesystem::remove(path);
  return text;
}

}  // namespace

ProgramResult run_nibble(const std::string& arguments, const std::string& prefix) {
  const std::string base = testing::TempDir() + "nibble_cli_" + std::to_string(getpid());
  const std::string out = base + ".out", err = base + ".err";
  const std::string command = prefix + " " NIBBLE_BINARY_DIR "/nibble " + arguments + " >" + out +
                              " 2>" + err + " </dev/null";
  const int status = std::system(command.c_str());
  ProgramResult result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = take_file(out);
  result.err = take_file(err);
  return result;
}

}  // namespace nibble
