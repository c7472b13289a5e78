// SPDX-License-Identifier: Apache-2.0
#include "unit/quantize/fixture_file.h"

#include <gtest/gtest.h>

#include <cstring>

#include "checkpoint/checkpoint.h"
#include "core/small_floats.h"

namespace nibble::test {

FixtureFile::FixtureFile(const std::string& path) : path_(path) { load(); }

void FixtureFile::load() {
  const auto checkpoint = open_checkpoint(std::string(NIBBLE_TEST_DATA "/fixtures/") + path_);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  for (const auto& [name, tensor] : checkpoint->tensors) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(tensor.bytes.data());
    tensors_[name] = {
        std::string(nibble::name(tensor.type)), tensor.shape, {bytes, bytes + tensor.bytes.size()}};
  }
}

std::vector<std::string> FixtureFile::names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_) names.push_back(name);
  return names;
}

const FixtureFile::Tensor* FixtureFile::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found != tensors_.end()) return &found->second;
  ADD_FAILURE() << path_ << " has no tensor " << name;
  return nullptr;
}

std::vector<std::uint8_t> FixtureFile::bytes(const std::string& name) const {
  const Tensor* tensor = find(name);
  return tensor ? tensor->bytes : std::vector<std::uint8_t>{};
}

float FixtureFile::scalar(const std::string& name) const {
  const std::vector<std::uint8_t> raw = bytes(name);
  float value = 0;
  EXPECT_EQ(raw.size(), sizeof value) << name;
  if (raw.size() == sizeof value) std::memcpy(&value, raw.data(), sizeof value);
  return value;
}

Source FixtureFile::source(const std::string& name) const {
  const Tensor* tensor = find(name);
  if (!tensor || tensor->shape.size() != 2) return {};
  Source source{.rows = tensor->shape[0], .columns = tensor->shape[1]};
  source.x.resize(static_cast<std::size_t>(source.rows * source.columns));
  const std::size_t width = tensor->dtype == "F32" ? 4 : 2;
  EXPECT_EQ(tensor->bytes.size(), source.x.size() * width) << name;
  for (std::size_t i = 0; i < source.x.size(); ++i) {
    if (width == 4) {
      std::memcpy(&source.x[i], tensor->bytes.data() + 4 * i, 4);
    } else {
      std::uint16_t bits = 0;
      std::memcpy(&bits, tensor->bytes.data() + 2 * i, 2);
      source.x[i] = bf16_value(bits);
    }
  }
  return source;
}

Source corner(const Source& source, std::int64_t rows, std::int64_t columns) {
  Source part{.rows = rows, .columns = columns};
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto begin = source.x.begin() + row * source.columns;
    part.x.insert(part.x.end(), begin, begin + columns);
  }
  return part;
}

}  // namespace nibble::test
