// SPDX-License-Identifier: Apache-2.0
// Multiply-adds per second and core of the exact product, a path and a target, by CPU time; and the
// wall time of a whole 4096 x 6144 x 6144 check. A record: --benchmark_out=FILE.json
#include "reference/exact_product.h"

#include <hwy/targets.h>

#include <random>
#include <vector>

#include "record_context.h"
#include "reference/exact_integer_kernel.h"

namespace nibble {
namespace {

constexpr std::int64_t kColumnsOfK = 6144;

BlockTensor random_block_tensor(Format format, std::int64_t rows, std::int64_t columns, int least,
                                int greatest) {
  std::mt19937_64 random(static_cast<std::uint64_t>(rows + 1));
  BlockTensor tensor = *make_block_tensor(format, rows, columns);
  for (auto& byte : tensor.codes) byte = static_cast<std::uint8_t>(random());
  std::uniform_int_distribution<int> scale(least, greatest);
  for (auto& byte : tensor.scales) byte = static_cast<std::uint8_t>(scale(random));
  return tensor;
}

// Normal numbers, rounded to the type.
std::vector<std::byte> random_dense(DenseType type, std::int64_t elements) {
  std::mt19937_64 random(7);
  std::normal_distribution<float> normal;
  std::vector<std::byte> data;
  for (std::int64_t i = 0; i < elements; ++i) {
    const float x = normal(random);
    const auto bits = type == DenseType::f32    ? std::bit_cast<std::uint32_t>(x)
                      : type == DenseType::bf16 ? bf16_encode(x)
                                                : f16_encode(x);
    for (int byte = 0; byte < dense_bytes(type); ++byte) {
      data.push_back(static_cast<std::byte>(bits >> (8 * byte)));
    }
  }
  return data;
}

void count_multiply_adds(benchmark::State& state, const GemmShape& shape) {
  state.counters["multiply_adds_per_s"] = benchmark::Counter(
      static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k),
      benchmark::Counter::kIsIterationInvariantRate);
}

void measure(benchmark::State& state, const GemmInputs& inputs, OutType out,
             const ExactOptions& options) {
  for (auto _ : state) {
    auto panel = exact_product(inputs, out, 0, shape_of(inputs).m, options);
    benchmark::DoNotOptimize(panel);
  }
  count_multiply_adds(state, shape_of(inputs));
}

void integer_path(benchmark::State& state, std::int64_t target, OutType out) {
  const auto a = random_block_tensor(Format::nvfp4, 256, kColumnsOfK, 1, 126);
  const auto b = random_block_tensor(Format::nvfp4, 1024, kColumnsOfK, 1, 126);
  hwy::SetSupportedTargetsForTest(target);
  measure(state, {a.view(), b.view(), 0.7f}, out, {ExactPath::integer, 1});
  hwy::SetSupportedTargetsForTest(0);
}

void superaccumulator_dense(benchmark::State& state, DenseType type, Format b_format) {
  const std::int64_t m = 64;
  const auto data = random_dense(type, m * kColumnsOfK);
  const DenseTensorView a{type, m, kColumnsOfK, kColumnsOfK * dense_bytes(type), data};
  const bool nvfp4 = b_format == Format::nvfp4;
  const auto b =
      random_block_tensor(b_format, 128, kColumnsOfK, nvfp4 ? 1 : 110, nvfp4 ? 126 : 130);
  measure(state, {a, b.view(), 0.7f}, OutType::bf16, {ExactPath::superaccumulator, 1});
}

void superaccumulator_blocks(benchmark::State& state, int least, int greatest) {
  const auto a = random_block_tensor(Format::mxfp4, 64, kColumnsOfK, least, greatest);
  const auto b = random_block_tensor(Format::mxfp4, 128, kColumnsOfK, least, greatest);
  measure(state, {a.view(), b.view(), 0.7f}, OutType::bf16, {ExactPath::superaccumulator, 1});
}

// In panels, as a comparison takes it, on all threads.
void whole_check(benchmark::State& state) {
  const auto a = random_block_tensor(Format::nvfp4, 4096, kColumnsOfK, 1, 126);
  const auto b = random_block_tensor(Format::nvfp4, 6144, kColumnsOfK, 1, 126);
  const GemmInputs inputs{a.view(), b.view(), 0.7f};
  for (auto _ : state) {
    for (std::int64_t row = 0; row < a.rows; row += 256) {
      auto panel = exact_product(inputs, OutType::bf16, row, 256);
      benchmark::DoNotOptimize(panel);
    }
  }
  count_multiply_adds(state, {4096, 6144, kColumnsOfK});
}

void register_benchmarks() {
  for (std::int64_t left = integer_kernel_targets(); left != 0; left &= left - 1) {
    const std::int64_t target = left & -left;
    hwy::SetSupportedTargetsForTest(target);
    const std::string name = std::string("integer/") + integer_kernel_target();
    hwy::SetSupportedTargetsForTest(0);
    if (name.ends_with("SCALAR")) continue;
    for (const OutType out : {OutType::bf16, OutType::f16, OutType::f32}) {
      benchmark::RegisterBenchmark((name + "/" + std::string(nibble::name(out))).c_str(),
                                   integer_path, target, out);
    }
  }
  for (const auto& [type, type_name] :
       {std::pair{DenseType::bf16, "bf16"}, std::pair{DenseType::f16, "f16"},
        std::pair{DenseType::f32, "f32"}}) {
    for (const Format format : {Format::nvfp4, Format::mxfp4}) {
      const std::string name =
          std::string("superaccumulator/") + type_name + "_x_" + std::string(nibble::name(format));
      benchmark::RegisterBenchmark(name.c_str(), superaccumulator_dense, type, format);
    }
  }
  benchmark::RegisterBenchmark("superaccumulator/mxfp4_x_mxfp4", superaccumulator_blocks, 110, 140);
  benchmark::RegisterBenchmark("superaccumulator/mxfp4_x_mxfp4_all_scales", superaccumulator_blocks,
                               0, 254);
  benchmark::RegisterBenchmark("whole_check/4096x6144x6144", whole_check)
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
}

}  // namespace
}  // namespace nibble

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  nibble::add_record_context();
  benchmark::AddCustomContext("integer_kernel_target", nibble::integer_kernel_target());
  nibble::register_benchmarks();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
