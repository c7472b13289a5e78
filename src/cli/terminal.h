// SPDX-License-Identifier: Apache-2.0
// What a file descriptor says of the terminal behind it.
#pragma once

namespace nibble {

// `otherwise` where it is no terminal, or one that does not say.
int terminal_columns(int descriptor, int otherwise);

}  // namespace nibble
