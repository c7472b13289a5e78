// SPDX-License-Identifier: Apache-2.0
#include "reference/exact_product.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/float_environment.h"
#include "reference/exact_integer.h"
#include "reference/exact_superaccumulator.h"

namespace nibble {
namespace {

constexpr std::int64_t kMaxElements = std::int64_t{1} << 36;

bool both_nvfp4(const GemmInputs& inputs) {
  const auto* a = std::get_if<BlockTensorView>(&inputs.a);
  return a != nullptr && a->format == Format::nvfp4 && inputs.b.format == Format::nvfp4;
}

Status check_request(const GemmInputs& inputs, std::int64_t row_begin, std::int64_t rows,
                     const ExactOptions& options) {
  if (auto ok = check(inputs); !ok) return ok;
  const GemmShape shape = shape_of(inputs);
  if (row_begin < 0 || rows < 0 || row_begin > shape.m || rows > shape.m - row_begin) {
    return fail(ErrorKind::invalid_argument,
                fmt::format("exact product: {} rows from row {} asked for, A has {}", rows,
                            row_begin, shape.m));
  }
  if (shape.n > 0 && rows > kMaxElements / shape.n) {
    return fail(ErrorKind::invalid_argument,
                fmt::format("exact product: a panel of {}x{} is too large; ask for fewer rows",
                            rows, shape.n));
  }
  if (options.path != ExactPath::integer) return {};
  if (!both_nvfp4(inputs)) {
    return fail(ErrorKind::invalid_argument,
                "exact product: the integer path takes nvfp4 x nvfp4 only");
  }
  if (shape.k > max_integer_k()) {
    return fail(ErrorKind::invalid_argument,
                fmt::format("exact product: the integer path takes k up to {}, not {}",
                            max_integer_k(), shape.k));
  }
  return {};
}

}  // namespace

Result<ExactPanel> exact_product(const GemmInputs& inputs, OutType out, std::int64_t row_begin,
                                 std::int64_t rows, const ExactOptions& options) {
  if (auto ok = check_request(inputs, row_begin, rows, options); !ok)
    return tl::unexpected(ok.error());
  const DefaultFloatEnvironment environment;
  const GemmShape shape = shape_of(inputs);
  ExactPanel panel{out, row_begin, rows, shape.n, shape.k};
  const auto elements = static_cast<std::size_t>(rows * shape.n);
  panel.rounded.resize(elements);
  panel.value.resize(elements);
  panel.magnitude.resize(elements);
  panel.outside_fp32.resize(elements);
  const bool can_be_integer = both_nvfp4(inputs) && shape.k <= max_integer_k();
  if (can_be_integer && options.path != ExactPath::superaccumulator) {
    integer_product(inputs, options.threads, panel);
  } else {
    superaccumulator_product(inputs, options.threads, panel);
  }
  if (std::ranges::all_of(panel.outside_fp32, [](std::uint8_t flag) { return flag == 0; }))
    panel.outside_fp32.clear();
  return panel;
}

}  // namespace nibble
