// SPDX-License-Identifier: Apache-2.0
// A slow honest backend, and one mistake at a time that it can be told to make.
#pragma once

#include <memory>
#include <string_view>

#include "backends/backend.h"

namespace nibble {

enum class Mistake {
  none,
  reads_pads,              // a pad byte of B's scales that is NaN becomes an output of NaN
  reads_row_pads,          // the byte behind a row of A's codes is added to the first output
  misses_last_column,      // never written
  writes_past_output,      // one byte
  writes_before_output,    // one byte
  writes_between_rows,     // one byte behind the first row
  writes_past_workspace,   // one byte
  changes_a,               // one byte of A
  changes_b,               // one byte of B, in prepack
  changes_memory_round_b,  // one byte in front of B's codes, in prepack
  needs_alpha,             // wrong when alpha is left out, though its contract calls that legal
  ignores_alpha,
  alpha_as_bf16,         // reads two bytes of alpha
  depends_on_last_call,  // adds the first output of the previous call
  wrong_third_time,
  keeps_stale_workspace,  // trusts what the workspace held
  reads_b_after_prepack,
  drops_k_tail,  // what is behind a multiple of 128
  drops_last_block,
  reads_other_layout,    // row_major scales of B as tiled_128x4 and the reverse
  swaps_rows_of_scales,  // rows 2 i and 2 i + 1 of A's scales
  accumulates_in_f16,
  drops_one_product,
  rounds_nan_scale_away,  // a NaN block scale counts as zero
  flushes_small_scales,   // E4M3 below 2^-6 and E8M0 below 2^-100 count as zero
  ignores_output_size,    // takes an output that is too short
  ignores_out_type,
  ignores_shape_of_a,
  ignores_kind_of_a,  // takes f32
  accepts_any_b,      // prepack looks at nothing
  writes_before_refusing,
  refuses_silently,  // an error without a message
  wrong_on_odd_k,    // where k is an odd number of blocks
  wrong_at_m_65,     // in rows from 64 on
  fails_at_m_0,
  accepts_broken_k,
  fails_in_prepare,
  throws,
};

// `name` is how cases ask for it.
std::unique_ptr<Backend> make_faulty_backend(Mistake mistake, std::string_view name = "faulty");

}  // namespace nibble
