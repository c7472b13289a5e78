// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>

#include "checkpoint/untrusted_text.h"

namespace nibble {
namespace {

namespace fs = std::filesystem;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Result<Checkpoint> open_file(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) return tl::unexpected(file.error());
  auto shared = std::make_shared<const MappedFile>(std::move(*file));
  const bool gguf = text_of(shared->bytes()).starts_with("GGUF");
  auto checkpoint =
      gguf ? parse_gguf(shared->bytes(), path) : parse_safetensors(shared->bytes(), path);
  if (checkpoint) checkpoint->files.push_back(std::move(shared));
  return checkpoint;
}

// Takes from `shard` the tensors that the index says are there.
Status take_tensors(Checkpoint& whole, Checkpoint& shard, const std::string& file,
                    const std::map<std::string, std::string>& index) {
  for (const auto& [name, wanted_file] : index) {
    if (wanted_file != file) continue;
    const auto found = shard.tensors.find(name);
    if (found == shard.tensors.end()) {
      return fail(ErrorKind::corrupt, fmt::format("{}: tensor '{}' is not in {}", whole.path,
                                                  shown(name), shown(file)));
    }
    whole.tensors.insert(*found);
  }
  whole.metadata.merge(shard.metadata);
  for (auto& each : shard.files) whole.files.push_back(std::move(each));
  return {};
}

Result<Checkpoint> open_index(const std::string& path) {
  const auto file = MappedFile::open(path);
  if (!file) return tl::unexpected(file.error());
  const auto index = parse_shard_index(text_of(file->bytes()), path);
  if (!index) return tl::unexpected(index.error());
  Checkpoint whole;
  whole.path = path;
  std::map<std::string, bool> opened;
  for (const auto& [name, shard_file] : *index) {
    if (std::exchange(opened[shard_file], true)) continue;
    auto shard = open_file((fs::path(path).parent_path() / shard_file).string());
    if (!shard) return tl::unexpected(shard.error());
    if (auto ok = take_tensors(whole, *shard, shard_file, *index); !ok)
      return tl::unexpected(ok.error());
  }
  return whole;
}

Result<Checkpoint> open_folder(const std::string& path) {
  const fs::path folder(path);
  std::error_code ignored;
  for (const char* name : {"model.safetensors.index.json", "model.safetensors"}) {
    if (fs::exists(folder / name, ignored)) return open_checkpoint((folder / name).string());
  }
  std::vector<std::string> files;
  for (auto entry = fs::directory_iterator(folder, ignored); entry != fs::directory_iterator();
       entry.increment(ignored)) {
    const auto& file = entry->path();
    if (file.extension() == ".safetensors" || file.extension() == ".gguf")
      files.push_back(file.string());
  }
  if (files.size() == 1) return open_file(files.front());
  return fail(ErrorKind::not_found,
              fmt::format("{}: a folder with {} .safetensors and .gguf files and no "
                          "model.safetensors.index.json; name one file",
                          path, files.size()));
}

}  // namespace

int stored_bits(StoredType type) {
  switch (type) {
    case StoredType::boolean:
    case StoredType::u8:
    case StoredType::i8:
    case StoredType::f8_e4m3:
    case StoredType::f8_e5m2:
    case StoredType::f8_e8m0:
      return 8;
    case StoredType::u16:
    case StoredType::i16:
    case StoredType::f16:
    case StoredType::bf16:
      return 16;
    case StoredType::u32:
    case StoredType::i32:
    case StoredType::f32:
      return 32;
    case StoredType::u64:
    case StoredType::i64:
    case StoredType::f64:
      return 64;
    case StoredType::f4:
      return 4;
    default:
      return 0;
  }
}

const StoredTensor* Checkpoint::find(std::string_view name) const {
  const auto found = tensors.find(std::string(name));
  return found == tensors.end() ? nullptr : &found->second;
}

Result<Checkpoint> open_checkpoint(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return open_folder(path);
  if (path.ends_with(".json")) return open_index(path);
  return open_file(path);
}

}  // namespace nibble
