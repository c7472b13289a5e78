// SPDX-License-Identifier: Apache-2.0
// Checkpoint files made in memory, sound by default and as broken as a test asks for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nibble {

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <class T>
std::string packed(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

inline std::string safetensors_of(std::string_view header, std::string_view data) {
  return packed<std::uint64_t>(header.size()) + std::string(header) + std::string(data);
}

class SafetensorsBuilder {
 public:
  void add(const std::string& name, const std::string& dtype,
           const std::vector<std::int64_t>& shape, const std::string& data) {
    std::string sizes;
    for (const auto size : shape) sizes += (sizes.empty() ? "" : ",") + std::to_string(size);
    header_ += (header_.empty() ? "" : ",") +
               ("\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":[" + sizes +
                "],\"data_offsets\":[" + std::to_string(data_.size()) + "," +
                std::to_string(data_.size() + data.size()) + "]}");
    data_ += data;
  }
  void add_metadata(const std::string& key, const std::string& value) {
    header_ +=
        (header_.empty() ? "" : ",") + ("\"__metadata__\":{\"" + key + "\":\"" + value + "\"}");
  }
  std::string build() const { return safetensors_of("{" + header_ + "}", data_); }

 private:
  std::string header_, data_;
};

class GgufBuilder {
 public:
  std::uint32_t magic = 0x46554747, version = 3;
  std::uint64_t alignment = 32;
  std::string extra_pairs;  // serialised, after the alignment
  std::uint64_t extra_pair_count = 0;
  std::uint64_t false_tensor_count = 0, false_offset = 0;  // in place of the true ones, where not 0

  static std::string text(const std::string& value) {
    return packed<std::uint64_t>(value.size()) + value;
  }

  // Dimensions fastest first, as GGUF has them.
  void add_tensor(const std::string& name, const std::vector<std::uint64_t>& dimensions,
                  std::uint32_t type, const std::string& data) {
    infos_ += text(name) + packed(static_cast<std::uint32_t>(dimensions.size()));
    for (const auto size : dimensions) infos_ += packed(size);
    infos_ += packed(type) +
              packed<std::uint64_t>(false_offset != 0 && count_ > 0 ? false_offset : data_.size());
    data_ += data;
    data_.resize((data_.size() + alignment - 1) / alignment * alignment);
    ++count_;
  }

  std::string build() const {
    std::string file = packed(magic) + packed(version) +
                       packed(false_tensor_count != 0 ? false_tensor_count : count_) +
                       packed(1 + extra_pair_count);
    file += text("general.alignment") + packed<std::uint32_t>(4) +
            packed(static_cast<std::uint32_t>(alignment)) + extra_pairs + infos_;
    file.resize((file.size() + 31) / 32 * 32);
    return file + data_;
  }

 private:
  std::string infos_, data_;
  std::uint64_t count_ = 0;
};

}  // namespace nibble
