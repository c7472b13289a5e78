// SPDX-License-Identifier: Apache-2.0
// Lays operands out in guarded memory, launches, and says what memory tells afterwards: stray
// writes, changed inputs, unwritten elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "probe/guarded_buffer.h"
#include "probe/make_operands.h"

namespace nibble {

// How one operand lies in memory. Pads mean nothing, whatever they hold.
struct OperandPlacement {
  std::uint8_t scale_pad = 0;      // in bytes of the scale buffer that belong to no row and block
  std::int64_t row_pad_bytes = 0;  // behind each row of codes or elements
  std::uint8_t row_pad = 0;
};

struct Placement {
  OperandPlacement a, b;
  std::int64_t out_pad_bytes = 0;   // behind each row of the output
  std::uint64_t guard_pattern = 1;  // what lies outside every buffer
  bool misaligned = false;          // every buffer off its boundary by one element
};

// An operand in guarded memory, and what its bytes were.
class PlacedOperand {
 public:
  static Result<PlacedOperand> place(MemoryKind memory, const ActivationTensor& tensor,
                                     const OperandPlacement& placement,
                                     const GuardOptions& options);

  const ActivationView& view() const { return view_; }

  // Empty where nothing changed in it or round it; else "the scales of A were changed at byte 3".
  std::string damage(const std::string& operand) const;
  // What a freed buffer may come to hold.
  void scribble();

 private:
  struct Part {
    std::string what;  // "codes", "scales", "elements"
    GuardedBuffer buffer;
    std::vector<std::byte> original;
  };
  Result<std::span<const std::byte>> add_part(MemoryKind memory, std::string what,
                                              std::span<const std::byte> bytes,
                                              GuardOptions options);
  std::vector<Part> parts_;
  ActivationView view_;
};

// What the output held before the launch: two NaN patterns, so that an element which holds the
// pattern of its own launch twice was never written.
std::uint32_t poison_bits(OutType type, int pattern);

struct Output {
  GuardedBuffer buffer;
  OutType type = OutType::bf16;
  std::int64_t rows = 0, columns = 0, row_stride_bytes = 0;
  std::uint32_t poison = 0;

  OutputView view() const { return {type, rows, columns, row_stride_bytes, buffer.bytes()}; }
  // Empty, or what was written round it or between its rows.
  std::string damage() const;
  bool untouched() const;  // every element still holds the poison
};

// Poisoned.
Result<Output> make_output(MemoryKind memory, const GemmProblem& problem,
                           const Placement& placement, int pattern);

// "output: bits at row 3 column 5 differ, 0x1 and 0x2, as do 11 others"; empty where all agree.
std::string difference(const OutputView& first, const OutputView& second);

// The elements that hold the poison in both: "column 255 of every row", "row 3", "12 elements, the
// first at row 0 column 7"; empty for none.
std::string unwritten(const Output& first, const Output& second);

}  // namespace nibble
