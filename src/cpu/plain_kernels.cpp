// SPDX-License-Identifier: Apache-2.0
#include "cpu/plain_kernels.h"

#include <cmath>
#include <cstring>

#include "core/e2m1.h"
#include "core/small_floats.h"

namespace nibble {
namespace {

// The scales of NVFP4 come 2^-8 too small: see activation_records.h.
float kernel_scale(Format format, std::uint8_t byte) {
  if (format == Format::mxfp4) return e8m0_value(byte);
  return static_cast<float>(e4m3_units(byte)) * 0x1p-17f;
}

DecodedGroup decode_group(const PanelView& panel, std::int64_t group) {
  DecodedGroup to;
  const std::uint8_t* bytes = panel.codes + group * kGroupCodeBytes;
  const std::uint8_t* scales =
      panel.scales + group * kGroupElements / block_size(panel.format) * kPanelColumns;
  for (int column = 0; column < kPanelColumns; ++column) {
    for (int element = 0; element < kGroupElements; ++element) {
      const std::uint8_t byte = bytes[element / 8 * kGroupCodeBytes / 2 + column * 4 + element % 4];
      to.codes_plus_12[element / 4][column][element % 4] =
          static_cast<std::uint8_t>(12 + e2m1_doubled(unpack_code(byte, (element & 4) != 0)));
    }
    to.scales[column] = kernel_scale(panel.format, scales[column]);
  }
  return to;
}

void decode(const PanelView& panel, DecodedGroup* groups) {
  for (std::int64_t group = 0; group < panel.groups; ++group) {
    groups[group] = decode_group(panel, group);
  }
}

template <int kDigits>
void add_group(const Record<kDigits>& record, const DecodedGroup& group, float* sums) {
  for (int column = 0; column < kPanelColumns; ++column) {
    std::uint32_t total = 0;  // wraps as the vectors do; what comes out fits
    for (int digit = 0; digit < kDigits; ++digit) {
      total <<= 8;
      for (int element = 0; element < kGroupElements; ++element) {
        total += static_cast<std::uint32_t>(record.digits[digit][element] *
                                            group.codes_plus_12[element / 4][column][element % 4]);
      }
    }
    const auto dot =
        static_cast<std::int32_t>(total + static_cast<std::uint32_t>(record.correction));
    sums[column] =
        std::fma(static_cast<float>(dot) * record.scale, group.scales[column], sums[column]);
  }
}

template <int kDigits>
void add_row(const Record<kDigits>* row, const PanelView& panel, float* sums) {
  for (std::int64_t group = 0; group < panel.groups; ++group) {
    add_group(row[group], decode_group(panel, group), sums);
  }
}

template <int kDigits>
void add_tile(const Record<kDigits>* rows, const DecodedGroup* columns, std::int64_t panel_stride,
              std::int64_t groups, float* sums) {
  for (std::int64_t group = 0; group < groups; ++group) {
    for (int row = 0; row < kTileRows; ++row) {
      for (int panel = 0; panel < kTilePanels; ++panel) {
        add_group(rows[group * kTileRows + row], columns[panel * panel_stride + group],
                  sums + row * kTileColumns + panel * kPanelColumns);
      }
    }
  }
}

bool store(const float* sums, const OutputRow& row) {
  bool finite = true;
  for (std::int64_t column = 0; column < row.count; ++column) {
    const float scaled = row.alpha * sums[column];
    finite &= std::isfinite(sums[column]);
    std::byte* to = row.to + column * out_bytes(row.type);
    const std::uint16_t narrow =
        row.type == OutType::bf16 ? bf16_encode(scaled) : f16_encode(scaled);
    row.type == OutType::f32 ? std::memcpy(to, &scaled, 4) : std::memcpy(to, &narrow, 2);
  }
  return finite;
}

}  // namespace

const GemmKernels& plain_gemm_kernels() {
  static const GemmKernels table{add_row<1>,  add_row<3>,  add_group<3>, decode,
                                 add_tile<1>, add_tile<3>, store,        "SCALAR"};
  return table;
}

}  // namespace nibble
