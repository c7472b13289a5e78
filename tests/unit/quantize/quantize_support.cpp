// SPDX-License-Identifier: Apache-2.0
#include "unit/quantize/quantize_support.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "core/e2m1.h"
#include "core/small_floats.h"

namespace nibble::test {
namespace {

std::string first_difference(std::string_view what, std::span<const std::uint8_t> got,
                             std::span<const std::uint8_t> expected, std::int64_t row_bytes) {
  if (got.size() != expected.size())
    return fmt::format("{} {} bytes, expected {}", got.size(), what, expected.size());
  const auto [at, other] = std::mismatch(got.begin(), got.end(), expected.begin());
  if (at == got.end()) return "";
  const auto index = at - got.begin();
  return fmt::format("{} byte {} of row {} is 0x{:02X}, expected 0x{:02X}", what, index % row_bytes,
                     index / row_bytes, *at, *other);
}

std::string float_difference(std::string_view what, std::optional<float> got,
                             std::optional<float> expected) {
  if (!expected) return "";
  if (got && std::bit_cast<std::uint32_t>(*got) == std::bit_cast<std::uint32_t>(*expected))
    return "";
  return fmt::format("{} {}, expected {}", what, got ? fmt::format("{:a}", *got) : "absent",
                     fmt::format("{:a}", *expected));
}

}  // namespace

std::vector<std::string> all_rules() {
  std::vector<std::string> rules;
  for (const auto& [rule, text] : EnumNames<Nvfp4Rule>::table)
    rules.push_back("nvfp4 " + std::string(text));
  for (const auto& [rule, text] : EnumNames<Mxfp4Rule>::table)
    rules.push_back("mxfp4 " + std::string(text));
  return rules;
}

Result<Quantized> quantize(std::string_view rule, const Source& source,
                           const QuantizeOptions& options) {
  const std::string_view text = rule.substr(6);
  if (rule.starts_with("nvfp4 "))
    return quantize_nvfp4(source.x, source.rows, source.columns,
                          parse_enum<Nvfp4Rule>(text).value(), options);
  return quantize_mxfp4(source.x, source.rows, source.columns, parse_enum<Mxfp4Rule>(text).value(),
                        options);
}

std::string difference(const Quantized& got, const Expected& expected) {
  const BlockTensor& tensor = got.tensor;
  std::string text = float_difference("divisor", tensor.tensor_scale.divisor, expected.divisor);
  if (text.empty())
    text = float_difference("multiplier", tensor.tensor_scale.multiplier, expected.multiplier);
  if (text.empty())
    text = first_difference("scale", tensor.scales, expected.scales, tensor.layout.blocks);
  if (text.empty())
    text = first_difference("code", tensor.codes, expected.codes, tensor.columns / 2);
  if (text.empty() && expected.lost && *expected.lost != got.lost_to_zero_scale)
    text =
        fmt::format("{} lost to zero scales, expected {}", got.lost_to_zero_scale, *expected.lost);
  return text;
}

double value_at(const BlockTensor& tensor, std::int64_t row, std::int64_t column) {
  const BlockTensorView view = tensor.view();
  const std::uint8_t byte = view.scale(row, column / block_size(tensor.format));
  const float scale = tensor.format == Format::nvfp4 ? e4m3_scale(byte) : e8m0_value(byte);
  return static_cast<double>(e2m1_value(view.code(row, column))) * static_cast<double>(scale) *
         static_cast<double>(tensor.tensor_scale.multiplier);
}

}  // namespace nibble::test
