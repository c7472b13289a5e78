// SPDX-License-Identifier: Apache-2.0
// How --help looks.
#pragma once

#include <initializer_list>

namespace CLI {
class App;
}

namespace nibble {

// For `app` and every subcommand that is added afterwards.
void use_help_format(CLI::App& app);

// Flags that --help leaves out so that it fits a screen; --help-all has them.
void leave_to_help_all(CLI::App& app, std::initializer_list<const char*> flags);

}  // namespace nibble
