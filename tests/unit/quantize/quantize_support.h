// SPDX-License-Identifier: Apache-2.0
// Shared by the quantizer tests: any rule by its full name ("nvfp4 rn"), what it must give, and the
// first byte that differs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/quantize.h"

namespace nibble::test {

// What another implementation made of a tensor. Codes are packed, scales row-major.
struct Expected {
  std::vector<std::uint8_t> codes, scales;
  std::optional<float> multiplier, divisor;
  std::optional<std::int64_t> lost;
};

struct Source {
  std::int64_t rows = 0, columns = 0;
  std::vector<float> x;
};

std::vector<std::string> all_rules();

Result<Quantized> quantize(std::string_view rule, const Source& source,
                           const QuantizeOptions& options = {});

// Empty where all is equal, bits of the tensor scale included; else the first difference in words.
std::string difference(const Quantized& got, const Expected& expected);

// code * scale * multiplier in double.
double value_at(const BlockTensor& tensor, std::int64_t row, std::int64_t column);

}  // namespace nibble::test
