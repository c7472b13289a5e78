// SPDX-License-Identifier: Apache-2.0
// The libraries that nibble could use, as found on this machine. Opening one creates no CUDA
// context.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/report.h"

namespace nibble {

// openblas, onednn, ggml, libcuda, nvml, cublaslt, cudnn, nvrtc, in this order; an absent one has a
// note that says what was tried and how to get it.
std::vector<LibraryInfo> read_libraries();

// The GPUs that NVML knows. Where there is none, `reason` says why in one line.
std::vector<GpuInfo> read_gpus(std::string& reason);

// How the libraries write their versions.
std::string openblas_version(std::string_view config);  // "OpenBLAS 0.3.21 NO_LAPACKE ..."
std::string packed_version(std::int64_t number);        // cuBLASLt, cuDNN: 130100 is "13.1.0"
std::string cuda_version(int number);                   // 13020 is "13.2"

}  // namespace nibble
