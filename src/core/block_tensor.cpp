// SPDX-License-Identifier: Apache-2.0
#include "core/block_tensor.h"

#include <algorithm>
#include <string>

namespace nibble {
namespace {

constexpr std::int64_t kMaxElements = std::int64_t{1} << 62;

std::string shape_text(std::int64_t rows, std::int64_t columns) {
  return std::to_string(rows) + "x" + std::to_string(columns);
}

Status check_shape(Format format, std::int64_t rows, std::int64_t columns) {
  if (rows < 0 || columns < 0) {
    return fail(ErrorKind::invalid_argument,
                "block tensor " + shape_text(rows, columns) + ": negative size");
  }
  if (columns % block_size(format) != 0) {
    return fail(ErrorKind::invalid_argument, "block tensor " + shape_text(rows, columns) +
                                                 ": columns must be a multiple of the " +
                                                 std::string(name(format)) + " block, " +
                                                 std::to_string(block_size(format)));
  }
  // Room for the rounding up of a tiled layout, so that no size below overflows.
  if (columns > 0 && round_up(std::min(rows, kMaxElements), 128) > kMaxElements / (columns + 128)) {
    return fail(ErrorKind::invalid_argument,
                "block tensor " + shape_text(rows, columns) + ": too large");
  }
  return {};
}

}  // namespace

BlockTensorView BlockTensor::view() const {
  return {format, rows, columns, columns / 2, codes, scales, layout, tensor_scale};
}

Result<BlockTensor> make_block_tensor(Format format, std::int64_t rows, std::int64_t columns,
                                      ScaleOrder order) {
  if (auto ok = check_shape(format, rows, columns); !ok) return tl::unexpected(ok.error());
  BlockTensor tensor{.format = format, .rows = rows, .columns = columns};
  tensor.layout = {order, rows, columns / block_size(format)};
  tensor.codes.resize(static_cast<std::size_t>(rows * (columns / 2)));
  tensor.scales.resize(static_cast<std::size_t>(tensor.layout.bytes()));
  return tensor;
}

Status check(const BlockTensorView& view) {
  if (auto ok = check_shape(view.format, view.rows, view.columns); !ok) return ok;
  const ScaleLayout expected{view.layout.order, view.rows, view.columns / block_size(view.format)};
  if (view.layout != expected) {
    return fail(ErrorKind::invalid_argument, "block tensor " + shape_text(view.rows, view.columns) +
                                                 ": its scale layout is for " +
                                                 shape_text(view.layout.rows, view.layout.blocks) +
                                                 " scales, not " +
                                                 shape_text(expected.rows, expected.blocks));
  }
  const std::int64_t row_bytes = view.columns / 2;
  if (view.code_stride_bytes < row_bytes ||
      (view.rows > 1 && view.code_stride_bytes > kMaxElements / view.rows)) {
    return fail(ErrorKind::invalid_argument,
                "block tensor " + shape_text(view.rows, view.columns) + ": code_stride_bytes " +
                    std::to_string(view.code_stride_bytes) + " does not fit a row of " +
                    std::to_string(row_bytes));
  }
  const std::int64_t code_bytes =
      view.rows == 0 ? 0 : (view.rows - 1) * view.code_stride_bytes + row_bytes;
  if (static_cast<std::int64_t>(view.codes.size()) < code_bytes) {
    return fail(ErrorKind::invalid_argument, "block tensor " + shape_text(view.rows, view.columns) +
                                                 ": codes have " +
                                                 std::to_string(view.codes.size()) +
                                                 " bytes, need " + std::to_string(code_bytes));
  }
  if (static_cast<std::int64_t>(view.scales.size()) < view.layout.bytes()) {
    return fail(ErrorKind::invalid_argument,
                "block tensor " + shape_text(view.rows, view.columns) + ": " +
                    std::string(name(view.layout.order)) + " scales have " +
                    std::to_string(view.scales.size()) + " bytes, need " +
                    std::to_string(view.layout.bytes()));
  }
  return {};
}

Result<BlockTensor> relayout(const BlockTensorView& view, ScaleOrder order) {
  if (auto ok = check(view); !ok) return tl::unexpected(ok.error());
  auto tensor = make_block_tensor(view.format, view.rows, view.columns, order);
  if (!tensor) return tensor;
  tensor->tensor_scale = view.tensor_scale;
  const std::int64_t row_bytes = view.columns / 2;
  for (std::int64_t row = 0; row < view.rows; ++row) {
    std::copy_n(view.codes.begin() + row * view.code_stride_bytes, row_bytes,
                tensor->codes.begin() + row * row_bytes);
    for (std::int64_t block = 0; block < view.blocks(); ++block) {
      tensor->scales[static_cast<std::size_t>(tensor->layout.offset(row, block))] =
          view.scale(row, block);
    }
  }
  return tensor;
}

}  // namespace nibble
