// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/block_weights.h"

#include <fmt/format.h>

#include <cstring>

#include "checkpoint/find_parts.h"
#include "core/e2m1.h"
#include "core/small_floats.h"

namespace nibble {
namespace {

std::span<const std::uint8_t> as_bytes(const StoredTensor& tensor) {
  return {reinterpret_cast<const std::uint8_t*>(tensor.bytes.data()), tensor.bytes.size()};
}

// Byte j of a group holds its code j (low) and j + count / 2 (high); nibble's rows hold neighbours
// in one byte.
void take_group(const std::uint8_t* from, int count, BlockTensor& to, std::int64_t row,
                std::int64_t column) {
  const int half = count / 2;
  for (int i = 0; i < count; i += 2) {
    const auto code = [&](int at) { return unpack_code(from[at % half], at >= half); };
    to.codes[static_cast<std::size_t>((row * to.columns + column + i) / 2)] =
        pack_codes(code(i), code(i + 1));
  }
}

// GGUF's blocks: NVFP4 has 4 scale bytes and 4 groups of 16 codes, MXFP4 a scale byte and a group
// of 32.
void unpack_gguf(std::span<const std::uint8_t> bytes, BlockTensor& to) {
  const bool nvfp4 = to.format == Format::nvfp4;
  const int groups = nvfp4 ? 4 : 1, group = block_size(to.format);
  const std::uint8_t* from = bytes.data();
  for (std::int64_t row = 0; row < to.rows; ++row) {
    for (std::int64_t column = 0; column < to.columns; column += groups * group) {
      for (int g = 0; g < groups; ++g) {
        to.scales[static_cast<std::size_t>(to.layout.offset(row, column / group + g))] = from[g];
        take_group(from + groups + g * group / 2, group, to, row, column + g * group);
      }
      from += groups + groups * group / 2;
    }
  }
}

void count_scales(BlockWeights& weights) {
  const auto view = weights.tensor.view();
  const auto note = [](ScaleCount& count, std::int64_t row, std::int64_t block) {
    if (count.count++ == 0) count.first_row = row, count.first_block = block;
  };
  for (std::int64_t row = 0; row < view.rows; ++row) {
    for (std::int64_t block = 0; block < view.blocks(); ++block) {
      const std::uint8_t byte = view.scale(row, block);
      const bool nvfp4 = view.format == Format::nvfp4;
      if (nvfp4 ? e4m3_is_nan(byte) : e8m0_is_nan(byte)) note(weights.nan_scales, row, block);
      if (nvfp4 && (byte & 0x7F) == 0) note(weights.zero_scales, row, block);
      if (nvfp4 && byte > 0x80 && byte < 0xFF) note(weights.negative_scales, row, block);
    }
  }
  const auto report = [&weights](const ScaleCount& count, const char* what) {
    if (count.count == 0) return;
    weights.findings.push_back(fmt::format("{} {} block scales, first at row {} block {}",
                                           count.count, what, count.first_row, count.first_block));
  };
  report(weights.nan_scales, "NaN");
  report(weights.zero_scales, "zero");
  report(weights.negative_scales, "negative");
}

}  // namespace

Result<BlockWeights> load_block_weights(const Checkpoint& checkpoint, std::string_view name,
                                        const LoadOptions& options) {
  auto parts = find_parts(checkpoint, name, options);
  if (!parts) return tl::unexpected(parts.error());
  const auto& info = parts->info;
  auto tensor = make_block_tensor(info.format, info.rows, info.columns, info.layout.order);
  if (!tensor) {
    return fail(tensor.error().kind, fmt::format("{}: tensor '{}': {}", checkpoint.path,
                                                 parts->codes_name, tensor.error().message));
  }
  BlockWeights weights;
  weights.tensor = std::move(*tensor);
  weights.tensor.tensor_scale = parts->tensor_scale;
  weights.convention = info.convention;
  weights.used = std::move(parts->used);
  weights.activation_scale = parts->activation_scale;
  weights.findings = std::move(parts->findings);
  const auto codes = as_bytes(*parts->codes);
  if (info.convention == Convention::gguf) {
    unpack_gguf(codes, weights.tensor);
  } else {
    const auto scales = as_bytes(*parts->scales);
    NIBBLE_CHECK(codes.size() == weights.tensor.codes.size() &&
                     scales.size() == weights.tensor.scales.size(),
                 "sizes were checked against the shape");
    weights.tensor.codes.assign(codes.begin(), codes.end());
    weights.tensor.scales.assign(scales.begin(), scales.end());
  }
  count_scales(weights);
  return weights;
}

Result<BlockWeightsInfo> describe_block_weights(const Checkpoint& checkpoint, std::string_view name,
                                                const LoadOptions& options) {
  auto parts = find_parts(checkpoint, name, options);
  if (!parts) return tl::unexpected(parts.error());
  return parts->info;
}

std::vector<std::string> list_block_weights(const Checkpoint& checkpoint) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    const auto parts = find_parts(checkpoint, name, {});
    if (parts && parts->codes_name == name) names.push_back(name);
  }
  return names;
}

}  // namespace nibble
