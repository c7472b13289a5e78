// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/find_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstring>

#include "checkpoint/untrusted_text.h"

namespace nibble {
namespace {

// How a convention names what belongs to one weight. A tensor scale or activation scale divides
// where `divides`.
struct Names {
  Convention convention;
  const char *codes, *scales, *tensor_scale, *activation_scale;
  bool divides;
};
constexpr Names kNames[] = {
    {Convention::compressed_tensors, ".weight_packed", ".weight_scale", ".weight_global_scale",
     ".input_global_scale", true},
    {Convention::torchao, ".qdata", ".scale", ".per_tensor_scale", nullptr, false},
    {Convention::modelopt, ".weight", ".weight_scale", ".weight_scale_2", ".input_scale", false},
};

bool is_codes_type(StoredType type) { return type == StoredType::u8 || type == StoredType::f4; }

bool is_gguf_block(StoredType type) {
  return type == StoredType::ggml_mxfp4 || type == StoredType::ggml_nvfp4;
}

// "layer.0" and ".weight"; a tensor of no module is "weight".
std::string joined(const std::string& module, const char* suffix) {
  return module.empty() ? suffix + 1 : module + suffix;
}

std::string shape_text(const StoredTensor& tensor) {
  return fmt::format("{} [{}]", name(tensor.type), fmt::join(tensor.shape, ", "));
}

class Finder {
 public:
  Finder(const Checkpoint& checkpoint, const LoadOptions& options)
      : checkpoint_(checkpoint), options_(options) {}

  Result<Parts> find(std::string_view name) {
    if (auto found = locate(name); !found) return tl::unexpected(found.error());
    Status ok = is_gguf_block(parts_.codes->type) ? read_gguf() : read_separate();
    if (!ok) return tl::unexpected(ok.error());
    // Without this, a shape of 2^60 rows of nothing would cost time without end.
    if (parts_.info.rows == 0 || parts_.info.columns == 0) {
      return refuse(ErrorKind::corrupt, fmt::format("tensor '{}' is {}: no elements",
                                                    parts_.codes_name, shape_text(*parts_.codes)));
    }
    return std::move(parts_);
  }

 private:
  tl::unexpected<Error> refuse(ErrorKind kind, const std::string& what) const {
    return fail(kind, fmt::format("{}: {}", checkpoint_.path, what));
  }

  // The codes tensor that `name` or its module means, its convention and its module.
  Status locate(std::string_view wanted) {
    const std::string name(wanted);
    if (const auto* tensor = checkpoint_.find(name); tensor && is_gguf_block(tensor->type))
      return take_gguf(name, *tensor);
    if (const auto* tensor = checkpoint_.find(name + ".weight");
        tensor && is_gguf_block(tensor->type)) {
      return take_gguf(name + ".weight", *tensor);
    }
    if (auto ok = check_one_meaning(name); !ok) return ok;
    for (const auto& names : kNames) {
      const std::string suffix = names.codes;
      const bool bare = name == suffix.substr(1);
      const bool is_codes = (bare || name.ends_with(suffix)) && checkpoint_.find(name);
      const std::string module =
          is_codes ? name.substr(0, name.size() - suffix.size() + (bare ? 1 : 0)) : name;
      const auto* tensor = checkpoint_.find(joined(module, names.codes));
      if (!tensor || (!is_codes && !checkpoint_.find(joined(module, names.scales)))) continue;
      names_ = &names;
      module_ = module;
      parts_.codes = tensor;
      parts_.codes_name = joined(module, names.codes);
      parts_.info.convention = names.convention;
      parts_.used.push_back(parts_.codes_name);
      return {};
    }
    return not_found(name);
  }

  // A module may hold the codes of one convention only; a codes tensor's own name is never in
  // doubt.
  Status check_one_meaning(const std::string& module) const {
    std::vector<std::string> found;
    for (const auto& names : kNames) {
      const auto* tensor = checkpoint_.find(joined(module, names.codes));
      if (tensor && is_codes_type(tensor->type) && checkpoint_.find(joined(module, names.scales)))
        found.push_back(joined(module, names.codes));
    }
    if (found.size() < 2) return {};
    return refuse(
        ErrorKind::invalid_argument,
        fmt::format("'{}' may mean {}: name one of them", shown(module), fmt::join(found, " or ")));
  }

  Status take_gguf(const std::string& name, const StoredTensor& tensor) {
    parts_.codes = &tensor;
    parts_.codes_name = name;
    parts_.info.convention = Convention::gguf;
    parts_.used.push_back(name);
    module_ = name.ends_with(".weight") ? name.substr(0, name.size() - 7) : name;
    return {};
  }

  Status not_found(const std::string& name) const {
    for (const auto& names : kNames) {
      if (checkpoint_.find(name + names.scales)) {
        return refuse(ErrorKind::not_found,
                      fmt::format("'{0}{1}' is there, but no codes beside it ('{0}{2}')",
                                  shown(name), names.scales, names.codes));
      }
      if (checkpoint_.find(name + names.codes)) {
        return refuse(ErrorKind::not_found,
                      fmt::format("'{0}{1}' is there, but no block scales beside it ('{0}{2}')",
                                  shown(name), names.codes, names.scales));
      }
    }
    if (const auto* tensor = checkpoint_.find(name)) {
      return refuse(ErrorKind::invalid_argument,
                    fmt::format("tensor '{}' is {}: no 4-bit codes with a name that ends in "
                                ".weight_packed, .weight or .qdata",
                                shown(name), shape_text(*tensor)));
    }
    return refuse(ErrorKind::not_found,
                  fmt::format("no tensor '{}' among {}", shown(name), checkpoint_.tensors.size()));
  }

  Status read_gguf() {
    const auto& shape = parts_.codes->shape;
    parts_.info.format =
        parts_.codes->type == StoredType::ggml_nvfp4 ? Format::nvfp4 : Format::mxfp4;
    if (shape.size() != 2) {
      return refuse(
          ErrorKind::invalid_argument,
          fmt::format("tensor '{}' has {} dimensions, not two", parts_.codes_name, shape.size()));
    }
    parts_.info.rows = shape[0];
    parts_.info.columns = shape[1];
    if (options_.declared_scales && *options_.declared_scales != ScaleOrder::row_major) {
      return refuse(ErrorKind::invalid_argument,
                    fmt::format("tensor '{}': GGUF keeps each scale in its block, not in {}",
                                parts_.codes_name, name(*options_.declared_scales)));
    }
    set_layout(ScaleOrder::row_major);
    const std::string scale = module_ + ".scale";
    if (!checkpoint_.find(scale)) return {};
    return read_scalar(scale, false,
                       [this](float value) { parts_.tensor_scale.multiplier = value; });
  }

  Status read_separate() {
    const std::string scales_name = joined(module_, names_->scales);
    parts_.scales = checkpoint_.find(scales_name);
    if (!parts_.scales) {
      return refuse(ErrorKind::not_found, fmt::format("'{}' has no block scales beside it ('{}')",
                                                      parts_.codes_name, scales_name));
    }
    parts_.used.push_back(scales_name);
    if (auto ok = read_codes(); !ok) return ok;
    if (auto ok = read_format(scales_name); !ok) return ok;
    if (auto ok = read_layout(scales_name); !ok) return ok;
    return read_scalars();
  }

  Status read_codes() {
    const auto& codes = *parts_.codes;
    const bool packed = codes.type == StoredType::u8;
    if (!is_codes_type(codes.type) || codes.shape.size() != 2) {
      return refuse(ErrorKind::corrupt,
                    fmt::format("tensor '{}' is {}: codes are U8 [rows, k / 2] or F4 [rows, k]",
                                parts_.codes_name, shape_text(codes)));
    }
    parts_.info.rows = codes.shape[0];
    parts_.info.columns = packed ? codes.shape[1] * 2 : codes.shape[1];
    return {};
  }

  // The type of the block scales says the format: E4M3 for NVFP4, a byte of exponent for MXFP4.
  Status read_format(const std::string& scales_name) {
    const auto type = parts_.scales->type;
    if (type != StoredType::f8_e4m3 && type != StoredType::u8 && type != StoredType::f8_e8m0) {
      return refuse(
          ErrorKind::corrupt,
          fmt::format("tensor '{}' is {}: block scales are F8_E4M3 (nvfp4), U8 or F8_E8M0 (mxfp4)",
                      scales_name, shape_text(*parts_.scales)));
    }
    parts_.info.format = type == StoredType::f8_e4m3 ? Format::nvfp4 : Format::mxfp4;
    const int block = block_size(parts_.info.format);
    if (parts_.info.columns % block != 0) {
      return refuse(
          ErrorKind::corrupt,
          fmt::format("tensor '{}' has k={}, no multiple of the {} block {}", parts_.codes_name,
                      parts_.info.columns, name(parts_.info.format), block));
    }
    return {};
  }

  void set_layout(ScaleOrder order) {
    parts_.info.layout = {order, parts_.info.rows,
                          parts_.info.columns / block_size(parts_.info.format)};
  }

  // What the metadata of the scales' own file says; nothing where it is silent.
  Status read_said_layout(std::optional<ScaleOrder>& said) const {
    const auto texts = checkpoint_.metadata.find(parts_.scales->file);
    if (texts == checkpoint_.metadata.end()) return {};
    for (const auto& key : {module_ + ".is_swizzled_scales", std::string("is_swizzled_scales")}) {
      const auto found = texts->second.find(key);
      if (found == texts->second.end()) continue;
      const auto& text = found->second;
      if (text == "true" || text == "True") {
        said = ScaleOrder::tiled_128x4;
      } else if (text == "false" || text == "False") {
        said = ScaleOrder::row_major;
      } else {
        return refuse(ErrorKind::corrupt, fmt::format("metadata {} is '{}', not true or false",
                                                      shown(key), shown(text)));
      }
      return {};
    }
    return {};
  }

  // Declared, or said by the metadata; nothing where it is left to the shape.
  Status read_wanted_layout(const std::string& scales_name, std::optional<ScaleOrder>& wanted) {
    std::optional<ScaleOrder> said;
    if (auto ok = read_said_layout(said); !ok) return ok;
    wanted = options_.declared_scales ? options_.declared_scales : said;
    if (said && wanted != said) {
      return refuse(ErrorKind::invalid_argument,
                    fmt::format("tensor '{}' is declared {}, but the file's metadata says {}",
                                scales_name, name(*wanted), name(*said)));
    }
    return {};
  }

  Status read_layout(const std::string& scales_name) {
    const auto& shape = parts_.scales->shape;
    set_layout(ScaleOrder::row_major);
    const std::int64_t rows = parts_.info.rows, blocks = parts_.info.layout.blocks;
    // No shape is both: the tiles of a row have at least four times its blocks.
    const std::vector<std::int64_t> plain{rows, blocks},
        tiles{divide_up(rows, 128) * 32, divide_up(blocks, 4) * 16};
    std::optional<ScaleOrder> wanted;
    if (auto ok = read_wanted_layout(scales_name, wanted); !ok) return ok;
    const auto refuse_shape = [&](const std::string& advice) {
      return refuse(ErrorKind::invalid_argument,
                    fmt::format("tensor '{}' is {}, where row-major scales are [{}, {}] and 128x4 "
                                "tiles [{}, {}]: {}",
                                scales_name, shape_text(*parts_.scales), rows, blocks, tiles[0],
                                tiles[1], advice));
    };
    if (wanted) {
      set_layout(*wanted);
      // A flat list has no shape to contradict the declaration.
      if (wanted == ScaleOrder::row_major && shape != plain && shape.size() != 1)
        return refuse_shape("it is not row_major");
    } else if (shape == tiles) {
      set_layout(ScaleOrder::tiled_128x4);
    } else if (shape != plain) {
      return refuse_shape("declare their layout (--scales " + all_names<ScaleOrder>() + ")");
    }
    return check_scale_bytes(scales_name);
  }

  Status check_scale_bytes(const std::string& scales_name) const {
    const auto& layout = parts_.info.layout;
    const auto stored = static_cast<std::int64_t>(parts_.scales->bytes.size());
    if (stored == layout.bytes()) return {};
    return refuse(ErrorKind::corrupt,
                  fmt::format("tensor '{}' is {}: {} scales of [{}, {}] take {} bytes, it has {}",
                              scales_name, shape_text(*parts_.scales), name(layout.order),
                              layout.rows, layout.blocks, layout.bytes(), stored));
  }

  Status read_scalars() {
    const std::string scale = joined(module_, names_->tensor_scale);
    const bool two_levels = parts_.info.format == Format::nvfp4;
    if (two_levels && !checkpoint_.find(scale) && names_->convention != Convention::torchao) {
      return refuse(ErrorKind::not_found, fmt::format("'{}' has no tensor scale beside it ('{}')",
                                                      parts_.codes_name, scale));
    }
    if (!two_levels && checkpoint_.find(scale)) {
      return refuse(ErrorKind::corrupt,
                    fmt::format("'{}' has the block scales of mxfp4, which knows no tensor scale, "
                                "but '{}' is there",
                                parts_.codes_name, scale));
    }
    if (two_levels && checkpoint_.find(scale)) {
      auto ok = read_scalar(scale, names_->divides, [this](float value) {
        parts_.tensor_scale.multiplier = names_->divides ? 1.0f / value : value;
        if (names_->divides) parts_.tensor_scale.divisor = value;
      });
      if (!ok) return ok;
    }
    if (!names_->activation_scale || !checkpoint_.find(joined(module_, names_->activation_scale)))
      return {};
    return read_scalar(
        joined(module_, names_->activation_scale), names_->divides,
        [this](float value) { parts_.activation_scale = names_->divides ? 1.0f / value : value; });
  }

  template <class Take>
  Status read_scalar(const std::string& scalar_name, bool divides, Take take) {
    const auto& tensor = *checkpoint_.find(scalar_name);
    if (tensor.type != StoredType::f32 || tensor.bytes.size() != sizeof(float)) {
      return refuse(ErrorKind::corrupt, fmt::format("tensor '{}' is {}: it must be one F32",
                                                    scalar_name, shape_text(tensor)));
    }
    float value = 0;
    std::memcpy(&value, tensor.bytes.data(), sizeof(value));
    if (!(value > 0) || !std::isfinite(value)) {
      parts_.findings.push_back(fmt::format("{} is {}: a {} must be positive and finite",
                                            scalar_name, value,
                                            divides ? "divisor" : "multiplier"));
    }
    parts_.used.push_back(scalar_name);
    take(value);
    return {};
  }

  const Checkpoint& checkpoint_;
  const LoadOptions& options_;
  const Names* names_ = nullptr;
  std::string module_;
  Parts parts_;
};

}  // namespace

Result<Parts> find_parts(const Checkpoint& checkpoint, std::string_view name,
                         const LoadOptions& options) {
  return Finder(checkpoint, options).find(name);
}

}  // namespace nibble
