// SPDX-License-Identifier: Apache-2.0
#include "cpu/wide_dot.h"

#include "core/e2m1.h"

namespace nibble {
namespace {

double scale_value(Format format, std::uint8_t byte) {
  return format == Format::nvfp4 ? e4m3_scale(byte) : e8m0_value(byte);
}

double element(const BlockTensorView& a, std::int64_t row, std::int64_t column) {
  return static_cast<double>(e2m1_value(a.code(row, column))) *
         scale_value(a.format, a.scale(row, column / block_size(a.format)));
}

double element(const DenseTensorView& a, std::int64_t row, std::int64_t column) {
  return a.value(row, column);
}

template <class View>
double dot(const View& a, std::int64_t row, const PackedWeights& b, std::int64_t column) {
  const int block = block_size(b.format);
  double sum = 0;
  for (std::int64_t i = 0; i < b.k; ++i) {
    const double weight = static_cast<double>(e2m1_value(b.code(column, i))) *
                          scale_value(b.format, b.scale(column, i / block));
    sum += element(a, row, i) * weight;
  }
  return sum;
}

}  // namespace

double wide_dot(const ActivationView& a, std::int64_t row, const PackedWeights& b,
                std::int64_t column) {
  if (const auto* blocks = std::get_if<BlockTensorView>(&a)) return dot(*blocks, row, b, column);
  const auto* dense = std::get_if<DenseTensorView>(&a);
  NIBBLE_CHECK(dense != nullptr, "A is a block tensor or dense");
  return dot(*dense, row, b, column);
}

}  // namespace nibble
