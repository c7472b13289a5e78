// SPDX-License-Identifier: Apache-2.0
// The child of the isolation tests: what `nibble worker` is, without the rest of nibble.
#include "core/worker_channel.h"
#include "probe/worker.h"

int main(int argc, char**) {
  if (argc > 1) return nibble::run_environment_worker(nibble::kWorkerResultFd);
  return nibble::run_worker(nibble::kWorkerCaseFd, nibble::kWorkerResultFd);
}
