// SPDX-License-Identifier: Apache-2.0
// What is on this machine: CPU, GPUs, libraries. Absent things are findings, never errors.
#pragma once

#include "core/report.h"

namespace nibble {

CpuInfo read_cpu();
Environment read_environment();

}  // namespace nibble
