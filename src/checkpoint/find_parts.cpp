// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/find_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstring>

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
                      fmt::format("'{0}{1}' is there, but no codes beside it ('{0}{2}')", name,
                                  names.scales, names.codes));
      }
      if (checkpoint_.find(name + names.codes)) {
        return refuse(ErrorKind::not_found,
                      fmt::format("'{0}{1}' is there, but no block scales beside it ('{0}{2}')",
                                  name, names.codes, names.scales));
      }
    }
    if (const auto* tensor = checkpoint_.find(name)) {
      return refuse(ErrorKind::invalid_argument,
                    fmt::format("tensor '{}' is {}: no 4-bit codes with a name that ends in "
                                ".weight_packed, .weight or .qdata",
                                name, shape_text(*tensor)));
    }
    return refuse(ErrorKind::not_found,
                  fmt::format("no tensor '{}' among {}", name, checkpoint_.tensors.size()));
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
    if ((!packed && codes.type != StoredType::f4) || codes.shape.size() != 2) {
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

  // True, false, or nothing said.
  std::optional<bool> metadata_says_tiled() const {
    for (const auto& key : {module_ + ".is_swizzled_scales", std::string("is_swizzled_scales")}) {
      const auto found = checkpoint_.metadata.find(key);
      if (found == checkpoint_.metadata.end()) continue;
      if (found->second == "true" || found->second == "True") return true;
      if (found->second == "false" || found->second == "False") return false;
    }
    return std::nullopt;
  }

  Status read_layout(const std::string& scales_name) {
    const auto& shape = parts_.scales->shape;
    set_layout(ScaleOrder::row_major);
    const std::int64_t rows = parts_.info.rows, blocks = parts_.info.layout.blocks;
    const std::vector<std::int64_t> plain{rows, blocks},
        torchao{divide_up(rows, 128) * 32, divide_up(blocks, 4) * 16};
    const auto said = metadata_says_tiled();
    if (options_.declared_scales) {
      set_layout(*options_.declared_scales);
    } else if (said) {
      set_layout(*said ? ScaleOrder::tiled_128x4 : ScaleOrder::row_major);
    } else if (shape == torchao) {
      set_layout(ScaleOrder::tiled_128x4);
    } else if (shape != plain) {
      return refuse(ErrorKind::invalid_argument,
                    fmt::format("tensor '{}' is {}, where row-major scales are [{}, {}] and 128x4 "
                                "tiles [{}, {}]: declare their "
                                "layout (--scales {})",
                                scales_name, shape_text(*parts_.scales), rows, blocks, torchao[0],
                                torchao[1], all_names<ScaleOrder>()));
    }
    const auto stored = static_cast<std::int64_t>(parts_.scales->bytes.size());
    if (stored != parts_.info.layout.bytes()) {
      return refuse(
          ErrorKind::corrupt,
          fmt::format("tensor '{}' is {}: {} scales of [{}, {}] take {} bytes, it has {}",
                      scales_name, shape_text(*parts_.scales), name(parts_.info.layout.order), rows,
                      blocks, parts_.info.layout.bytes(), stored));
    }
    return {};
  }

  Status read_scalars() {
    const std::string scale = joined(module_, names_->tensor_scale);
    const bool two_levels = parts_.info.format == Format::nvfp4;
    if (two_levels && !checkpoint_.find(scale) && names_->convention != Convention::torchao) {
      return refuse(ErrorKind::not_found, fmt::format("'{}' has no tensor scale beside it ('{}')",
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
