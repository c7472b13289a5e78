// SPDX-License-Identifier: Apache-2.0
#include "core/verdict.h"

namespace nibble {
namespace {

template <class... F>
struct Overload : F... {
  using F::operator()...;
};
template <class... F>
Overload(F...) -> Overload<F...>;

}  // namespace

std::string why(const Verdict& verdict) {
  return std::visit(Overload{[](const Correct&) { return std::string(); },
                             [](const Failed& failed) { return failed.error.message; },
                             [](const auto& other) { return other.why; }},
                    verdict);
}

}  // namespace nibble
