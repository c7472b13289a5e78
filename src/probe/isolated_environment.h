// SPDX-License-Identifier: Apache-2.0
// What is on this machine, read by a child: opening a library runs code of its own, which may crash
// or hang.
#pragma once

#include <string>
#include <vector>

#include "core/report.h"

namespace nibble {

// `worker` is the command that calls run_environment_worker. Where it fails, what this process can
// see without opening a library, and the reason as the only entry of `libraries`.
Environment read_environment_isolated(const std::vector<std::string>& worker = {"/proc/self/exe",
                                                                                "worker",
                                                                                "--environment"},
                                      double limit_s = 60);

}  // namespace nibble
