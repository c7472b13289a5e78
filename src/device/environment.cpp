// SPDX-License-Identifier: Apache-2.0
#include "device/environment.h"

#include "device/libraries.h"

namespace nibble {

Environment read_environment() {
  Environment environment;
  environment.cpu = read_cpu();
  environment.gpus = read_gpus(environment.no_gpu_reason);
  environment.libraries = read_libraries();
  return environment;
}

}  // namespace nibble
