// SPDX-License-Identifier: Apache-2.0
// Holds the table "Where the rules differ" of docs/formats.md to what the rules do on a real layer.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>

#include "unit/quantize/fixture_file.h"

namespace nibble::test {
namespace {

struct Difference {
  std::int64_t scales = 0, codes = 0, values = 0;
  double largest = 0;  // of two values, in units of the tensor's largest magnitude
};

Difference between(const BlockTensor& one, const BlockTensor& other, double amax) {
  Difference found;
  for (std::size_t i = 0; i < one.scales.size(); ++i)
    found.scales += one.scales[i] != other.scales[i];
  for (std::int64_t row = 0; row < one.rows; ++row) {
    for (std::int64_t column = 0; column < one.columns; ++column) {
      found.codes += one.view().code(row, column) != other.view().code(row, column);
      const double apart = value_at(one, row, column) - value_at(other, row, column);
      found.values += apart != 0;
      found.largest = std::max(found.largest, std::fabs(apart) / amax);
    }
  }
  return found;
}

// rms of value - x over rms of x.
double relative_error(const BlockTensor& tensor, const Source& source) {
  double error = 0, signal = 0;
  for (std::int64_t row = 0; row < source.rows; ++row) {
    for (std::int64_t column = 0; column < source.columns; ++column) {
      const double x = source.x[static_cast<std::size_t>(row * source.columns + column)];
      const double off = value_at(tensor, row, column) - x;
      error += off * off;
      signal += x * x;
    }
  }
  return std::sqrt(error / signal);
}

std::string table_row(const std::string& rule, const std::string& exact_rule,
                      const Source& source) {
  const QuantizeOptions options{.source_is_bf16 = true};
  const auto got = quantize(rule, source, options), exact = quantize(exact_rule, source, options);
  double amax = 0;
  for (const float x : source.x) amax = std::max(amax, static_cast<double>(std::fabs(x)));
  const Difference found = between(got->tensor, exact->tensor, amax);
  return fmt::format("| {} | {} | {} of {} | {} of {} | {} | {:.3f} | {:.3f} % |", rule,
                     rule == exact_rule ? "-" : exact_rule, found.scales, got->tensor.scales.size(),
                     found.codes, source.x.size(), found.values, found.largest,
                     100 * relative_error(got->tensor, source));
}

TEST(QuantizeDifferences, TheTableOfTheDocumentIsTrue) {
  const Source layer = FixtureFile("source-minilm-layer0/source.safetensors")
                           .source("encoder.layer.0.attention.self.query.weight");
  const std::pair<std::string, std::string> rows[] = {
      {"nvfp4 rn", "nvfp4 rn"},
      {"nvfp4 modelopt", "nvfp4 rn"},
      {"nvfp4 torchao", "nvfp4 rn"},
      {"nvfp4 compressed_tensors", "nvfp4 rn"},
      {"nvfp4 flashinfer", "nvfp4 rn"},
      {"mxfp4 floor", "mxfp4 floor"},
      {"mxfp4 torchao_floor", "mxfp4 floor"},
      {"mxfp4 gguf", "mxfp4 floor"},
      {"mxfp4 ceil", "mxfp4 ceil"},
      {"mxfp4 torchao_rceil", "mxfp4 ceil"},
      {"mxfp4 modelopt", "mxfp4 ceil"},
      {"mxfp4 even", "mxfp4 even"},
      {"mxfp4 compressed_tensors", "mxfp4 even"},
  };
  std::ifstream file(NIBBLE_SOURCE_DIR "/docs/formats.md");
  const std::string document{std::istreambuf_iterator<char>(file), {}};
  std::string table;
  bool right = !document.empty();
  for (const auto& [rule, exact] : rows) {
    const std::string row = table_row(rule, exact, layer);
    right = right && document.find(row + "\n") != std::string::npos;
    table += row + "\n";
  }
  EXPECT_TRUE(right) << "docs/formats.md must have these rows:\n" << table;
}

}  // namespace
}  // namespace nibble::test
