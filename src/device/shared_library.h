// SPDX-License-Identifier: Apache-2.0
// A shared library opened at run time.
#pragma once

#include <string>
#include <vector>

#include "core/error.h"

namespace nibble {

// Never closed: a library that has started threads or registered handlers cannot be unloaded
// safely.
class SharedLibrary {
 public:
  // The first of `names` that opens. The error lists every name tried with the loader's own words,
  // and ends with `how_to_get` ("apt-get install libopenblas0-pthread").
  static Result<SharedLibrary> open(const std::vector<std::string>& names,
                                    const std::string& how_to_get, bool global_symbols = false);

  // nullptr where the library has no such symbol.
  void* symbol(const char* symbol_name) const;

  template <class F>
  Result<F*> function(const char* symbol_name) const {
    if (void* address = symbol(symbol_name)) return reinterpret_cast<F*>(address);
    return fail(ErrorKind::not_found, path() + " has no symbol " + symbol_name);
  }

  const std::string& path() const { return path_; }  // the file that was mapped

 private:
  void* handle_ = nullptr;
  std::string path_;
};

}  // namespace nibble
