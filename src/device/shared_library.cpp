// SPDX-License-Identifier: Apache-2.0
#include "device/shared_library.h"

#include <dlfcn.h>
#include <link.h>

#include <filesystem>
#include <system_error>

namespace nibble {
namespace {

std::string mapped_file(void* handle, const std::string& fallback) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr || map->l_name == nullptr ||
      *map->l_name == '\0')
    return fallback;
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(map->l_name, error);
  return error ? std::string(map->l_name) : real.string();
}

// The loader's words start with the name that was asked for; where they do not, we add it.
std::string loader_words(const std::string& name) {
  const char* words = dlerror();
  std::string text = words != nullptr ? words : "cannot be opened";
  if (text.rfind(name, 0) != 0) text = name + ": " + text;
  return text;
}

}  // namespace

Result<SharedLibrary> SharedLibrary::open(const std::vector<std::string>& names,
                                          const std::string& how_to_get, bool global_symbols) {
  std::string tried;
  for (const std::string& name : names) {
    dlerror();
    // Lazy: a library may refer to symbols that only some of its functions need.
    void* handle = dlopen(name.c_str(), RTLD_LAZY | (global_symbols ? RTLD_GLOBAL : RTLD_LOCAL));
    if (handle != nullptr) {
      SharedLibrary library;
      library.handle_ = handle;
      library.path_ = mapped_file(handle, name);
      return library;
    }
    if (!tried.empty()) tried += "; ";
    tried += loader_words(name);
  }
  if (tried.empty()) tried = "no library was named";
  return fail(ErrorKind::not_found, how_to_get.empty() ? tried : tried + "; " + how_to_get);
}

void* SharedLibrary::symbol(const char* symbol_name) const {
  return handle_ != nullptr ? dlsym(handle_, symbol_name) : nullptr;
}

}  // namespace nibble
