// SPDX-License-Identifier: Apache-2.0
#include "reference/hypothesis_readings.h"

#include <cmath>
#include <deque>
#include <string>

#include "core/e2m1.h"
#include "core/small_floats.h"

namespace nibble {
namespace {

using Value = std::function<double(std::int64_t row, std::int64_t column)>;

double scale_value(Format format, std::uint8_t byte) {
  return static_cast<double>(format == Format::nvfp4 ? e4m3_scale(byte) : e8m0_value(byte));
}

double honest_value(const BlockTensorView& tensor, std::int64_t row, std::int64_t column) {
  return static_cast<double>(e2m1_value(tensor.code(row, column))) *
         scale_value(tensor.format, tensor.scale(row, column / block_size(tensor.format)));
}

Value honest(const ActivationView& view) {
  return std::visit(
      [](const auto& tensor) -> Value {
        return [tensor](std::int64_t row, std::int64_t column) {
          if constexpr (std::is_same_v<std::decay_t<decltype(tensor)>, BlockTensorView>) {
            return honest_value(tensor, row, column);
          } else {
            return static_cast<double>(tensor.value(row, column));
          }
        };
      },
      view);
}

// A mistake with one block operand: what its element is read as.
using Mistake = std::function<std::optional<Value>(const BlockTensorView&)>;

// The code is read right, the scale by `scale(row, column)`.
Value with_scale(const BlockTensorView& tensor, Value scale) {
  return [tensor, scale](std::int64_t row, std::int64_t column) {
    return static_cast<double>(e2m1_value(tensor.code(row, column))) * scale(row, column);
  };
}

// The byte at `offset` of a scale buffer; what lies beyond it is taken for zero.
std::uint8_t byte_at(std::span<const std::uint8_t> bytes, std::int64_t offset) {
  return offset >= 0 && offset < static_cast<std::int64_t>(bytes.size())
             ? bytes[static_cast<std::size_t>(offset)]
             : 0;
}

std::optional<Value> swapped_nibbles(const BlockTensorView& tensor) {
  return [tensor](std::int64_t row, std::int64_t column) {
    return static_cast<double>(e2m1_value(tensor.code(row, column ^ 1))) *
           scale_value(tensor.format, tensor.scale(row, column / block_size(tensor.format)));
  };
}

std::optional<Value> lost_sign(const BlockTensorView& tensor) {
  return [tensor](std::int64_t row, std::int64_t column) {
    return std::fabs(honest_value(tensor, row, column));
  };
}

std::optional<Value> ignored_scale(const BlockTensorView& tensor) {
  return with_scale(tensor, [](std::int64_t, std::int64_t) { return 1.0; });
}

std::optional<Value> other_scale_type(const BlockTensorView& tensor) {
  const Format other = tensor.format == Format::nvfp4 ? Format::mxfp4 : Format::nvfp4;
  return with_scale(tensor, [tensor, other](std::int64_t row, std::int64_t column) {
    return scale_value(other, tensor.scale(row, column / block_size(tensor.format)));
  });
}

// The buffer is addressed as if its blocks had the other format's size.
std::optional<Value> other_block_size(const BlockTensorView& tensor) {
  const std::int64_t block = tensor.format == Format::nvfp4 ? 32 : 16;
  const ScaleLayout wrong{tensor.layout.order, tensor.rows, divide_up(tensor.columns, block)};
  return with_scale(tensor, [tensor, wrong, block](std::int64_t row, std::int64_t column) {
    return scale_value(tensor.format, byte_at(tensor.scales, wrong.offset(row, column / block)));
  });
}

Mistake read_as(ScaleOrder order) {
  return [order](const BlockTensorView& tensor) -> std::optional<Value> {
    if (order == tensor.layout.order) return std::nullopt;
    const ScaleLayout wrong{order, tensor.rows, tensor.layout.blocks};
    return with_scale(tensor, [tensor, wrong](std::int64_t row, std::int64_t column) {
      return scale_value(
          tensor.format,
          byte_at(tensor.scales, wrong.offset(row, column / block_size(tensor.format))));
    });
  };
}

// `order` is applied to scales that are in it already: the kernel's own reading then finds what
// row-major reading of the first result would.
Mistake tiled_twice(ScaleOrder order) {
  return [order](const BlockTensorView& tensor) -> std::optional<Value> {
    const auto once = relayout(tensor, order);
    if (!once) return std::nullopt;
    const std::int64_t row_bytes = round_up(tensor.layout.blocks, 4);
    return with_scale(
        tensor, [tensor, scales = once->scales, row_bytes](std::int64_t row, std::int64_t column) {
          return scale_value(tensor.format,
                             byte_at(scales, row * row_bytes + column / block_size(tensor.format)));
        });
  };
}

// Right scales in `order` are brought into row-major form twice.
Mistake untiled_twice(ScaleOrder order) {
  return [order](const BlockTensorView& tensor) -> std::optional<Value> {
    const ScaleLayout tiled{order, tensor.rows, tensor.layout.blocks};
    const std::int64_t row_bytes = round_up(tensor.layout.blocks, 4);
    return with_scale(tensor, [tensor, tiled, row_bytes](std::int64_t row, std::int64_t column) {
      const std::int64_t offset = tiled.offset(row, column / block_size(tensor.format));
      const std::int64_t from_row = offset / row_bytes, from_block = offset % row_bytes;
      const bool real = from_row < tensor.rows && from_block < tensor.layout.blocks;
      return scale_value(tensor.format,
                         real ? tensor.scale(from_row, from_block) : std::uint8_t{0});
    });
  };
}

// [rows, columns] read as [columns, rows], codes and scales.
std::optional<Value> transposed(const BlockTensorView& tensor) {
  return [tensor](std::int64_t row, std::int64_t column) {
    const int block = block_size(tensor.format);
    const std::int64_t code = column * tensor.rows + row;
    const std::int64_t scale = column / block * tensor.rows + row;
    return static_cast<double>(
               e2m1_value(tensor.code(code / tensor.columns, code % tensor.columns))) *
           scale_value(tensor.format,
                       tensor.scale(scale / tensor.layout.blocks, scale % tensor.layout.blocks));
  };
}

// Which operands a mistake is made with.
struct Operands {
  const char* suffix;
  bool a, b;
};

std::optional<Reading> mistaken(const GemmInputs& inputs, const Operands& operands,
                                const Mistake& mistake) {
  Reading reading = honest_reading(inputs);
  if (operands.a) {
    const auto* a = std::get_if<BlockTensorView>(&inputs.a);
    auto value = a ? mistake(*a) : std::nullopt;
    if (!value) return std::nullopt;
    reading.a = std::move(*value);
  }
  if (operands.b) {
    auto value = mistake(inputs.b);
    if (!value) return std::nullopt;
    reading.b = std::move(*value);
  }
  return reading;
}

std::optional<Reading> exchanged_scales(const GemmInputs& inputs) {
  const auto* a = std::get_if<BlockTensorView>(&inputs.a);
  if (!a) return std::nullopt;
  Reading reading = honest_reading(inputs);
  const auto take = [](const BlockTensorView& codes, const BlockTensorView& scales) {
    return with_scale(codes, [codes, scales](std::int64_t row, std::int64_t column) {
      return scale_value(
          codes.format,
          byte_at(scales.scales, codes.layout.offset(row, column / block_size(codes.format))));
    });
  };
  reading.a = take(*a, inputs.b);
  reading.b = take(inputs.b, *a);
  return reading;
}

using ChangeAlpha = std::function<double(const GemmInputs&)>;

std::optional<Reading> other_alpha(const GemmInputs& inputs, const ChangeAlpha& alpha) {
  Reading reading = honest_reading(inputs);
  reading.alpha = alpha(inputs);
  return reading;
}

// fl(1 / g) in place of g.
double inverted(const TensorScale& scale) {
  return 1.0 / (static_cast<double>(scale.multiplier) * static_cast<double>(scale.multiplier));
}

double a_inverted(const GemmInputs& inputs) {
  const auto* a = std::get_if<BlockTensorView>(&inputs.a);
  return a ? inverted(a->tensor_scale) : 1.0;
}

class Table {
 public:
  void add(std::string_view name, std::string_view advice,
           std::function<std::optional<Reading>(const GemmInputs&)> read) {
    entries_.push_back({{name, advice}, std::move(read)});
  }

  // NAME_a, NAME_b, and NAME_ab for both.
  void add_for_operands(const std::string& name, std::string_view advice, const Mistake& mistake) {
    static constexpr Operands kOperands[] = {
        {"_a", true, false}, {"_b", false, true}, {"_ab", true, true}};
    for (const auto& operands : kOperands) {
      static std::deque<std::string> names;  // what the views in the table point to
      add(names.emplace_back(name + operands.suffix), advice,
          [&operands, mistake](const GemmInputs& inputs) {
            return mistaken(inputs, operands, mistake);
          });
    }
  }

  void add_alpha(std::string_view name, std::string_view advice, ChangeAlpha alpha) {
    add(name, advice, [alpha](const GemmInputs& inputs) { return other_alpha(inputs, alpha); });
  }

  std::vector<ReadingHypothesis> take() { return std::move(entries_); }

 private:
  std::vector<ReadingHypothesis> entries_;
};

void add_alpha_mistakes(Table& table) {
  table.add_alpha("alpha_ignored",
                  "The product lacks alpha: is the pointer passed, and read in its own type?",
                  [](const GemmInputs&) { return 1.0; });
  table.add_alpha("alpha_twice",
                  "alpha is applied twice: by the kernel and by its caller, or in two epilogues.",
                  [](const GemmInputs& in) {
                    return static_cast<double>(in.alpha) * static_cast<double>(in.alpha);
                  });
  table.add_alpha("alpha_inverted",
                  "1 / alpha is applied: a divisor was passed where a multiplier is wanted.",
                  [](const GemmInputs& in) { return 1.0 / static_cast<double>(in.alpha); });
  const std::string_view advice =
      "A tensor scale is inverted: ModelOpt and torchao store a multiplier, compressed-tensors a "
      "divisor.";
  table.add_alpha("tensor_scale_inverted_a", advice, [](const GemmInputs& in) {
    return static_cast<double>(in.alpha) * a_inverted(in);
  });
  table.add_alpha("tensor_scale_inverted_b", advice, [](const GemmInputs& in) {
    return static_cast<double>(in.alpha) * inverted(in.b.tensor_scale);
  });
  table.add_alpha("tensor_scale_inverted_ab", advice, [](const GemmInputs& in) {
    return static_cast<double>(in.alpha) * a_inverted(in) * inverted(in.b.tensor_scale);
  });
}

void add_scale_mistakes(Table& table) {
  const std::string_view layout =
      "Block scales are read in another layout than they lie in: convert them once, for this "
      "kernel.";
  const std::string_view twice =
      "Block scales went through the layout conversion twice: check who converts, loader or "
      "kernel.";
  for (const auto order : {ScaleOrder::row_major, ScaleOrder::tiled_128x4, ScaleOrder::tiled_8x4}) {
    table.add_for_operands("scales_read_as_" + std::string(name(order)), layout, read_as(order));
  }
  for (const auto order : {ScaleOrder::tiled_128x4, ScaleOrder::tiled_8x4}) {
    table.add_for_operands("scales_twice_" + std::string(name(order)), twice, tiled_twice(order));
    table.add_for_operands("scales_untiled_twice_" + std::string(name(order)), twice,
                           untiled_twice(order));
  }
  table.add("scales_exchanged",
            "A is scaled by B's block scales and B by A's: the two pointers are exchanged.",
            exchanged_scales);
  table.add_for_operands("scale_type_misread", "E4M3 scale bytes are read as E8M0, or the reverse.",
                         other_scale_type);
  table.add_for_operands(
      "block_size_misread",
      "A block of 16 is taken for 32, or the reverse: pass the format, do not infer it.",
      other_block_size);
  table.add_for_operands("scale_ignored", "Block scales are not applied.", ignored_scale);
}

std::vector<ReadingHypothesis> make_table() {
  Table table;
  // In both operands at once it changes nothing: the pairs meet as they did.
  const std::string_view swapped =
      "The two codes of a byte are exchanged: the low nibble is the even column.";
  table.add("swapped_nibbles_a", swapped, [](const GemmInputs& inputs) {
    return mistaken(inputs, {"", true, false}, swapped_nibbles);
  });
  table.add("swapped_nibbles_b", swapped, [](const GemmInputs& inputs) {
    return mistaken(inputs, {"", false, true}, swapped_nibbles);
  });
  add_scale_mistakes(table);
  add_alpha_mistakes(table);
  table.add_for_operands("sign_lost", "The sign bit of the codes is dropped.", lost_sign);
  table.add("sign_lost_output", "The output is the magnitude of the product.",
            [](const GemmInputs& inputs) {
              Reading reading = honest_reading(inputs);
              reading.absolute = true;
              return std::optional(reading);
            });
  table.add_alpha("sign_flipped", "The output has the other sign.",
                  [](const GemmInputs& inputs) { return -static_cast<double>(inputs.alpha); });
  table.add("b_transposed",
            "B is read as [k, n] where it is [n, k]: both operands are contiguous along k.",
            [](const GemmInputs& inputs) {
              return mistaken(inputs, {"", false, true}, transposed);
            });
  return table.take();
}

}  // namespace

const std::vector<ReadingHypothesis>& reading_hypotheses() {
  static const auto table = make_table();
  return table;
}

Reading honest_reading(const GemmInputs& inputs) {
  Reading reading;
  reading.a = honest(inputs.a);
  reading.b = [b = inputs.b](std::int64_t row, std::int64_t column) {
    return honest_value(b, row, column);
  };
  reading.alpha = static_cast<double>(inputs.alpha);
  return reading;
}

}  // namespace nibble
