// SPDX-License-Identifier: Apache-2.0
// The tensors of a checkpoint as its files name them: safetensors (one file, or shards with an
// index) and GGUF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/mapped_file.h"
#include "core/enum_names.h"
#include "core/error.h"

namespace nibble {

// Names as in safetensors; the GGUF ones as in ggml.
enum class StoredType : std::uint8_t {
  boolean,
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  u64,
  i64,
  f16,
  bf16,
  f32,
  f64,
  f8_e4m3,
  f8_e5m2,
  f8_e8m0,
  f4,
  ggml_mxfp4,  // GGUF type 39
  ggml_nvfp4,  // GGUF type 40
  ggml_other,  // a GGUF type whose size nibble does not know; its bytes are not given
};

template <>
struct EnumNames<StoredType> {
  static constexpr std::array table{
      std::pair{StoredType::boolean, std::string_view("BOOL")},
      std::pair{StoredType::u8, std::string_view("U8")},
      std::pair{StoredType::i8, std::string_view("I8")},
      std::pair{StoredType::u16, std::string_view("U16")},
      std::pair{StoredType::i16, std::string_view("I16")},
      std::pair{StoredType::u32, std::string_view("U32")},
      std::pair{StoredType::i32, std::string_view("I32")},
      std::pair{StoredType::u64, std::string_view("U64")},
      std::pair{StoredType::i64, std::string_view("I64")},
      std::pair{StoredType::f16, std::string_view("F16")},
      std::pair{StoredType::bf16, std::string_view("BF16")},
      std::pair{StoredType::f32, std::string_view("F32")},
      std::pair{StoredType::f64, std::string_view("F64")},
      std::pair{StoredType::f8_e4m3, std::string_view("F8_E4M3")},
      std::pair{StoredType::f8_e5m2, std::string_view("F8_E5M2")},
      std::pair{StoredType::f8_e8m0, std::string_view("F8_E8M0")},
      std::pair{StoredType::f4, std::string_view("F4")},
      std::pair{StoredType::ggml_mxfp4, std::string_view("GGML_MXFP4")},
      std::pair{StoredType::ggml_nvfp4, std::string_view("GGML_NVFP4")},
      std::pair{StoredType::ggml_other, std::string_view("GGML")}};
};

// Bits of one element; 0 where elements have no size of their own.
int stored_bits(StoredType type);

struct StoredTensor {
  StoredType type = StoredType::u8;
  std::vector<std::int64_t> shape;  // slowest first, also for GGUF
  std::span<const std::byte> bytes;
  std::string file;
};

struct Checkpoint {
  std::string path;                             // as it was asked for
  std::map<std::string, StoredTensor> tensors;  // by name
  // By file, since what one shard says does not hold of another: the texts that it carries.
  std::map<std::string, std::map<std::string, std::string>> metadata;
  std::vector<std::shared_ptr<const MappedFile>> files;  // what the spans point into

  const StoredTensor* find(std::string_view name) const;
};

// A .safetensors or .gguf file, a shard index (*.index.json), or a folder that holds one of them.
// Errors are one line that names the file and the tensor, key or offset: corrupt for what
// contradicts itself, not_found, io.
Result<Checkpoint> open_checkpoint(const std::string& path);

// Of bytes that are in memory already, for tests and fuzzing; `label` stands for the path.
Result<Checkpoint> parse_safetensors(std::span<const std::byte> bytes, const std::string& label);
Result<Checkpoint> parse_gguf(std::span<const std::byte> bytes, const std::string& label);

// name -> shard, of an index file's text.
Result<std::map<std::string, std::string>> parse_shard_index(std::string_view text,
                                                             const std::string& label);

}  // namespace nibble
