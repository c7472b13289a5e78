// SPDX-License-Identifier: Apache-2.0
// Operands for the tests of the CPU GEMM, and the GEMM itself with a poisoned output and workspace.
#pragma once

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "core/gemm_operands.h"
#include "core/small_floats.h"
#include "cpu/gemm.h"
#include "cpu/gemm_kernel.h"
#include "reference/comparison.h"

namespace nibble::test {

using Random = std::mt19937;

inline void set_scale(BlockTensor& tensor, std::int64_t row, std::int64_t block,
                      std::uint8_t byte) {
  tensor.scales[static_cast<std::size_t>(tensor.layout.offset(row, block))] = byte;
}

// Any codes; scale bytes in [least, greatest]; pad bytes are NaN; NVFP4 scales have any sign bit.
inline BlockTensor random_blocks(Format format, std::int64_t rows, std::int64_t columns,
                                 ScaleOrder order, int least, int greatest, Random& random) {
  auto tensor = make_block_tensor(format, rows, columns, order).value();
  for (auto& byte : tensor.codes) byte = static_cast<std::uint8_t>(random());
  for (auto& byte : tensor.scales) byte = 0xFF;
  const auto span = static_cast<unsigned>(greatest - least + 1);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t block = 0; block < tensor.layout.blocks; ++block) {
      auto byte = static_cast<std::uint8_t>(least + static_cast<int>(random() % span));
      if (format == Format::nvfp4 && random() % 2) byte |= 0x80;
      set_scale(tensor, row, block, byte);
    }
  }
  return tensor;
}

// Scales within a few powers of two of 1.
inline BlockTensor ordinary_blocks(Format format, std::int64_t rows, std::int64_t columns,
                                   ScaleOrder order, Random& random) {
  return format == Format::nvfp4 ? random_blocks(format, rows, columns, order, 0x28, 0x47, random)
                                 : random_blocks(format, rows, columns, order, 123, 130, random);
}

// bf16 or f16, rows a few bytes further apart than they are long.
struct DenseTensor {
  DenseType type = DenseType::bf16;
  std::int64_t rows = 0, columns = 0, stride = 0;
  std::vector<std::byte> bytes;

  DenseTensor(DenseType the_type, std::int64_t the_rows, std::int64_t the_columns)
      : type(the_type),
        rows(the_rows),
        columns(the_columns),
        stride(2 * the_columns + 6),
        bytes(static_cast<std::size_t>(stride * rows), std::byte{0xFF}) {}
  void set_bits(std::int64_t row, std::int64_t column, std::uint16_t bits) {
    std::memcpy(&bytes[static_cast<std::size_t>(row * stride + 2 * column)], &bits, 2);
  }
  void set(std::int64_t row, std::int64_t column, float value) {
    set_bits(row, column, type == DenseType::bf16 ? bf16_encode(value) : f16_encode(value));
  }
  DenseTensorView view() const { return {type, rows, columns, stride, bytes}; }
};

inline DenseTensor normal_dense(DenseType type, std::int64_t rows, std::int64_t columns,
                                Random& random) {
  DenseTensor tensor(type, rows, columns);
  std::normal_distribution<float> normal;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      tensor.set(row, column, normal(random));
    }
  }
  return tensor;
}

struct Output {
  OutType type = OutType::bf16;
  std::int64_t rows = 0, columns = 0, stride = 0;
  std::vector<std::byte> bytes;

  OutputView view() const { return {type, rows, columns, stride, bytes}; }
};

inline constexpr std::byte kPoison{0xFB};

// Rows of the output lie 8 bytes further apart than they are long.
inline Output run_gemm(const GemmInputs& inputs, OutType out, int threads = 1) {
  const auto shape = shape_of(inputs);
  Output output{out, shape.m, shape.n, shape.n * out_bytes(out) + 8, {}};
  output.bytes.assign(static_cast<std::size_t>(output.stride * shape.m), kPoison);
  const auto* blocks = std::get_if<BlockTensorView>(&inputs.a);
  const auto kind = blocks ? activation_of(blocks->format) : Activation::bf16;
  std::vector<std::byte> workspace(static_cast<std::size_t>(cpu_gemm_workspace_bytes(shape, kind)),
                                   kPoison);
  const auto packed = pack_weights(inputs.b);
  EXPECT_TRUE(packed);
  cpu_gemm({inputs.a, inputs.alpha, out, output.stride, output.bytes.data(), threads}, *packed,
           workspace);
  for (std::int64_t row = 0; row < shape.m; ++row) {
    for (std::int64_t i = output.stride - 8; i < output.stride; ++i) {
      EXPECT_EQ(output.bytes[static_cast<std::size_t>(row * output.stride + i)], kPoison)
          << "written past row " << row;
    }
  }
  return output;
}

inline void expect_right(const GemmInputs& inputs, OutType out,
                         const ComparisonPolicy& policy = {}) {
  const auto output = run_gemm(inputs, out);
  const auto accuracy = compare(inputs, output.view(), policy);
  ASSERT_TRUE(accuracy) << accuracy.error().message;
  EXPECT_EQ(accuracy->why_wrong, "");
  EXPECT_EQ(accuracy->checked, output.rows * output.columns);
}

// Calls test() once for each instruction set of this CPU.
template <class Test>
void on_every_target(Test test) {
  for (std::int64_t left = gemm_kernel_targets(); left != 0; left &= left - 1) {
    hwy::SetSupportedTargetsForTest(left & -left);
    SCOPED_TRACE(gemm_kernels().target);
    test();
    hwy::SetSupportedTargetsForTest(0);
  }
}

}  // namespace nibble::test
