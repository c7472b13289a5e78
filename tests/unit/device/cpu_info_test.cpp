// SPDX-License-Identifier: Apache-2.0
#include "device/cpu_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "device/environment.h"

namespace nibble {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Excerpts of /proc/cpuinfo in the kernel's own layout.
constexpr const char* kX86 =
    "processor\t: 0\n"
    "vendor_id\t: AuthenticAMD\n"
    "cpu family\t: 25\n"
    "model\t\t: 17\n"
    "model name\t: AMD EPYC 9654 96-Core Processor\n"
    "flags\t\t: fpu sse sse2 ssse3 fma cx16 avx f16c avx2 avx512f avx512dq avx512bw avx512vl "
    "avx512_bf16 avx512vbmi avx512_vbmi2 avx512_vnni avx512_bitalg\n"
    "bugs\t\t: avx512_fp16\n"
    "\n"
    "processor\t: 1\n"
    "model name\t: another\n";

constexpr const char* kOldX86 =
    "processor\t: 0\n"
    "model name\t: Intel(R) Core(TM) i5-2400 CPU @ 3.10GHz\n"
    "flags\t\t: fpu sse sse2 ssse3 sse4_1 sse4_2 avx avx2x xavx2\n";

constexpr const char* kArm =
    "processor\t: 0\n"
    "BogoMIPS\t: 2000.00\n"
    "Features\t: fp asimd evtstrm aes asimdhp asimddp sve i8mm bf16 sve2\n"
    "CPU implementer\t: 0x41\n"
    "CPU architecture: 8\n"
    "CPU variant\t: 0x0\n"
    "CPU part\t: 0xd4f\n"
    "CPU revision\t: 0\n";

TEST(Cpuinfo, OfX86) {
  const CpuText cpu = parse_cpuinfo(kX86);
  EXPECT_EQ(cpu.model, "AMD EPYC 9654 96-Core Processor");
  EXPECT_THAT(cpu.vector_extensions, ElementsAre("avx2", "fma", "f16c", "avx512f", "avx512bw",
                                                 "avx512_vbmi", "avx512_vnni", "avx512_bf16"));
}

TEST(Cpuinfo, AFlagIsAWholeWord) {
  EXPECT_THAT(parse_cpuinfo(kOldX86).vector_extensions, IsEmpty());
}

TEST(Cpuinfo, OfArm) {
  const CpuText cpu = parse_cpuinfo(kArm);
  EXPECT_EQ(cpu.model, "Arm Neoverse V2");
  EXPECT_THAT(cpu.vector_extensions, ElementsAre("neon", "asimddp", "i8mm", "bf16", "sve", "sve2"));
}

TEST(Cpuinfo, OfAnUnknownArmCore) {
  EXPECT_EQ(parse_cpuinfo("CPU implementer\t: 0x99\nCPU part\t: 0xabc\n").model,
            "aarch64, implementer 0x99, part 0xabc");
}

TEST(Cpuinfo, WhatIsNotThereStaysEmpty) {
  for (const char* text : {"", "\n\n", ":", "model name", "flags", "\xff\xfe:\n"}) {
    EXPECT_EQ(parse_cpuinfo(text).model, "") << text;
    EXPECT_THAT(parse_cpuinfo(text).vector_extensions, IsEmpty()) << text;
  }
}

TEST(CacheSize, AsSysfsWritesIt) {
  EXPECT_EQ(parse_cache_size("32768K\n"), 33554432);
  EXPECT_EQ(parse_cache_size("32M"), 33554432);
  EXPECT_EQ(parse_cache_size("512"), 512);
  for (const char* text : {"", "K", "-1K", "12G3", "99999999999999999999K"})
    EXPECT_EQ(parse_cache_size(text), 0) << text;
}

class CacheTree : public testing::Test {
 protected:
  CacheTree() : root_(testing::TempDir() + "nibble_caches_" + std::to_string(getpid())) {}
  ~CacheTree() override { std::filesystem::remove_all(root_); }

  void add(int cpu, int index, const char* level, const char* type, const char* size,
           const char* shared) {
    const auto folder =
        root_ / ("cpu" + std::to_string(cpu)) / "cache" / ("index" + std::to_string(index));
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "level") << level << "\n";
    std::ofstream(folder / "type") << type << "\n";
    std::ofstream(folder / "size") << size << "\n";
    std::ofstream(folder / "shared_cpu_list") << shared << "\n";
  }

  std::filesystem::path root_;
};

// Four CPUs, two of which share each last-level cache.
TEST_F(CacheTree, CountsEachLastLevelCacheOnce) {
  for (int cpu = 0; cpu < 4; ++cpu) {
    const std::string own = std::to_string(cpu);
    add(cpu, 0, "1", "Data", "32K", own.c_str());
    add(cpu, 1, "1", "Instruction", "64K", own.c_str());
    add(cpu, 2, "2", "Unified", "1024K", own.c_str());
    add(cpu, 3, "3", "Unified", "16384K", cpu < 2 ? "0-1" : "2-3");
  }
  EXPECT_EQ(last_level_cache_bytes(root_, {0, 1, 2, 3}), std::int64_t{32} << 20);
  EXPECT_EQ(last_level_cache_bytes(root_, {1}), std::int64_t{16} << 20);
  EXPECT_EQ(last_level_cache_bytes(root_, {7}), 0);
}

TEST_F(CacheTree, AnInstructionCacheIsNoLastLevel) {
  add(0, 0, "1", "Data", "32K", "0");
  add(0, 1, "2", "Instruction", "64K", "0");
  EXPECT_EQ(last_level_cache_bytes(root_, {0}), 32 << 10);
}

TEST(ReadCpu, OfThisMachine) {
  const CpuInfo cpu = read_cpu();
  EXPECT_EQ(cpu.logical_cpus, static_cast<int>(usable_cpus().size()));
  EXPECT_GE(cpu.logical_cpus, 1);
  EXPECT_GT(cpu.memory_bytes, std::int64_t{1} << 28);
  EXPECT_NE(cpu.dispatch_target, "");
}

}  // namespace
}  // namespace nibble
