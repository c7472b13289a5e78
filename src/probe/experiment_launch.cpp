// SPDX-License-Identifier: Apache-2.0
#include "probe/experiment_launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace nibble {
namespace {

constexpr std::uint8_t kScribble = 0x7D;

// `rows` rows of `row_bytes`, each followed by the pad.
std::vector<std::byte> padded_rows(std::span<const std::byte> data, std::int64_t rows,
                                   std::int64_t row_bytes, const OperandPlacement& placement) {
  const std::int64_t stride = row_bytes + placement.row_pad_bytes;
  std::vector<std::byte> padded(static_cast<std::size_t>(rows * stride),
                                static_cast<std::byte>(placement.row_pad));
  for (std::int64_t row = 0; row < rows && row_bytes > 0; ++row) {
    std::memcpy(padded.data() + row * stride, data.data() + row * row_bytes,
                static_cast<std::size_t>(row_bytes));
  }
  return padded;
}

std::vector<std::uint8_t> padded_scales(const BlockTensor& tensor, std::uint8_t pad) {
  const auto& layout = tensor.layout;
  if (layout.order == ScaleOrder::row_major) return tensor.scales;
  std::vector<std::uint8_t> scales(tensor.scales.size(), pad);
  for (std::int64_t row = 0; row < layout.rows; ++row) {
    for (std::int64_t block = 0; block < layout.blocks; ++block) {
      const auto at = static_cast<std::size_t>(layout.offset(row, block));
      scales[at] = tensor.scales[at];
    }
  }
  return scales;
}

std::span<const std::uint8_t> as_codes(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

}  // namespace

Result<std::span<const std::byte>> PlacedOperand::add_part(MemoryKind memory, std::string what,
                                                           std::span<const std::byte> bytes,
                                                           GuardOptions options) {
  options.pattern += parts_.size();
  auto buffer = GuardedBuffer::create(memory, static_cast<std::int64_t>(bytes.size()), 0, options);
  if (!buffer) return tl::unexpected(buffer.error());
  std::copy(bytes.begin(), bytes.end(), buffer->bytes().begin());
  parts_.push_back({std::move(what), std::move(*buffer), {bytes.begin(), bytes.end()}});
  return std::span<const std::byte>(parts_.back().buffer.bytes());
}

Result<PlacedOperand> PlacedOperand::place(MemoryKind memory, const ActivationTensor& tensor,
                                           const OperandPlacement& placement,
                                           const GuardOptions& options) {
  PlacedOperand placed;
  if (const auto* blocks = std::get_if<BlockTensor>(&tensor)) {
    BlockTensorView view = blocks->view();
    const auto codes = padded_rows(std::as_bytes(std::span(blocks->codes)), view.rows,
                                   view.columns / 2, placement);
    const auto scales = padded_scales(*blocks, placement.scale_pad);
    const auto placed_codes = placed.add_part(memory, "codes", codes, options);
    if (!placed_codes) return tl::unexpected(placed_codes.error());
    const auto placed_scales =
        placed.add_part(memory, "scales", std::as_bytes(std::span(scales)), options);
    if (!placed_scales) return tl::unexpected(placed_scales.error());
    view.code_stride_bytes = view.columns / 2 + placement.row_pad_bytes;
    view.codes = as_codes(*placed_codes);
    view.scales = as_codes(*placed_scales);
    placed.view_ = view;
  } else if (const auto* dense = std::get_if<DenseTensor>(&tensor)) {
    DenseTensorView view = dense->view();
    const std::int64_t row_bytes = view.row_stride_bytes;
    const auto rows = placed.add_part(
        memory, "elements", padded_rows(view.data, view.rows, row_bytes, placement), options);
    if (!rows) return tl::unexpected(rows.error());
    view.row_stride_bytes = row_bytes + placement.row_pad_bytes;
    view.data = *rows;
    placed.view_ = view;
  } else {
    Q8TensorView view = std::get<Q8Tensor>(tensor).view();
    const auto data = placed.add_part(memory, "blocks", view.data, options);
    if (!data) return tl::unexpected(data.error());
    view.data = *data;
    placed.view_ = view;
  }
  return placed;
}

std::string PlacedOperand::damage(const std::string& operand) const {
  for (const auto& part : parts_) {
    const auto now = part.buffer.bytes();
    const auto changed = std::mismatch(now.begin(), now.end(), part.original.begin());
    if (changed.first != now.end())
      return fmt::format("the {} of {} were changed, first at byte {}", part.what, operand,
                         changed.first - now.begin());
    if (const auto damage = part.buffer.damage(); !damage.empty())
      return fmt::format("memory round the {} of {}: {}", part.what, operand, damage);
  }
  return {};
}

void PlacedOperand::scribble() {
  for (auto& part : parts_) {
    std::fill(part.buffer.bytes().begin(), part.buffer.bytes().end(),
              static_cast<std::byte>(kScribble));
    std::fill(part.original.begin(), part.original.end(), static_cast<std::byte>(kScribble));
  }
}

std::uint32_t poison_bits(OutType type, int pattern) {
  switch (type) {
    case OutType::bf16:
      return pattern == 0 ? 0x7FD5 : 0xFFAA;
    case OutType::f16:
      return pattern == 0 ? 0x7F55 : 0xFEAA;
    case OutType::f32:
      return pattern == 0 ? 0x7FD5A55A : 0xFFAA5AA5;
  }
  return 0;
}

Result<Output> make_output(MemoryKind memory, const GemmProblem& problem,
                           const Placement& placement, int pattern) {
  const auto& [m, n, k] = problem.shape;
  const std::int64_t element_bytes = out_bytes(problem.out);
  const std::int64_t stride = n * element_bytes + placement.out_pad_bytes;
  GuardOptions options;
  options.pattern = placement.guard_pattern + 100;
  options.misalignment = placement.misaligned ? element_bytes : 0;
  auto buffer = GuardedBuffer::create(memory, m * stride, 0, options);
  if (!buffer) return tl::unexpected(buffer.error());
  const std::uint32_t poison = poison_bits(problem.out, pattern);
  const auto bytes = buffer->bytes();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::size_t byte = i % static_cast<std::size_t>(element_bytes);
    bytes[i] = static_cast<std::byte>(poison >> (8 * byte));
  }
  return Output{std::move(*buffer), problem.out, m, n, stride, poison};
}

std::string Output::damage() const {
  if (const auto damage = buffer.damage(); !damage.empty())
    return "memory round the output: " + damage;
  const std::int64_t element_bytes = out_bytes(type);
  const auto bytes = buffer.bytes();
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t at = columns * element_bytes; at < row_stride_bytes; ++at) {
      const auto expected = static_cast<std::byte>(poison >> (8 * (at % element_bytes)));
      if (bytes[static_cast<std::size_t>(row * row_stride_bytes + at)] != expected)
        return fmt::format("the gap behind row {} of the output was written at distance {}", row,
                           at - columns * element_bytes + 1);
    }
  }
  return {};
}

bool Output::untouched() const {
  const auto now = view();
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      if (now.bits(row, column) != poison) return false;
    }
  }
  return true;
}

std::string difference(const OutputView& first, const OutputView& second) {
  std::int64_t differing = 0, row_of = 0, column_of = 0;
  for (std::int64_t row = 0; row < first.rows; ++row) {
    for (std::int64_t column = 0; column < first.columns; ++column) {
      if (first.bits(row, column) == second.bits(row, column)) continue;
      if (differing++ == 0) {
        row_of = row;
        column_of = column;
      }
    }
  }
  if (differing == 0) return {};
  return fmt::format("changed {} outputs, first at row {} column {} (bits {:#x}, were {:#x})",
                     differing, row_of, column_of, second.bits(row_of, column_of),
                     first.bits(row_of, column_of));
}

namespace {

// "row 3", "rows 3..5 (3 of them)".
std::string span_text(const char* what, const std::vector<std::int64_t>& full) {
  if (full.size() == 1) return fmt::format("{} {}", what, full.front());
  return fmt::format("{}s {}..{} ({} of them)", what, full.front(), full.back(), full.size());
}

}  // namespace

std::string unwritten(const Output& first, const Output& second) {
  const auto one = first.view(), two = second.view();
  std::vector<std::int64_t> in_row(static_cast<std::size_t>(first.rows)),
      in_column(static_cast<std::size_t>(first.columns));
  std::int64_t count = 0, row_of = 0, column_of = 0;
  for (std::int64_t row = 0; row < first.rows; ++row) {
    for (std::int64_t column = 0; column < first.columns; ++column) {
      if (one.bits(row, column) != first.poison || two.bits(row, column) != second.poison) continue;
      if (count++ == 0) {
        row_of = row;
        column_of = column;
      }
      ++in_row[static_cast<std::size_t>(row)];
      ++in_column[static_cast<std::size_t>(column)];
    }
  }
  if (count == 0) return {};
  std::vector<std::int64_t> rows, columns;
  for (std::int64_t row = 0; row < first.rows; ++row) {
    if (in_row[static_cast<std::size_t>(row)] == first.columns) rows.push_back(row);
  }
  for (std::int64_t column = 0; column < first.columns; ++column) {
    if (in_column[static_cast<std::size_t>(column)] == first.rows) columns.push_back(column);
  }
  if (count == first.rows * first.columns) return "the whole output was never written";
  if (count == static_cast<std::int64_t>(rows.size()) * first.columns)
    return span_text("row", rows) + " of the output never written";
  if (count == static_cast<std::int64_t>(columns.size()) * first.rows)
    return span_text("column", columns) + " of the output never written";
  return fmt::format("{} outputs never written, the first at row {} column {}", count, row_of,
                     column_of);
}

}  // namespace nibble
