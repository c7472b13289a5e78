// SPDX-License-Identifier: Apache-2.0
// The parts of read_cpu() that read texts, so that tests give them texts of other machines.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace nibble {

struct CpuText {
  std::string model;  // "AMD EPYC 9654"; on Arm from the implementer and part numbers
  std::vector<std::string> vector_extensions;  // the kernel's names; "neon" for Arm's asimd
};

// /proc/cpuinfo of x86 or aarch64. What is not in it stays empty.
CpuText parse_cpuinfo(std::string_view text);

// "32768K", "32M", "512" as sysfs writes it; 0 where it is no size.
std::int64_t parse_cache_size(std::string_view text);

// Bytes of the highest-level caches that `cpus` can use, each counted once. `root` is
// /sys/devices/system/cpu. 0 where sysfs says nothing.
std::int64_t last_level_cache_bytes(const std::filesystem::path& root,
                                    const std::vector<int>& cpus);

// The CPUs that this process may run on; never empty.
std::vector<int> usable_cpus();

}  // namespace nibble
