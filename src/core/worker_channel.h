// SPDX-License-Identifier: Apache-2.0
// The descriptors on which a worker gets its cases and gives its answers, one line each: "NONCE
// JSON".
#pragma once

namespace nibble {

inline constexpr int kWorkerCaseFd = 3;
inline constexpr int kWorkerResultFd = 4;

}  // namespace nibble
