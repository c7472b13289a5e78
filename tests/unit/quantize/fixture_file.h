// SPDX-License-Identifier: Apache-2.0
// Tensors of the files under tests/data/fixtures, as the quantizer tests need them.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "unit/quantize/quantize_support.h"

namespace nibble::test {

class FixtureFile {
 public:
  // "edge/inputs.safetensors". Fails the test where the file cannot be read.
  explicit FixtureFile(const std::string& path);

  std::vector<std::string> names() const;
  bool has(const std::string& name) const { return tensors_.contains(name); }
  // Empty, and a failed test, where there is none.
  std::vector<std::uint8_t> bytes(const std::string& name) const;
  float scalar(const std::string& name) const;
  // F32 and BF16 tensors of two dimensions.
  Source source(const std::string& name) const;

 private:
  struct Tensor {
    std::string dtype;
    std::vector<std::int64_t> shape;
    std::vector<std::uint8_t> bytes;
  };
  void load();
  const Tensor* find(const std::string& name) const;

  std::string path_;
  std::map<std::string, Tensor> tensors_;
};

// The first columns and rows of a source.
Source corner(const Source& source, std::int64_t rows, std::int64_t columns);

}  // namespace nibble::test
