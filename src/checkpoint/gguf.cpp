// SPDX-License-Identifier: Apache-2.0
// GGUF versions 2 and 3, little-endian: counts, key-value pairs, tensor infos, then the data on an
// aligned offset (format description of the ggml project).
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "checkpoint/checkpoint.h"
#include "checkpoint/untrusted_text.h"

namespace nibble {
namespace {

constexpr int kMostArrayLevels = 4;
constexpr std::uint32_t kMostDimensions = 8;
constexpr std::uint64_t kMostEntries = std::uint64_t{1} << 20;  // keys, tensors
constexpr std::uint64_t kMostElements = std::uint64_t{1} << 60;
constexpr std::uint64_t kDefaultAlignment = 32, kLargestAlignment = std::uint64_t{1} << 20;

enum ValueType : std::uint32_t { kString = 8, kArray = 9 };
constexpr std::size_t kValueBytes[] = {1, 1, 2, 2, 4, 4, 4,
                                       1, 0, 0, 8, 8, 8};  // 0: text and array have their own

struct GgmlType {
  std::uint32_t number;
  StoredType type;
  std::int64_t block_elements, block_bytes;
};
constexpr GgmlType kGgmlTypes[] = {
    {0, StoredType::f32, 1, 4},           {1, StoredType::f16, 1, 2},
    {24, StoredType::i8, 1, 1},           {25, StoredType::i16, 1, 2},
    {26, StoredType::i32, 1, 4},          {27, StoredType::i64, 1, 8},
    {28, StoredType::f64, 1, 8},          {30, StoredType::bf16, 1, 2},
    {39, StoredType::ggml_mxfp4, 32, 17}, {40, StoredType::ggml_nvfp4, 64, 36}};

// Takes values from the front; the first that does not fit is remembered as the trouble, and all
// later ones are zero.
class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, const std::string& label)
      : bytes_(bytes), label_(label) {}

  template <class T>
  T take(const char* what) {
    T value{};
    if (!need(sizeof(T), what)) return value;
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  std::string_view take_text(const char* what) {
    const auto length = take<std::uint64_t>(what);
    if (!need(length, what)) return {};
    const std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + at_, length);
    at_ += length;
    return text;
  }

  void skip(std::uint64_t count, std::uint64_t each, const char* what) {
    if (each != 0 && count > (bytes_.size() - at_) / each) {
      refuse(fmt::format("{} of {} values leaves the file", what, count));
      return;
    }
    at_ += count * each;
  }

  void refuse(const std::string& what) {
    if (!error_)
      error_ = Error{ErrorKind::corrupt, fmt::format("{}: byte {}: {}", label_, at_, what)};
  }

  bool ok() const { return !error_; }
  const Error& error() const { return *error_; }
  std::uint64_t at() const { return at_; }
  std::uint64_t left() const { return bytes_.size() - at_; }

 private:
  bool need(std::uint64_t count, const char* what) {
    if (error_) return false;
    if (count <= bytes_.size() - at_) return true;
    refuse(fmt::format("{} leaves the file", what));
    return false;
  }

  std::span<const std::byte> bytes_;
  const std::string& label_;
  std::uint64_t at_ = 0;
  std::optional<Error> error_;
};

void skip_value(Cursor& cursor, std::uint32_t type, int levels);

void skip_array(Cursor& cursor, int levels) {
  const auto type = cursor.take<std::uint32_t>("an array's type");
  const auto count = cursor.take<std::uint64_t>("an array's length");
  if (!cursor.ok()) return;
  if (levels == kMostArrayLevels) return cursor.refuse("arrays nested too deep");
  if (type < std::size(kValueBytes) && kValueBytes[type] != 0)
    return cursor.skip(count, kValueBytes[type], "an array");
  // Each text and each array takes eight bytes or more, so a count that the file cannot hold ends
  // at its end.
  for (std::uint64_t i = 0; i < count && cursor.ok(); ++i) skip_value(cursor, type, levels + 1);
}

void skip_value(Cursor& cursor, std::uint32_t type, int levels) {
  if (type >= std::size(kValueBytes))
    return cursor.refuse(fmt::format("value type {} is not known", type));
  if (type == kString) {
    cursor.take_text("a text");
  } else if (type == kArray) {
    skip_array(cursor, levels);
  } else {
    cursor.skip(1, kValueBytes[type], "a value");
  }
}

std::uint64_t read_alignment(Cursor& cursor, std::uint32_t type) {
  if (type != 4) {
    cursor.refuse("general.alignment is no 32-bit number");
    return kDefaultAlignment;
  }
  const auto alignment = cursor.take<std::uint32_t>("general.alignment");
  if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > kLargestAlignment) {
    cursor.refuse(fmt::format("general.alignment {} is no power of two up to {}", alignment,
                              kLargestAlignment));
    return kDefaultAlignment;
  }
  return alignment;
}

// Returns the alignment of the data.
std::uint64_t read_pairs(Cursor& cursor, std::uint64_t count, const std::string& label,
                         Checkpoint& checkpoint) {
  std::uint64_t alignment = kDefaultAlignment;
  std::set<std::string_view> seen;
  for (std::uint64_t i = 0; i < count && cursor.ok(); ++i) {
    const auto key = cursor.take_text("a key");
    const auto type = cursor.take<std::uint32_t>("a value's type");
    if (!cursor.ok()) break;
    if (!seen.insert(key).second) cursor.refuse(fmt::format("key '{}' stands twice", shown(key)));
    if (key == "general.alignment") {
      alignment = read_alignment(cursor, type);
    } else if (type == kString) {
      checkpoint.metadata[label].emplace(key, cursor.take_text("a text"));
    } else {
      skip_value(cursor, type, 0);
    }
  }
  return alignment;
}

struct Info {
  std::string name;
  StoredTensor tensor;
  std::uint64_t offset = 0, bytes = 0;
  bool has_size = false;
};

void read_shape(Cursor& cursor, Info& info) {
  const auto dimensions = cursor.take<std::uint32_t>("a tensor's dimension count");
  if (dimensions > kMostDimensions)
    cursor.refuse(fmt::format("tensor '{}' has {} dimensions", info.name, dimensions));
  std::uint64_t elements = 1;
  for (std::uint32_t i = 0; i < dimensions && cursor.ok(); ++i) {
    const auto size = cursor.take<std::uint64_t>("a dimension");
    if (size > kMostElements || (size > 0 && elements > kMostElements / size)) {
      return cursor.refuse(
          fmt::format("tensor '{}': the product of its dimensions is too large", info.name));
    }
    elements *= size;
    info.tensor.shape.push_back(static_cast<std::int64_t>(size));
  }
}

Info read_info(Cursor& cursor, const std::string& label) {
  Info info;
  info.name = cursor.take_text("a tensor's name");
  if (!is_plain_name(info.name)) {
    cursor.refuse(
        fmt::format("tensor '{}': a name is UTF-8 without control characters, at most 1024 bytes",
                    shown(info.name)));
    return info;
  }
  info.tensor.file = label;
  read_shape(cursor, info);
  const auto number = cursor.take<std::uint32_t>("a tensor's type");
  info.offset = cursor.take<std::uint64_t>("a tensor's offset");
  if (!cursor.ok()) return info;
  info.tensor.type = StoredType::ggml_other;
  for (const auto& known : kGgmlTypes) {
    if (known.number != number) continue;
    const std::int64_t fastest = info.tensor.shape.empty() ? 1 : info.tensor.shape.front();
    if (fastest % known.block_elements != 0) {
      cursor.refuse(fmt::format("tensor '{}': {} columns are no multiple of {}, the block of {}",
                                info.name, fastest, known.block_elements, name(known.type)));
      return info;
    }
    std::uint64_t elements = 1;
    for (const auto size : info.tensor.shape) elements *= static_cast<std::uint64_t>(size);
    info.tensor.type = known.type;
    info.bytes = elements / static_cast<std::uint64_t>(known.block_elements) *
                 static_cast<std::uint64_t>(known.block_bytes);
    info.has_size = true;
  }
  std::reverse(info.tensor.shape.begin(), info.tensor.shape.end());
  return info;
}

// Aligned, inside the file, none over another.
Status place(std::vector<Info>& infos, std::span<const std::byte> data, std::uint64_t alignment,
             const std::string& label) {
  std::sort(infos.begin(), infos.end(), [](const Info& x, const Info& y) {
    return std::pair(x.offset, x.bytes) < std::pair(y.offset, y.bytes);
  });
  std::uint64_t used = 0;
  for (auto& info : infos) {
    const auto refuse = [&](const std::string& what) {
      return fail(ErrorKind::corrupt, fmt::format("{}: tensor '{}' at data offset {}: {}", label,
                                                  info.name, info.offset, what));
    };
    if (info.offset % alignment != 0)
      return refuse(fmt::format("no multiple of the alignment {}", alignment));
    if (info.offset > data.size() || info.bytes > data.size() - info.offset) {
      return refuse(fmt::format("its {} bytes leave the data of {}", info.bytes, data.size()));
    }
    if (info.offset < used) return refuse("lies over the tensor before it");
    used = info.offset + info.bytes;
    if (info.has_size) info.tensor.bytes = data.subspan(info.offset, info.bytes);
  }
  return {};
}

}  // namespace

Result<Checkpoint> parse_gguf(std::span<const std::byte> bytes, const std::string& label) {
  Cursor cursor(bytes, label);
  const auto magic = cursor.take<std::uint32_t>("the magic");
  const auto version = cursor.take<std::uint32_t>("the version");
  if (cursor.ok() && magic != 0x46554747) cursor.refuse("no GGUF file");
  if (cursor.ok() && version != 2 && version != 3)
    cursor.refuse(fmt::format("GGUF version {} is not read, 2 and 3 are", version));
  const auto tensor_count = cursor.take<std::uint64_t>("the tensor count");
  const auto pair_count = cursor.take<std::uint64_t>("the key count");
  for (const auto count : {tensor_count, pair_count}) {
    if (count > kMostEntries)
      cursor.refuse(fmt::format("{} entries, at most {} are read", count, kMostEntries));
  }
  Checkpoint checkpoint;
  checkpoint.path = label;
  const auto alignment = read_pairs(cursor, pair_count, label, checkpoint);
  std::vector<Info> infos;
  std::set<std::string> seen;
  for (std::uint64_t i = 0; i < tensor_count && cursor.ok(); ++i) {
    infos.push_back(read_info(cursor, label));
    if (cursor.ok() && !seen.insert(infos.back().name).second) {
      cursor.refuse(fmt::format("tensor '{}' stands twice", infos.back().name));
    }
  }
  if (!cursor.ok()) return tl::unexpected(cursor.error());
  const std::uint64_t padding = (alignment - cursor.at() % alignment) % alignment;
  const auto data = bytes.subspan(cursor.at() + std::min(padding, cursor.left()));
  if (auto ok = place(infos, data, alignment, label); !ok) return tl::unexpected(ok.error());
  for (auto& info : infos) checkpoint.tensors.emplace(std::move(info.name), std::move(info.tensor));
  return checkpoint;
}

}  // namespace nibble
