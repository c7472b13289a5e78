// SPDX-License-Identifier: Apache-2.0
#include "probe/guarded_buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nibble {
namespace {

using testing::HasSubstr;

GuardedBuffer make(std::int64_t bytes, const GuardOptions& options = {}) {
  auto buffer = GuardedBuffer::create(MemoryKind::host, bytes, 0xAB, options);
  EXPECT_TRUE(buffer);
  return std::move(*buffer);
}

TEST(GuardedBuffer, IsFilledAndSound) {
  for (const std::int64_t bytes : {0, 1, 4095, 4096, 4097, 100000}) {
    auto buffer = make(bytes);
    ASSERT_EQ(static_cast<std::int64_t>(buffer.bytes().size()), bytes);
    for (const std::byte byte : buffer.bytes()) ASSERT_EQ(byte, std::byte{0xAB});
    for (std::byte& byte : buffer.bytes()) byte = std::byte{0x11};
    EXPECT_EQ(buffer.damage(), "");
  }
}

TEST(GuardedBuffer, SeesOneByteOnEitherSideWhateverItsValue) {
  for (const std::int64_t distance : {1, 2, 63, 4096}) {
    for (const int value : {0x00, 0x7F, 0xAB, 0xFF}) {
      auto behind = make(1000);
      *(behind.bytes().data() + 999 + distance) = static_cast<std::byte>(value);
      EXPECT_EQ(behind.damage(), "1 bytes behind it were written, the nearest at distance " +
                                     std::to_string(distance));
      auto before = make(1000);
      *(before.bytes().data() - distance) = static_cast<std::byte>(value);
      EXPECT_EQ(before.damage(), "1 bytes before it were written, the nearest at distance " +
                                     std::to_string(distance));
    }
  }
}

TEST(GuardedBuffer, NamesBothSides) {
  auto buffer = make(10);
  for (int i = 1; i <= 3; ++i) *(buffer.bytes().data() - i) = std::byte{0};
  *(buffer.bytes().data() + 10) = std::byte{0};
  EXPECT_THAT(buffer.damage(), HasSubstr("3 bytes before"));
  EXPECT_THAT(buffer.damage(), HasSubstr("1 bytes behind"));
}

TEST(GuardedBuffer, LiesWhereItIsAskedTo) {
  for (const std::int64_t misalignment : {0, 1, 4, 255}) {
    GuardOptions options;
    options.misalignment = misalignment;
    const auto buffer = make(64, options);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.bytes().data()) % 256,
              static_cast<std::uintptr_t>(misalignment));
  }
}

TEST(GuardedBuffer, OtherPatternsAreOtherMemory) {
  GuardOptions options;
  options.pattern = 1000;
  const auto one = make(64), two = make(64, options);
  int same = 0;
  for (int i = 0; i < 256; ++i) same += one.bytes().data()[64 + i] == two.bytes().data()[64 + i];
  EXPECT_LT(same, 64);
}

TEST(GuardedBuffer, SurvivesMoves) {
  auto buffer = make(32);
  auto other = std::move(buffer);
  EXPECT_EQ(other.bytes().size(), 32u);
  EXPECT_EQ(other.damage(), "");
  buffer = make(16);
  other = std::move(buffer);
  EXPECT_EQ(other.bytes().size(), 16u);
}

TEST(GuardedBuffer, RefusesSizesThatNoMachineHas) {
  EXPECT_FALSE(GuardedBuffer::create(MemoryKind::host, -1, 0));
  EXPECT_FALSE(GuardedBuffer::create(MemoryKind::host, std::int64_t{1} << 62, 0));
  EXPECT_FALSE(GuardedBuffer::create(MemoryKind::host, std::int64_t{1} << 49, 0));
}

TEST(GuardedBufferDeathTest, FaultsBeyondItsZones) {
  auto buffer = make(100);
  EXPECT_DEATH(*(buffer.bytes().data() + 100 + 2 * 4096) = std::byte{0}, "");
  EXPECT_DEATH(*(buffer.bytes().data() - 4097) = std::byte{0}, "");
}

}  // namespace
}  // namespace nibble
