// SPDX-License-Identifier: Apache-2.0
// Each library that is here is right on every kind of problem that its contract offers. Absent ones
// skip, saying why.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "backends/arguments.h"
#include "backends/registry.h"
#include "core/e2m1.h"
#include "reference/comparison.h"

namespace nibble {
namespace {

// Codes and scales at random, both signs; scales within a few powers of two of 1.
BlockTensor random_blocks(Format format, std::int64_t rows, std::int64_t columns, ScaleOrder order,
                          std::mt19937& random) {
  auto tensor = make_block_tensor(format, rows, columns, order).value();
  for (auto& byte : tensor.codes) byte = static_cast<std::uint8_t>(random());
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t block = 0; block < tensor.layout.blocks; ++block) {
      const auto spread = static_cast<std::uint8_t>(random() % (format == Format::nvfp4 ? 32 : 8));
      const int base = format == Format::nvfp4 ? 0x28 : 123;
      tensor.scales[static_cast<std::size_t>(tensor.layout.offset(row, block))] =
          static_cast<std::uint8_t>(base + spread);
    }
  }
  return tensor;
}

struct Operand {
  BlockTensor blocks;
  std::vector<std::byte> bytes;
  ActivationView view;
};

void fill_dense(Operand& a, Activation kind, std::int64_t m, std::int64_t k, std::mt19937& random) {
  std::normal_distribution<float> normal;
  a.bytes.resize(static_cast<std::size_t>(m * k * 2));
  for (std::int64_t i = 0; i < m * k; ++i) {
    const std::uint16_t bits =
        kind == Activation::bf16 ? bf16_encode(normal(random)) : f16_encode(normal(random));
    std::memcpy(&a.bytes[static_cast<std::size_t>(i * 2)], &bits, 2);
  }
  a.view = DenseTensorView{kind == Activation::bf16 ? DenseType::bf16 : DenseType::f16, m, k, k * 2,
                           a.bytes};
}

void fill_q8(Operand& a, std::int64_t m, std::int64_t k, std::mt19937& random) {
  a.bytes.resize(static_cast<std::size_t>(m * k / 32 * 34));
  for (auto& byte : a.bytes) byte = static_cast<std::byte>(random() % 255 + 129);  // -127..127
  for (std::size_t block = 0; block < a.bytes.size(); block += 34) {
    const std::uint16_t scale = f16_encode(0.01f + 0.001f * static_cast<float>(random() % 100));
    std::memcpy(&a.bytes[block], &scale, 2);
  }
  a.view = Q8TensorView{m, k, a.bytes};
}

void fill(Operand& a, const GemmProblem& problem, std::mt19937& random) {
  const auto& [m, n, k] = problem.shape;
  if (is_block_format(problem.a)) {
    const auto format = problem.a == Activation::nvfp4 ? Format::nvfp4 : Format::mxfp4;
    a.blocks = random_blocks(format, m, k, problem.a_scales, random);
    a.view = a.blocks.view();
  } else if (problem.a == Activation::q8_0) {
    fill_q8(a, m, k, random);
  } else {
    fill_dense(a, problem.a, m, k, random);
  }
}

void expect_right(const Backend& backend, const GemmProblem& problem) {
  SCOPED_TRACE(fmt::format("{} {} x {} -> {} {}x{}x{}", backend.name(), name(problem.a),
                           name(problem.b), name(problem.out), problem.shape.m, problem.shape.n,
                           problem.shape.k));
  std::mt19937 random(7);
  const auto& [m, n, k] = problem.shape;
  Operand a;
  fill(a, problem, random);
  const auto b = random_blocks(problem.b, n, k, problem.b_scales, random);
  const float alpha = 0.37f;

  auto prepared = backend.prepare(problem);
  ASSERT_TRUE(prepared) << prepared.error().message;
  ASSERT_TRUE((*prepared)->prepack(b.view()));
  std::vector<std::byte> output(static_cast<std::size_t>(m * n * out_bytes(problem.out)),
                                std::byte{0xFF});
  std::vector<std::byte> workspace(static_cast<std::size_t>((*prepared)->workspace_bytes()),
                                   std::byte{0xFF});
  const GemmArguments arguments{a.view,    &alpha, problem.out, n * out_bytes(problem.out), output,
                                workspace, 2};
  const auto launched = (*prepared)->launch(arguments);
  ASSERT_TRUE(launched) << launched.error().message;

  const GemmInputs inputs{a.view, b.view(), alpha};
  OutputView view{problem.out, m, n, n * out_bytes(problem.out), output};
  const auto accuracy = compare(inputs, view, {});
  ASSERT_TRUE(accuracy) << accuracy.error().message;
  EXPECT_EQ(accuracy->why_wrong, "");
  EXPECT_EQ(accuracy->checked, m * n);
  if (m * n == 0) return;
  output[0] ^= std::byte{0x40};  // the comparison must see one wrong bit
  output[static_cast<std::size_t>(out_bytes(problem.out) - 1)] ^= std::byte{0x40};
  EXPECT_NE(compare(inputs, view, {})->why_wrong, "");
}

class LibraryBackend : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    backend = find_backend(GetParam());
    ASSERT_NE(backend, nullptr);
    if (const auto version = backend->version(); !version)
      GTEST_SKIP() << "Skipped: " << version.error().message;
  }
  const Backend* backend = nullptr;
};

TEST_P(LibraryBackend, IsRightOnEveryKindItOffers) {
  const auto contract = backend->contract();
  for (const auto a : contract.activations) {
    for (const auto b : contract.formats) {
      for (const auto out : contract.outs) {
        for (const auto shape : {GemmShape{5, 33, 192}, GemmShape{1, 128, 64}}) {
          expect_right(*backend, {shape, a, b, out});
        }
      }
    }
  }
}

TEST_P(LibraryBackend, ReadsEveryScaleLayout) {
  const auto contract = backend->contract();
  const auto a = contract.activations.front();
  for (const auto order : contract.b_scales) {
    expect_right(*backend, {{9, 140, 320},
                            a,
                            Format::nvfp4,
                            OutType::f32,
                            is_block_format(a) ? order : ScaleOrder::row_major,
                            order});
  }
}

TEST_P(LibraryBackend, EmptyProblems) {
  const auto a = backend->contract().activations.front();
  for (const auto shape : {GemmShape{0, 16, 64}, GemmShape{4, 0, 64}, GemmShape{0, 0, 64}}) {
    expect_right(*backend, {shape, a, Format::nvfp4, OutType::bf16});
  }
}

TEST_P(LibraryBackend, RefusesInWords) {
  const auto a = backend->contract().activations.front();
  auto prepared = backend->prepare({{4, 32, 64}, a, Format::nvfp4, OutType::f32});
  ASSERT_TRUE(prepared);
  const auto wrong = make_block_tensor(Format::nvfp4, 31, 64).value();
  EXPECT_THAT((*prepared)->prepack(wrong.view()).error().message,
              testing::HasSubstr("B is nvfp4 31x64"));
  std::mt19937 random(1);
  Operand operand;
  const GemmProblem problem{{4, 32, 64}, a, Format::nvfp4, OutType::f32};
  fill(operand, problem, random);
  std::vector<std::byte> output(4 * 32 * 4),
      workspace(static_cast<std::size_t>((*prepared)->workspace_bytes()));
  const GemmArguments arguments{operand.view, nullptr, OutType::f32, 32 * 4, output, workspace, 1};
  EXPECT_THAT((*prepared)->launch(arguments).error().message, testing::HasSubstr("before prepack"));
}

INSTANTIATE_TEST_SUITE_P(Backends, LibraryBackend,
                         testing::Values("cpu", "openblas", "onednn", "ggml"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace nibble
