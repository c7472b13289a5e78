// SPDX-License-Identifier: Apache-2.0
// pads: bytes that belong to no element and no block are poisoned, one place and one value at a
// time. The result must not move by a bit.
#include <fmt/format.h>

#include <array>

#include "probe/experiment_run.h"

namespace nibble {
namespace {

constexpr std::int64_t kRowPadBytes = 16;
constexpr std::array<std::uint8_t, 3> kPadBytes{0x7E, 0x7F, 0xFF};  // after 0x00, the base

struct PadPlace {
  const char* name;
  std::uint8_t& (*byte)(Placement& placement);
};

constexpr std::array kPlaces{
    PadPlace{"A's scales", [](Placement& p) -> std::uint8_t& { return p.a.scale_pad; }},
    PadPlace{"B's scales", [](Placement& p) -> std::uint8_t& { return p.b.scale_pad; }},
    PadPlace{"the rows of A", [](Placement& p) -> std::uint8_t& { return p.a.row_pad; }},
    PadPlace{"the rows of B's codes", [](Placement& p) -> std::uint8_t& { return p.b.row_pad; }}};

bool has_scale_pads(const BlockTensor& tensor) {
  return tensor.layout.bytes() > tensor.layout.rows * tensor.layout.blocks;
}

bool has_place(const Operands& operands, std::size_t place) {
  const auto* a = std::get_if<BlockTensor>(&operands.a);
  switch (place) {
    case 0:
      return a != nullptr && has_scale_pads(*a);
    case 1:
      return has_scale_pads(operands.b);
    case 2:
      return !std::holds_alternative<Q8Tensor>(operands.a);  // its rows follow each other
    default:
      return true;
  }
}

Attempt<Output> product(Trial& trial, const Operands& operands, const Placement& placement) {
  auto gemm = prepare_gemm(trial, trial.the_case.problem, operands.b, placement);
  if (!gemm) return tl::unexpected(gemm.error());
  return launch(trial, *gemm, operands.a, &operands.alpha, placement);
}

}  // namespace

Finding try_pads(Trial& trial) {
  const auto operands = trial_operands(trial, trial.the_case.problem, trial.the_case.seed);
  if (!operands) return failed("", "operands", operands.error());
  Placement clean;
  clean.a.row_pad_bytes = clean.b.row_pad_bytes = kRowPadBytes;
  const auto base = product(trial, *operands, clean);
  if (!base) return with_prefix(base.error(), "pads of zero");
  if (auto wrong = judge_output(trial, "pads of zero", *operands, *base, noise_policy(trial)))
    return wrong;
  for (std::size_t place = 0; place < kPlaces.size(); ++place) {
    if (!has_place(*operands, place)) continue;
    for (const std::uint8_t byte : kPadBytes) {
      Placement poisoned = clean;
      kPlaces[place].byte(poisoned) = byte;
      const std::string what = fmt::format("pad bytes {:#04x} in {}", byte, kPlaces[place].name);
      const auto output = product(trial, *operands, poisoned);
      if (!output) return with_prefix(output.error(), what);
      if (const auto changed = difference(base->view(), output->view()); !changed.empty())
        return incorrect("", what + " " + changed);
    }
  }
  return std::nullopt;
}

}  // namespace nibble
