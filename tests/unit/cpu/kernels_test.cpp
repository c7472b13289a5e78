// SPDX-License-Identifier: Apache-2.0
// The parts of the CPU GEMM: packed weights and records hold their tensors exactly, every
// instruction set gives the bits of the plain functions, the pool does each piece once.
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>
#include <set>
#include <thread>

#include "cpu/activation_records.h"
#include "cpu/plain_kernels.h"
#include "cpu/worker_pool.h"
#include "cpu_operands.h"

namespace nibble::test {
namespace {

TEST(PackedWeights, HoldEveryCodeAndScale) {
  Random random(31);
  for (const auto format : {Format::nvfp4, Format::mxfp4}) {
    const auto b = random_blocks(format, 37, 96, ScaleOrder::tiled_128x4, 1, 254, random);
    const auto packed = pack_weights(b.view()).value();
    for (std::int64_t row = 0; row < b.rows; ++row) {
      for (std::int64_t column = 0; column < b.columns; ++column) {
        ASSERT_EQ(packed.code(row, column), b.view().code(row, column));
        const auto block = column / block_size(format);
        ASSERT_EQ(packed.scale(row, block), b.view().scale(row, block));
      }
    }
  }
}

TEST(PackedWeights, AreNoLargerThanWhatTheyHold) {
  const auto nvfp4 = pack_weights(make_block_tensor(Format::nvfp4, 64, 256)->view()).value();
  EXPECT_EQ(nvfp4.codes.size() + nvfp4.scales.size(), 64 * 256 * 9 / 16);
  const auto mxfp4 = pack_weights(make_block_tensor(Format::mxfp4, 64, 256)->view()).value();
  EXPECT_EQ(mxfp4.codes.size() + mxfp4.scales.size(), 64 * 256 * 17 / 32);
}

// What a record holds of element i, without the factor that the kernels leave out.
double held(const DenseRecord& record, int i, Format b_format) {
  const double integer =
      record.digits[0][i] * 65536.0 + record.digits[1][i] * 256.0 + record.digits[2][i];
  return integer * record.scale * (b_format == Format::nvfp4 ? 0x1p-7 : 2.0);
}

TEST(DenseRecords, AddUpToEveryElementExactly) {
  Random random(32);
  for (const auto type : {DenseType::bf16, DenseType::f16}) {
    for (const auto format : {Format::nvfp4, Format::mxfp4}) {
      DenseTensor a(type, 1, 65536);
      std::int64_t element = 0;
      std::array<double, 65536> expected{};
      for (std::uint32_t bits = 0; bits < 65536; ++bits) {  // scattered over the groups
        const auto pattern = static_cast<std::uint16_t>(bits * 40503u);
        a.set_bits(0, element, pattern);
        if (!std::isfinite(a.view().value(0, element))) a.set_bits(0, element, 0);
        expected[static_cast<std::size_t>(element)] = a.view().value(0, element);
        ++element;
      }
      std::vector<DenseRecord> records(65536 / 16);
      std::vector<ExtraDenseRecord> extra;
      ASSERT_EQ(make_records(a.view(), 0, format, records, extra), RowKind::records);
      EXPECT_FALSE(extra.empty());
      std::vector<double> sums(65536);
      auto add = [&](std::int64_t group, const DenseRecord& record) {
        std::int32_t sum = 0;
        for (int i = 0; i < 16; ++i) {
          sums[static_cast<std::size_t>(group * 16 + i)] += held(record, i, format);
          sum += record.digits[0][i] * 65536 + record.digits[1][i] * 256 + record.digits[2][i];
        }
        EXPECT_EQ(record.correction, static_cast<std::int32_t>(-12u * static_cast<unsigned>(sum)));
      };
      for (std::size_t g = 0; g < records.size(); ++g) {
        add(static_cast<std::int64_t>(g), records[g]);
      }
      for (const auto& [group, record] : extra) add(group, record);
      for (std::size_t i = 0; i < 65536; ++i) ASSERT_EQ(sums[i], expected[i]) << i;
    }
  }
}

TEST(DenseRecords, OrdinaryRowsNeedFewFurtherOnes) {
  Random random(33);
  for (const auto type : {DenseType::bf16, DenseType::f16}) {
    const auto a = normal_dense(type, 1, 16 * 4096, random);
    std::vector<DenseRecord> records(4096);
    std::vector<ExtraDenseRecord> extra;
    ASSERT_EQ(make_records(a.view(), 0, Format::nvfp4, records, extra), RowKind::records);
    EXPECT_LT(extra.size(), 80u);  // under two in a hundred groups
  }
}

template <class R>
R random_record(Random& random) {
  R record{};
  std::int32_t sum = 0;
  for (int i = 0; i < kGroupElements; ++i) {
    std::int32_t integer = 0;
    for (auto& digit : record.digits) {
      const bool one_digit = std::size(record.digits) == 1;
      digit[i] = static_cast<std::int8_t>(one_digit ? static_cast<int>(random() % 25) - 12
                                                    : static_cast<int>(random() % 255) - 127);
      integer = integer * 256 + digit[i];
    }
    sum += integer;
  }
  record.correction = static_cast<std::int32_t>(-12u * static_cast<unsigned>(sum));
  record.scale = std::ldexp(1.0f, static_cast<int>(random() % 40) - 20);
  return record;
}

// Extreme digits of one sign against extreme codes: the 16-bit sums of some targets at their limit.
DenseRecord extreme_record(int digit) {
  DenseRecord record{};
  for (auto& digits : record.digits) {
    for (auto& each : digits) each = static_cast<std::int8_t>(digit);
  }
  record.correction = static_cast<std::int32_t>(-12u * static_cast<unsigned>(16 * digit * 65793));
  record.scale = 1;
  return record;
}

// Targets without FMA round the product with the block scale apart: equal where it is exact.
bool has_fma(const GemmKernels& kernels) {
  const std::string_view target = kernels.target;
  return !target.starts_with("SS");
}

class KernelTargets : public testing::Test {
 protected:
  static constexpr std::int64_t kGroups = 30;
  Random random{34};
  BlockTensor b =
      random_blocks(Format::nvfp4, 32, 16 * kGroups, ScaleOrder::row_major, 0, 126, random);
  PackedWeights packed = pack_weights(b.view()).value();
  PanelView panel(std::int64_t index) const {
    return {packed.format, packed.panel_codes(index), packed.panel_scales(index), kGroups};
  }
};

TEST_F(KernelTargets, OneRowHasThePlainBits) {
  std::vector<CodeRecord> codes;
  std::vector<DenseRecord> dense;
  for (std::int64_t i = 0; i < kGroups; ++i) {
    codes.push_back(random_record<CodeRecord>(random));
    dense.push_back(i % 3 == 0 ? extreme_record(i % 2 ? 127 : -128)
                               : random_record<DenseRecord>(random));
  }
  std::array<float, 16> plain_codes{}, plain_dense{};
  plain_gemm_kernels().add_codes(codes.data(), panel(1), plain_codes.data());
  plain_gemm_kernels().add_dense(dense.data(), panel(1), plain_dense.data());
  on_every_target([&] {
    std::array<float, 16> sums{};
    gemm_kernels().add_codes(codes.data(), panel(1), sums.data());
    EXPECT_EQ(sums, plain_codes);
    if (!has_fma(gemm_kernels())) return;
    sums = {};
    gemm_kernels().add_dense(dense.data(), panel(1), sums.data());
    EXPECT_EQ(sums, plain_dense);
  });
}

TEST_F(KernelTargets, DecodingAndTilesHaveThePlainBits) {
  std::vector<DecodedGroup> plain(2 * kGroups);
  for (int p = 0; p < 2; ++p) plain_gemm_kernels().decode(panel(p), &plain[p * kGroups]);
  std::vector<CodeRecord> codes;
  std::vector<DenseRecord> dense;
  for (std::int64_t i = 0; i < kGroups * kTileRows; ++i) {
    codes.push_back(random_record<CodeRecord>(random));
    dense.push_back(random_record<DenseRecord>(random));
  }
  using Tile = std::array<float, kTileRows * kTileColumns>;
  Tile plain_codes{}, plain_dense{};
  plain_gemm_kernels().add_code_tile(codes.data(), plain.data(), kGroups, kGroups,
                                     plain_codes.data());
  plain_gemm_kernels().add_dense_tile(dense.data(), plain.data(), kGroups, kGroups,
                                      plain_dense.data());
  on_every_target([&] {
    std::vector<DecodedGroup> decoded(2 * kGroups);
    for (int p = 0; p < 2; ++p) gemm_kernels().decode(panel(p), &decoded[p * kGroups]);
    ASSERT_EQ(std::memcmp(decoded.data(), plain.data(), decoded.size() * sizeof(DecodedGroup)), 0);
    Tile sums{};
    gemm_kernels().add_code_tile(codes.data(), plain.data(), kGroups, kGroups, sums.data());
    EXPECT_EQ(sums, plain_codes);
    if (!has_fma(gemm_kernels())) return;
    sums = {};
    gemm_kernels().add_dense_tile(dense.data(), plain.data(), kGroups, kGroups, sums.data());
    EXPECT_EQ(sums, plain_dense);
  });
}

// Every bf16 and f16, its neighbours in f32 and the ties between, by the codecs of core.
TEST_F(KernelTargets, StoringRoundsAsTheCodecsDo) {
  std::vector<float> values;
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    for (const std::uint32_t below : {0u, 1u, 0x7FFFu, 0x8000u, 0x8001u}) {
      values.push_back(std::bit_cast<float>((bits << 16) | below));
    }
    const auto half = std::bit_cast<std::uint32_t>(f16_value(static_cast<std::uint16_t>(bits)));
    for (const std::uint32_t more : {0u, 0xFFFu, 0x1000u, 0x1001u}) {
      values.push_back(std::bit_cast<float>(half + more));
    }
  }
  on_every_target([&] {
    std::vector<std::uint16_t> narrow(values.size());
    auto* to = reinterpret_cast<std::byte*>(narrow.data());
    const auto count = static_cast<std::int64_t>(values.size());
    EXPECT_FALSE(gemm_kernels().store(values.data(), {OutType::bf16, to, count, 1.0f}));
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::isnan(values[i])) {
        ASSERT_TRUE(std::isnan(bf16_value(narrow[i])));
      } else {
        ASSERT_EQ(narrow[i], bf16_encode(values[i])) << values[i];
      }
    }
    gemm_kernels().store(values.data(), {OutType::f16, to, count, 1.0f});
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::isnan(values[i])) {
        ASSERT_TRUE(std::isnan(f16_value(narrow[i])));
      } else {
        ASSERT_EQ(narrow[i], f16_encode(values[i])) << values[i];
      }
    }
    const std::array<float, 3> finite{1, -2, 3};
    EXPECT_TRUE(gemm_kernels().store(finite.data(), {OutType::bf16, to, 3, 1.0f}));
  });
}

TEST(WorkerPool, DoesEachPieceOnce) {
  WorkerPool pool;
  for (const int threads : {1, 2, 5, 0}) {
    for (const std::int64_t pieces : {0, 1, 3, 1000}) {
      std::vector<std::atomic<int>> done(static_cast<std::size_t>(pieces));
      pool.run(threads, pieces, [&](std::int64_t i) { ++done[static_cast<std::size_t>(i)]; });
      for (const auto& count : done) ASSERT_EQ(count, 1);
    }
  }
}

TEST(WorkerPool, KeepsToTheThreadsAskedFor) {
  WorkerPool pool;
  for (const int threads : {5, 2, 3, 1}) {
    std::mutex mutex;
    std::set<std::thread::id> seen;
    pool.run(threads, 60, [&](std::int64_t) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      const std::lock_guard lock(mutex);
      seen.insert(std::this_thread::get_id());
    });
    EXPECT_LE(seen.size(), static_cast<std::size_t>(threads));
  }
}

TEST(WorkerPool, ServesSeveralCallersAndCallsFromWithin) {
  WorkerPool pool;
  std::atomic<std::int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int again = 0; again < 200; ++again) {
        pool.run(3, 5, [&](std::int64_t) { pool.run(3, 4, [&](std::int64_t i) { sum += i; }); });
      }
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(sum, 4 * 200 * 5 * (0 + 1 + 2 + 3));
}

}  // namespace
}  // namespace nibble::test
