// SPDX-License-Identifier: Apache-2.0
#include "device/cpu_info.h"

// The same choice of targets as the files with kernels make, so that the name is theirs.
#define HWY_WANT_AVX3_DL
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#include <hwy/targets.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <numeric>
#include <set>
#include <sstream>
#include <thread>

#include "device/environment.h"

namespace nibble {
namespace {

namespace fs = std::filesystem;

constexpr int kMostCaches = 16;  // of one CPU

struct Extension {
  std::string_view flag, name;
};

// Of the flags of /proc/cpuinfo those that decide which FP4 kernels can run.
constexpr Extension kExtensions[] = {{"avx2", "avx2"},
                                     {"fma", "fma"},
                                     {"f16c", "f16c"},
                                     {"avx_vnni", "avx_vnni"},
                                     {"avx512f", "avx512f"},
                                     {"avx512bw", "avx512bw"},
                                     {"avx512_vbmi", "avx512_vbmi"},
                                     {"avx512vbmi", "avx512_vbmi"},
                                     {"avx512_vnni", "avx512_vnni"},
                                     {"avx512_bf16", "avx512_bf16"},
                                     {"avx512_fp16", "avx512_fp16"},
                                     {"amx_int8", "amx_int8"},
                                     {"amx_bf16", "amx_bf16"},
                                     {"asimd", "neon"},
                                     {"asimddp", "asimddp"},
                                     {"i8mm", "i8mm"},
                                     {"bf16", "bf16"},
                                     {"sve", "sve"},
                                     {"sve2", "sve2"}};

struct ArmPart {
  int implementer, part;
  const char* name;
};

// MIDR_EL1 numbers, from the technical reference manuals of the cores.
constexpr ArmPart kArmParts[] = {
    {0x41, 0xd08, "Arm Cortex-A72"},   {0x41, 0xd0b, "Arm Cortex-A76"},
    {0x41, 0xd0c, "Arm Neoverse N1"},  {0x41, 0xd40, "Arm Neoverse V1"},
    {0x41, 0xd49, "Arm Neoverse N2"},  {0x41, 0xd4f, "Arm Neoverse V2"},
    {0x41, 0xd84, "Arm Neoverse V3"},  {0x41, 0xd8e, "Arm Neoverse N3"},
    {0xc0, 0xac3, "Ampere AmpereOne"},
};

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

// The value of the first line "KEY : value".
std::string_view value_of(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos && trimmed(line.substr(0, colon)) == key)
      return trimmed(line.substr(colon + 1));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return {};
}

int number_of(std::string_view text) {
  const bool hexadecimal = text.starts_with("0x");
  if (hexadecimal) text.remove_prefix(2);
  int value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value, hexadecimal ? 16 : 10);
  return value;
}

std::string arm_model(std::string_view cpuinfo) {
  const std::string_view implementer = value_of(cpuinfo, "CPU implementer");
  const std::string_view part = value_of(cpuinfo, "CPU part");
  if (implementer.empty() || part.empty()) return "";
  for (const ArmPart& known : kArmParts) {
    if (known.implementer == number_of(implementer) && known.part == number_of(part))
      return known.name;
  }
  return "aarch64, implementer " + std::string(implementer) + ", part " + std::string(part);
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Bytes of the machine, or of the control group (v2) where that allows less.
std::int64_t memory_bytes() {
  const std::int64_t machine =
      static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
  const std::string limit = read_file("/sys/fs/cgroup/memory.max");
  std::int64_t allowed = 0;
  std::from_chars(limit.data(), limit.data() + limit.size(), allowed);
  return allowed > 0 ? std::min(machine, allowed) : machine;
}

std::string dispatch_target() {
  const std::vector<std::int64_t> targets = hwy::SupportedAndGeneratedTargets();
  return targets.empty() ? "" : hwy::TargetName(targets.front());  // the first is the best
}

}  // namespace

CpuText parse_cpuinfo(std::string_view text) {
  CpuText cpu;
  cpu.model = value_of(text, "model name");
  if (cpu.model.empty()) cpu.model = arm_model(text);
  std::string_view flags = value_of(text, "flags");
  if (flags.empty()) flags = value_of(text, "Features");
  std::istringstream words{std::string(flags)};
  const std::set<std::string, std::less<>> present{std::istream_iterator<std::string>(words), {}};
  for (const Extension& extension : kExtensions) {
    if (present.contains(extension.flag)) cpu.vector_extensions.emplace_back(extension.name);
  }
  return cpu;
}

std::int64_t parse_cache_size(std::string_view text) {
  text = trimmed(text);
  std::int64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc() || size < 0 || size > (std::int64_t{1} << 40)) return 0;
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (unit.empty()) return size;
  if (unit == "K") return size << 10;
  if (unit == "M") return size << 20;
  return 0;
}

std::int64_t last_level_cache_bytes(const fs::path& root, const std::vector<int>& cpus) {
  int highest = 0;
  std::int64_t total = 0;
  std::set<std::string> counted;  // the CPUs that share a cache name it
  for (const int cpu : cpus) {
    const fs::path caches = root / ("cpu" + std::to_string(cpu)) / "cache";
    for (int index = 0; index < kMostCaches; ++index) {
      const fs::path cache = caches / ("index" + std::to_string(index));
      const int level = number_of(trimmed(read_file(cache / "level")));
      if (level < 0) break;
      if (trimmed(read_file(cache / "type")) == "Instruction" || level < highest) continue;
      if (level > highest) {
        highest = level;
        total = 0;
        counted.clear();
      }
      if (counted.insert(read_file(cache / "shared_cpu_list")).second)
        total += parse_cache_size(read_file(cache / "size"));
    }
  }
  return total;
}

std::vector<int> usable_cpus() {
  std::vector<int> cpus;
  for (int most = 1024; most <= 1 << 20; most *= 2) {
    cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(most));
    if (set == nullptr) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(most));
    const bool read = sched_getaffinity(0, bytes, set) == 0;
    for (int cpu = 0; read && cpu < most; ++cpu) {
      if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, set)) cpus.push_back(cpu);
    }
    CPU_FREE(set);
    if (read) break;
  }
  if (cpus.empty()) {
    cpus.resize(std::max(1u, std::thread::hardware_concurrency()));
    std::iota(cpus.begin(), cpus.end(), 0);
  }
  return cpus;
}

CpuInfo read_cpu() {
  const CpuText text = parse_cpuinfo(read_file("/proc/cpuinfo"));
  const std::vector<int> cpus = usable_cpus();
  CpuInfo cpu;
  cpu.model = text.model;
  cpu.logical_cpus = static_cast<int>(cpus.size());
  cpu.last_level_cache_bytes = last_level_cache_bytes("/sys/devices/system/cpu", cpus);
  cpu.memory_bytes = memory_bytes();
  cpu.vector_extensions = text.vector_extensions;
  cpu.dispatch_target = dispatch_target();
  return cpu;
}

}  // namespace nibble
