// SPDX-License-Identifier: Apache-2.0
// How --help looks.
#pragma once

namespace CLI {
class App;
}

namespace nibble {

// For `app` and every subcommand that is added afterwards.
void use_help_format(CLI::App& app);

}  // namespace nibble
