// SPDX-License-Identifier: Apache-2.0
// One Report that has every verdict kind and fills every field: what all writers are tested on.
#pragma once

#include "core/report.h"

namespace nibble {

Accuracy right_accuracy();
Accuracy wrong_accuracy();
Report sample_report();

}  // namespace nibble
