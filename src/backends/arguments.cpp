// SPDX-License-Identifier: Apache-2.0
#include "backends/arguments.h"

#include <fmt/format.h>

#include <memory>

namespace nibble {
namespace {

bool is_kind(const ActivationView& view, Activation kind) {
  if (const auto* blocks = std::get_if<BlockTensorView>(&view))
    return activation_of(blocks->format) == kind;
  if (const auto* dense = std::get_if<DenseTensorView>(&view)) {
    return (dense->type == DenseType::bf16 && kind == Activation::bf16) ||
           (dense->type == DenseType::f16 && kind == Activation::f16);
  }
  return kind == Activation::q8_0;
}

}  // namespace

Status check_weights(const GemmProblem& problem, const BlockTensorView& b) {
  if (auto ok = check(b); !ok) return ok;
  if (b.rows != problem.shape.n || b.columns != problem.shape.k || b.format != problem.b) {
    return fail(ErrorKind::invalid_argument,
                fmt::format("prepack: B is {} {}x{}, prepared for {} {}x{}", name(b.format), b.rows,
                            b.columns, name(problem.b), problem.shape.n, problem.shape.k));
  }
  return {};
}

Status check_arguments(const GemmProblem& problem, const GemmArguments& arguments,
                       std::int64_t workspace_bytes) {
  if (!is_kind(arguments.a, problem.a)) {
    return fail(ErrorKind::invalid_argument,
                fmt::format("launch: A is not {}, which was prepared for", name(problem.a)));
  }
  if (auto ok = std::visit([](const auto& a) { return check(a); }, arguments.a); !ok) return ok;
  const auto [rows, columns] =
      std::visit([](const auto& a) { return std::pair(a.rows, a.columns); }, arguments.a);
  if (rows != problem.shape.m || columns != problem.shape.k) {
    return fail(ErrorKind::invalid_argument,
                fmt::format("launch: A is {}x{}, prepared for m={} k={}", rows, columns,
                            problem.shape.m, problem.shape.k));
  }
  if (arguments.out != problem.out) {
    return fail(ErrorKind::invalid_argument, fmt::format("launch: output type {}, prepared for {}",
                                                         name(arguments.out), name(problem.out)));
  }
  const std::int64_t row_bytes = problem.shape.n * out_bytes(problem.out);
  if (arguments.out_row_stride_bytes < row_bytes) {
    return fail(ErrorKind::invalid_argument,
                fmt::format("launch: out_row_stride_bytes {} is below a row of {} bytes",
                            arguments.out_row_stride_bytes, row_bytes));
  }
  if (rows > 0) {
    const auto available = static_cast<std::int64_t>(arguments.output.size());
    if (row_bytes > available ||
        (rows > 1 && arguments.out_row_stride_bytes > (available - row_bytes) / (rows - 1))) {
      return fail(ErrorKind::invalid_argument,
                  fmt::format("launch: output has {} bytes, too few for {} rows {} bytes apart",
                              available, rows, arguments.out_row_stride_bytes));
    }
  }
  if (static_cast<std::int64_t>(arguments.workspace.size()) < workspace_bytes) {
    return fail(ErrorKind::invalid_argument,
                fmt::format("launch: workspace has {} bytes, needs {}", arguments.workspace.size(),
                            workspace_bytes));
  }
  return {};
}

std::byte* WorkspaceCutter::cut_bytes(std::int64_t bytes) {
  void* start = rest_.data();
  std::size_t space = rest_.size();
  if (bytes == 0) return rest_.data();
  NIBBLE_CHECK(std::align(kAlignment, static_cast<std::size_t>(bytes), start, space) != nullptr,
               "workspace was checked before it is cut");
  rest_ = {static_cast<std::byte*>(start) + bytes, space - static_cast<std::size_t>(bytes)};
  return static_cast<std::byte*>(start);
}

}  // namespace nibble
