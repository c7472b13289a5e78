// SPDX-License-Identifier: Apache-2.0
// Backends that misbehave on purpose, each in one way, to prove that the probe gives each its own
// verdict and lets no neighbour change. Hidden: `--backend fake-segfault` finds one, no list shows
// them.
#pragma once

#include <memory>
#include <vector>

#include "backends/backend.h"

namespace nibble {

std::vector<std::unique_ptr<Backend>> make_fake_backends();

}  // namespace nibble
