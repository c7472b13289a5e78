// SPDX-License-Identifier: Apache-2.0
// Runs one case in this process, from supports() to the verdict. Called in a child: a backend may
// crash, hang or spoil the process here.
#pragma once

#include "backends/backend.h"
#include "core/report.h"
#include "probe/case.h"

namespace nibble {

// Fills everything of the outcome but `rerun` and `elapsed_s`. Throws nothing: an exception out of
// a backend is a Failed verdict. A backend that this build does not have is Failed, a library that
// is not here Unsupported.
Outcome run_case(const Case& the_case);

// The same with the backend given. `weights`: B, already loaded; nullptr: loaded where the case
// names a file.
Outcome run_case(const Backend& backend, const Case& the_case,
                 const BlockTensor* weights = nullptr);

}  // namespace nibble
