// SPDX-License-Identifier: Apache-2.0
#include "device/libraries.h"

#include <fmt/format.h>

#include <cstddef>

#include "device/find_ggml_library.h"
#include "device/shared_library.h"

namespace nibble {
namespace {

// Each reads the version of an open library; empty where it cannot. The signatures are those of the
// libraries' public headers.
using ReadVersion = std::string (*)(const SharedLibrary& library);

std::string read_openblas(const SharedLibrary& library) {
  const auto config = library.function<char*()>("openblas_get_config");
  return config ? openblas_version((*config)()) : "";
}

std::string read_onednn(const SharedLibrary& library) {
  struct Version {  // dnnl_version_t starts so in versions 2 and 3
    int major, minor, patch;
  };
  const auto version = library.function<const Version*()>("dnnl_version");
  if (!version) return "";
  const Version* numbers = (*version)();
  return fmt::format("{}.{}.{}", numbers->major, numbers->minor, numbers->patch);
}

std::string read_ggml(const SharedLibrary& library) {
  const auto version = library.function<const char*()>("ggml_version");
  return version ? (*version)() : "";
}

std::string read_cuda_driver(const SharedLibrary& library) {
  const auto version = library.function<int(int*)>("cuDriverGetVersion");  // needs no cuInit
  int number = 0;
  return version && (*version)(&number) == 0 ? cuda_version(number) : "";
}

std::string read_nvml(const SharedLibrary& library) {
  const auto init = library.function<int()>("nvmlInit_v2");
  const auto version = library.function<int(char*, unsigned)>("nvmlSystemGetNVMLVersion");
  const auto shutdown = library.function<int()>("nvmlShutdown");
  if (!init || !version || !shutdown || (*init)() != 0) return "";
  char text[80] = {};
  const bool read = (*version)(text, sizeof(text) - 1) == 0;
  (*shutdown)();
  return read ? text : "";
}

std::string read_cublaslt(const SharedLibrary& library) {
  const auto version = library.function<std::size_t()>("cublasLtGetVersion");
  return version ? packed_version(static_cast<std::int64_t>((*version)())) : "";
}

std::string read_cudnn(const SharedLibrary& library) {
  const auto version = library.function<std::size_t()>("cudnnGetVersion");
  return version ? packed_version(static_cast<std::int64_t>((*version)())) : "";
}

std::string read_nvrtc(const SharedLibrary& library) {
  const auto version = library.function<int(int*, int*)>("nvrtcVersion");
  int major = 0, minor = 0;
  return version && (*version)(&major, &minor) == 0 ? fmt::format("{}.{}", major, minor) : "";
}

struct KnownLibrary {
  const char* name;
  std::vector<std::string> files;  // empty: found by find_ggml_library()
  const char* how_to_get;
  ReadVersion version;
};

// By name through the loader, then where NVIDIA's toolkit lies unless it is told otherwise.
std::vector<std::string> in_toolkit(std::vector<std::string> files) {
  const std::size_t count = files.size();
  for (std::size_t i = 0; i < count; ++i) files.push_back("/usr/local/cuda/lib64/" + files[i]);
  return files;
}

std::vector<KnownLibrary> known_libraries() {
  return {
      {"openblas",
       {"libopenblas.so.0", "libopenblas.so"},
       "apt-get install libopenblas0-pthread",
       read_openblas},
      {"onednn", {"libdnnl.so.3", "libdnnl.so.2"}, "apt-get install libdnnl-dev", read_onednn},
      {"ggml", {}, "", read_ggml},
      {"libcuda", {"libcuda.so.1"}, "it comes with the NVIDIA driver", read_cuda_driver},
      {"nvml", {"libnvidia-ml.so.1"}, "it comes with the NVIDIA driver", read_nvml},
      {"cublaslt", in_toolkit({"libcublasLt.so.13", "libcublasLt.so.12"}),
       "it comes with the CUDA toolkit and with the PyPI package nvidia-cublas", read_cublaslt},
      {"cudnn", in_toolkit({"libcudnn.so.9"}),
       "it comes from NVIDIA's package repository and with the PyPI package nvidia-cudnn-cu13",
       read_cudnn},
      {"nvrtc", in_toolkit({"libnvrtc.so.13", "libnvrtc.so.12"}),
       "it comes with the CUDA toolkit and with the PyPI package nvidia-cuda-nvrtc", read_nvrtc},
  };
}

LibraryInfo read_library(const KnownLibrary& known) {
  LibraryInfo info;
  info.name = known.name;
  const auto library = known.files.empty() ? find_ggml_library()
                                           : SharedLibrary::open(known.files, known.how_to_get);
  if (!library) {
    info.note = library.error().message;
    return info;
  }
  info.path = library->path();
  if (std::string version = known.version(*library); !version.empty())
    info.version = std::move(version);
  else
    info.note = "it does not say its version";
  return info;
}

// The few functions of NVML that name the GPUs; nvmlReturn_t is 0 for success.
struct Nvml {
  using Device = void*;
  struct Memory {  // nvmlMemory_t
    unsigned long long total, free, used;
  };
  Result<int (*)()> init, shutdown;
  Result<const char* (*)(int)> error_text;
  Result<int (*)(unsigned*)> count;
  Result<int (*)(unsigned, Device*)> handle;
  Result<int (*)(Device, char*, unsigned)> name, uuid;
  Result<int (*)(Device, Memory*)> memory;
  Result<int (*)(Device, int*, int*)> capability;

  explicit Nvml(const SharedLibrary& library)
      : init(library.function<int()>("nvmlInit_v2")),
        shutdown(library.function<int()>("nvmlShutdown")),
        error_text(library.function<const char*(int)>("nvmlErrorString")),
        count(library.function<int(unsigned*)>("nvmlDeviceGetCount_v2")),
        handle(library.function<int(unsigned, Device*)>("nvmlDeviceGetHandleByIndex_v2")),
        name(library.function<int(Device, char*, unsigned)>("nvmlDeviceGetName")),
        uuid(library.function<int(Device, char*, unsigned)>("nvmlDeviceGetUUID")),
        memory(library.function<int(Device, Memory*)>("nvmlDeviceGetMemoryInfo")),
        capability(
            library.function<int(Device, int*, int*)>("nvmlDeviceGetCudaComputeCapability")) {}

  bool complete() const {
    return init && shutdown && error_text && count && handle && name && uuid && memory &&
           capability;
  }
};

GpuInfo read_gpu(const Nvml& nvml, Nvml::Device device) {
  constexpr unsigned kTextBytes = 96;  // NVML's own buffers for names and UUIDs
  char text[kTextBytes + 1] = {};
  GpuInfo gpu;
  if ((*nvml.name)(device, text, kTextBytes) == 0) gpu.name = text;
  if ((*nvml.uuid)(device, text, kTextBytes) == 0) gpu.uuid = text;
  Nvml::Memory memory = {};
  if ((*nvml.memory)(device, &memory) == 0)
    gpu.memory_bytes = static_cast<std::int64_t>(memory.total);
  int major = 0, minor = 0;
  if ((*nvml.capability)(device, &major, &minor) == 0)
    gpu.compute_capability = fmt::format("{}.{}", major, minor);
  return gpu;
}

}  // namespace

std::string openblas_version(std::string_view config) {
  const std::size_t begin = config.find(' ');
  if (begin == std::string_view::npos) return std::string(config);
  return std::string(config.substr(begin + 1, config.find(' ', begin + 1) - begin - 1));
}

std::string packed_version(std::int64_t number) {
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

std::string cuda_version(int number) {
  return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

std::vector<LibraryInfo> read_libraries() {
  std::vector<LibraryInfo> libraries;
  for (const KnownLibrary& known : known_libraries()) libraries.push_back(read_library(known));
  return libraries;
}

std::vector<GpuInfo> read_gpus(std::string& reason) {
  const auto library = SharedLibrary::open({"libnvidia-ml.so.1"}, "");
  if (!library) {
    reason = "no NVIDIA driver: " + library.error().message;
    return {};
  }
  const Nvml nvml(*library);
  if (!nvml.complete()) {
    reason = library->path() + " lacks functions of NVML";
    return {};
  }
  if (const int status = (*nvml.init)(); status != 0) {
    reason = fmt::format("NVML does not start: {}", (*nvml.error_text)(status));
    return {};
  }
  std::vector<GpuInfo> gpus;
  unsigned count = 0;
  if (const int status = (*nvml.count)(&count); status != 0)
    reason = fmt::format("NVML does not count the GPUs: {}", (*nvml.error_text)(status));
  else if (count == 0)
    reason = "the NVIDIA driver is here, and sees no GPU";
  for (unsigned i = 0; i < count; ++i) {
    Nvml::Device device = nullptr;
    if ((*nvml.handle)(i, &device) == 0) gpus.push_back(read_gpu(nvml, device));
  }
  if (gpus.empty() && reason.empty()) reason = "NVML opens none of its GPUs";
  (*nvml.shutdown)();
  return gpus;
}

}  // namespace nibble
