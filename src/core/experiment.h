// SPDX-License-Identifier: Apache-2.0
// What a case does with a backend: each experiment is sharp on one kind of fault (docs/probing.md).
#pragma once

#include <cstdint>

#include "core/enum_names.h"

namespace nibble {

enum class Experiment : std::uint8_t {
  integer,   // every partial sum an exact integer: bit equality
  random,    // normal data quantized by `rn`: bound, noise and gain
  wide,      // any codes, any valid scale bytes, any tensor scale: bound and gain
  locate,    // scales coded by row and block, one-hot blocks and rows: layout faults
  pads,      // pad bytes and row padding poisoned: the result must not change
  canary,    // poisoned outputs, guard zones, inputs compared afterwards
  contract,  // arguments left out that the contract calls optional
  repeat,    // the same case many times, with other cases between
  extremes,  // zero blocks, NaN scales, smallest and largest scales, M = 0, one block of K
  edges,     // sizes round the tile, K residues: right or refused, never a third thing
};

template <>
struct EnumNames<Experiment> {
  static constexpr std::array table{std::pair{Experiment::integer, std::string_view("integer")},
                                    std::pair{Experiment::random, std::string_view("random")},
                                    std::pair{Experiment::wide, std::string_view("wide")},
                                    std::pair{Experiment::locate, std::string_view("locate")},
                                    std::pair{Experiment::pads, std::string_view("pads")},
                                    std::pair{Experiment::canary, std::string_view("canary")},
                                    std::pair{Experiment::contract, std::string_view("contract")},
                                    std::pair{Experiment::repeat, std::string_view("repeat")},
                                    std::pair{Experiment::extremes, std::string_view("extremes")},
                                    std::pair{Experiment::edges, std::string_view("edges")}};
};

}  // namespace nibble
