// SPDX-License-Identifier: Apache-2.0
#include "core/gemm_operands.h"

#include <cstring>
#include <string>

namespace nibble {
namespace {

constexpr std::int64_t kMaxElements = std::int64_t{1} << 60;
constexpr std::int64_t kQ8BlockElements = 32, kQ8BlockBytes = 34;

template <class T>
T load(std::span<const std::byte> data, std::int64_t offset) {
  NIBBLE_CHECK(offset >= 0 && offset + static_cast<std::int64_t>(sizeof(T)) <=
                                  static_cast<std::int64_t>(data.size()),
               "read outside an operand");
  T value;
  std::memcpy(&value, data.data() + offset, sizeof(T));
  return value;
}

Status refuse(const char* what, std::int64_t rows, std::int64_t columns, const std::string& why) {
  return fail(ErrorKind::invalid_argument, std::string(what) + " " + std::to_string(rows) + "x" +
                                               std::to_string(columns) + ": " + why);
}

}  // namespace

float DenseTensorView::value(std::int64_t row, std::int64_t column) const {
  const std::int64_t offset = row * row_stride_bytes + column * dense_bytes(type);
  switch (type) {
    case DenseType::bf16:
      return bf16_value(load<std::uint16_t>(data, offset));
    case DenseType::f16:
      return f16_value(load<std::uint16_t>(data, offset));
    case DenseType::f32:
      return load<float>(data, offset);
  }
  return 0;
}

float Q8TensorView::value(std::int64_t row, std::int64_t column) const {
  const std::int64_t block = row * (columns / kQ8BlockElements) + column / kQ8BlockElements;
  const float scale = f16_value(load<std::uint16_t>(data, block * kQ8BlockBytes));
  const auto code = load<std::int8_t>(data, block * kQ8BlockBytes + 2 + column % kQ8BlockElements);
  return scale * static_cast<float>(code);
}

GemmShape shape_of(const GemmInputs& inputs) {
  const auto [rows, columns] =
      std::visit([](const auto& a) { return std::pair(a.rows, a.columns); }, inputs.a);
  return {rows, inputs.b.rows, columns};
}

Status check(const DenseTensorView& view) {
  if (view.rows < 0 || view.columns < 0 || view.rows > kMaxElements ||
      view.columns > kMaxElements / 4) {
    return refuse("dense tensor", view.rows, view.columns, "size out of range");
  }
  const std::int64_t row_bytes = view.columns * dense_bytes(view.type);
  if (view.row_stride_bytes < row_bytes ||
      (view.rows > 1 && view.row_stride_bytes > kMaxElements / view.rows)) {
    return refuse("dense tensor", view.rows, view.columns,
                  "row_stride_bytes " + std::to_string(view.row_stride_bytes) +
                      " does not fit a row of " + std::to_string(row_bytes));
  }
  const std::int64_t need =
      view.rows == 0 ? 0 : (view.rows - 1) * view.row_stride_bytes + row_bytes;
  if (static_cast<std::int64_t>(view.data.size()) < need) {
    return refuse(
        "dense tensor", view.rows, view.columns,
        "has " + std::to_string(view.data.size()) + " bytes, needs " + std::to_string(need));
  }
  return {};
}

Status check(const Q8TensorView& view) {
  if (view.rows < 0 || view.columns < 0 || view.columns % kQ8BlockElements != 0 ||
      (view.columns > 0 && view.rows > kMaxElements / view.columns)) {
    return refuse("Q8_0 tensor", view.rows, view.columns,
                  "columns must be a multiple of 32, sizes in range");
  }
  const std::int64_t need = view.rows * (view.columns / kQ8BlockElements) * kQ8BlockBytes;
  if (static_cast<std::int64_t>(view.data.size()) < need) {
    return refuse(
        "Q8_0 tensor", view.rows, view.columns,
        "has " + std::to_string(view.data.size()) + " bytes, needs " + std::to_string(need));
  }
  return {};
}

Status check(const GemmInputs& inputs) {
  if (auto ok = std::visit([](const auto& a) { return check(a); }, inputs.a); !ok) {
    return fail(ok.error().kind, "A: " + ok.error().message);
  }
  if (auto ok = check(inputs.b); !ok) return fail(ok.error().kind, "B: " + ok.error().message);
  if (shape_of(inputs).k != inputs.b.columns) {
    return fail(ErrorKind::invalid_argument, "A has k=" + std::to_string(shape_of(inputs).k) +
                                                 ", B has k=" + std::to_string(inputs.b.columns));
  }
  return {};
}

std::uint32_t OutputView::bits(std::int64_t row, std::int64_t column) const {
  const std::int64_t offset = row * row_stride_bytes + column * out_bytes(type);
  return type == OutType::f32 ? load<std::uint32_t>(data, offset)
                              : load<std::uint16_t>(data, offset);
}

float OutputView::value(std::int64_t row, std::int64_t column) const {
  return out_value(type, bits(row, column));
}

float out_value(OutType type, std::uint32_t bits) {
  switch (type) {
    case OutType::bf16:
      return bf16_value(static_cast<std::uint16_t>(bits));
    case OutType::f16:
      return f16_value(static_cast<std::uint16_t>(bits));
    case OutType::f32:
      return std::bit_cast<float>(bits);
  }
  return 0;
}

}  // namespace nibble
