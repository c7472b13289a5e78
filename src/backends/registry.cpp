// SPDX-License-Identifier: Apache-2.0
#include "backends/registry.h"

#include "backends/cpu.h"
#include "backends/fake.h"
#include "backends/ggml.h"
#include "backends/onednn.h"
#include "backends/openblas.h"

namespace nibble {

const std::vector<std::unique_ptr<Backend>>& backends() {
  static const auto all = [] {
    std::vector<std::unique_ptr<Backend>> list;
    list.push_back(make_cpu_backend());
    list.push_back(make_openblas_backend());
    list.push_back(make_onednn_backend());
    list.push_back(make_ggml_backend());
    return list;
  }();
  return all;
}

const Backend* find_backend(std::string_view name) {
  static const auto fakes = make_fake_backends();
  for (const auto* list : {&backends(), &fakes}) {
    for (const auto& backend : *list) {
      if (backend->name() == name) return backend.get();
    }
  }
  return nullptr;
}

}  // namespace nibble
