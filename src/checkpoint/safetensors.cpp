// SPDX-License-Identifier: Apache-2.0
// safetensors: eight bytes of header length, the header as JSON, the data. Every byte of the data
// belongs to exactly one tensor (format description of the safetensors project).
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "checkpoint/checkpoint.h"
#include "checkpoint/parse_json.h"
#include "checkpoint/untrusted_text.h"

namespace nibble {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kLargestHeaderBytes = 100'000'000;  // the format's own limit
constexpr std::size_t kHeaderLevels = 4;
constexpr std::size_t kIndexLevels = 8;

struct Entry {
  std::string name;
  std::uint64_t begin = 0, end = 0;
};

tl::unexpected<Error> corrupt(const std::string& label, const std::string& what) {
  return fail(ErrorKind::corrupt, label + ": " + what);
}

// The type of a file, not one of GGUF's.
std::optional<StoredType> safetensors_type(const Json& value) {
  if (!value.is_string()) return std::nullopt;
  const auto type = parse_enum<StoredType>(value.get_ref<const std::string&>());
  return type && stored_bits(*type) > 0 ? type : std::nullopt;
}

// Elements of a shape; nullopt where an entry is no size or the product leaves 60 bits.
std::optional<std::uint64_t> read_shape(const Json& value, std::vector<std::int64_t>& shape) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 60;
  if (!value.is_array()) return std::nullopt;
  std::uint64_t elements = 1;
  for (const auto& size : value) {
    if (!size.is_number_unsigned()) return std::nullopt;
    const auto count = size.get<std::uint64_t>();
    if (count >= kMost || (count > 0 && elements > kMost / count)) return std::nullopt;
    elements *= count;
    shape.push_back(static_cast<std::int64_t>(count));
  }
  return elements;
}

Result<Entry> read_tensor(const std::string& name, const Json& value,
                          std::span<const std::byte> data, const std::string& label,
                          StoredTensor& tensor) {
  const auto refuse = [&](const std::string& what) {
    return corrupt(label, fmt::format("tensor '{}': {}", shown(name), what));
  };
  if (!is_plain_name(name))
    return refuse("a name is UTF-8 without control characters, at most 1024 bytes");
  if (!value.is_object()) return refuse("its header entry is no object");
  for (const char* key : {"dtype", "shape", "data_offsets"}) {
    if (!value.contains(key)) return refuse(fmt::format("its header entry has no {}", key));
  }
  const auto type = safetensors_type(value["dtype"]);
  if (!type)
    return refuse(
        fmt::format("dtype {} is not known",
                    shown(value["dtype"].dump(-1, ' ', true, Json::error_handler_t::replace))));
  tensor.type = *type;
  const auto elements = read_shape(value["shape"], tensor.shape);
  if (!elements) return refuse("shape is no list of sizes, or their product is too large");
  const auto& offsets = value["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned()) {
    return refuse("data_offsets is no pair of offsets");
  }
  Entry entry{name, offsets[0].get<std::uint64_t>(), offsets[1].get<std::uint64_t>()};
  if (entry.begin > entry.end || entry.end > data.size()) {
    return refuse(fmt::format("data_offsets {}..{} leave the data of {} bytes", entry.begin,
                              entry.end, data.size()));
  }
  const auto bits = static_cast<std::uint64_t>(stored_bits(*type));
  const std::uint64_t bytes =
      bits >= 8 ? *elements * (bits / 8) : (*elements + 1) / 2;  // below 2^63, see read_shape
  if (bytes != entry.end - entry.begin) {
    return refuse(fmt::format("{} bytes at {}..{}, but its shape and dtype {} take {}",
                              entry.end - entry.begin, entry.begin, entry.end, nibble::name(*type),
                              bytes));
  }
  tensor.bytes = data.subspan(entry.begin, entry.end - entry.begin);
  tensor.file = label;
  return entry;
}

// In the order of their offsets, the tensors follow each other without gap or overlap, and fill the
// data.
Status check_cover(std::vector<Entry>& entries, std::uint64_t data_bytes,
                   const std::string& label) {
  std::sort(entries.begin(), entries.end(), [](const Entry& x, const Entry& y) {
    return std::pair(x.begin, x.end) < std::pair(y.begin, y.end);
  });
  std::uint64_t covered = 0;
  for (const auto& entry : entries) {
    if (entry.begin != covered) {
      return corrupt(
          label,
          fmt::format("tensor '{}' begins at {}, the one before it ends at {}: {}", entry.name,
                      entry.begin, covered,
                      entry.begin < covered ? "they overlap" : "bytes between belong to none"));
    }
    covered = entry.end;
  }
  if (covered != data_bytes) {
    return corrupt(label, fmt::format("tensors end at {}, the data at {}", covered, data_bytes));
  }
  return {};
}

}  // namespace

Result<Checkpoint> parse_safetensors(std::span<const std::byte> bytes, const std::string& label) {
  std::uint64_t header_bytes = 0;
  if (bytes.size() < sizeof(header_bytes)) {
    return corrupt(label, fmt::format("{} bytes are too few for a safetensors file", bytes.size()));
  }
  std::memcpy(&header_bytes, bytes.data(), sizeof(header_bytes));
  const auto rest = bytes.subspan(sizeof(header_bytes));
  if (header_bytes > rest.size() || header_bytes > kLargestHeaderBytes) {
    return corrupt(label,
                   fmt::format("the header is said to have {} bytes; {} follow, and at most {} "
                               "are read",
                               header_bytes, rest.size(), kLargestHeaderBytes));
  }
  const std::string_view text(reinterpret_cast<const char*>(rest.data()), header_bytes);
  const auto header = parse_untrusted_json(text, label + ": header", kHeaderLevels);
  if (!header) return tl::unexpected(header.error());
  if (!header->is_object()) return corrupt(label, "the header is no JSON object");

  Checkpoint checkpoint;
  checkpoint.path = label;
  std::vector<Entry> entries;
  const auto data = rest.subspan(header_bytes);
  for (const auto& [name, value] : header->items()) {
    if (name == "__metadata__") {
      if (!value.is_object()) return corrupt(label, "__metadata__ is no object");
      for (const auto& [key, item] : value.items()) {
        if (!item.is_string())
          return corrupt(label, fmt::format("__metadata__ '{}' is no text", shown(key)));
        checkpoint.metadata[label][key] = item.get<std::string>();
      }
      continue;
    }
    StoredTensor tensor;
    const auto entry = read_tensor(name, value, data, label, tensor);
    if (!entry) return tl::unexpected(entry.error());
    entries.push_back(*entry);
    checkpoint.tensors.emplace(name, std::move(tensor));
  }
  if (auto ok = check_cover(entries, data.size(), label); !ok) return tl::unexpected(ok.error());
  return checkpoint;
}

Result<std::map<std::string, std::string>> parse_shard_index(std::string_view text,
                                                             const std::string& label) {
  const auto index = parse_untrusted_json(text, label, kIndexLevels);
  if (!index) return tl::unexpected(index.error());
  if (!index->is_object() || !index->contains("weight_map") ||
      !(*index)["weight_map"].is_object()) {
    return corrupt(label, "no object 'weight_map'");
  }
  std::map<std::string, std::string> shards;
  for (const auto& [name, file] : (*index)["weight_map"].items()) {
    if (!file.is_string())
      return corrupt(label, fmt::format("the file of tensor '{}' is no text", shown(name)));
    const auto& shard = file.get_ref<const std::string&>();
    // A shard lies beside its index: no other folder is ever opened on an index's word.
    if (shard.empty() || shard == "." || shard == ".." || shard.find('/') != std::string::npos ||
        shard.find('\0') != std::string::npos) {
      return corrupt(label, fmt::format("tensor '{}' is in '{}', which is no file beside the index",
                                        shown(name), shown(shard)));
    }
    shards[name] = shard;
  }
  return shards;
}

}  // namespace nibble
