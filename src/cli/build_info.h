// SPDX-License-Identifier: Apache-2.0
// Which nibble this is. The definitions are generated at build time.
#pragma once

#include "core/report.h"

namespace nibble {

const char* version_text();  // "0.1.0"
GitState git_state();        // sha "unknown" where the sources were no git checkout

}  // namespace nibble
