// SPDX-License-Identifier: Apache-2.0
// How --help and messages about a wrong command line look.
#pragma once

#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace nibble {

// For `app` and every subcommand that is added afterwards.
void use_help_format(CLI::App& app);

// The parser's messages may hold line ends; a message of ours is one line.
std::string one_line(std::string_view message);

}  // namespace nibble
