// SPDX-License-Identifier: Apache-2.0
#include "device/find_ggml_library.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <system_error>

namespace nibble {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHowToGet =
    "ggml comes with the PyPI package xllamacpp: pip install xllamacpp into a .venv beside nibble, "
    "or set NIBBLE_GGML_LIBRARY to its extension module";
constexpr int kFoldersUpward = 5;  // build/release/nibble lies two below the .venv

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    entries.push_back(it->path());
  std::sort(entries.begin(), entries.end());
  return entries;
}

std::string environment_value(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr ? value : "";
}

// "python3.11" in the path of a module, with the folder that holds lib/python3.11.
struct Interpreter {
  std::string version;  // "3.11"; empty where the path names none
  fs::path root;
};

Interpreter interpreter_of(const fs::path& module_path) {
  for (fs::path folder = module_path.parent_path(); folder.has_relative_path();
       folder = folder.parent_path()) {
    const std::string name = folder.filename().string();
    if (name.rfind("python3.", 0) == 0) return {name.substr(6), folder.parent_path().parent_path()};
  }
  return {};
}

// The folder of the interpreter that made the environment: "home = /usr/bin" in pyvenv.cfg.
fs::path home_of(const fs::path& virtual_environment) {
  std::ifstream file(virtual_environment / "pyvenv.cfg");
  for (std::string line; std::getline(file, line);) {
    const std::size_t value = line.find_first_not_of(" \t", line.find('=') + 1);
    if (line.rfind("home", 0) == 0 && line.find('=') != std::string::npos &&
        value != std::string::npos)
      return line.substr(value);
  }
  return {};
}

std::vector<std::string> module_candidates() {
  std::vector<std::string> modules;
  const auto add = [&modules](const fs::path& environment) {
    for (std::string& module : ggml_modules_in(environment)) modules.push_back(std::move(module));
  };
  if (const std::string active = environment_value("VIRTUAL_ENV"); !active.empty()) add(active);
  std::error_code error;
  fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (int i = 0; i < kFoldersUpward && !error && folder.has_relative_path(); ++i) {
    add(folder / ".venv");
    folder = folder.parent_path();
  }
  return modules;
}

Result<SharedLibrary> open_module(const std::string& module) {
  auto alone = SharedLibrary::open({module}, "");
  if (alone) return alone;  // a plain libggml, or the interpreter's symbols are here already
  const auto python =
      SharedLibrary::open(python_libraries_for(module),
                          "the module needs libpython: apt-get install libpython3-dev", true);
  if (python) return SharedLibrary::open({module}, kHowToGet);
  return fail(ErrorKind::not_found, alone.error().message + "; " + python.error().message);
}

}  // namespace

std::vector<std::string> ggml_modules_in(const fs::path& virtual_environment) {
  std::vector<std::string> modules;
  for (const fs::path& python : entries_of(virtual_environment / "lib")) {
    if (python.filename().string().rfind("python3.", 0) != 0) continue;
    for (const fs::path& file : entries_of(python / "site-packages" / "xllamacpp"))
      if (file.extension() == ".so") modules.push_back(file.string());
  }
  return modules;
}

std::vector<std::string> python_libraries_for(const std::string& module_path) {
  std::vector<std::string> names;
  const Interpreter interpreter = interpreter_of(module_path);
  if (!interpreter.version.empty()) {
    const std::string file = "libpython" + interpreter.version + ".so.1.0";
    if (const fs::path home = home_of(interpreter.root); !home.empty())
      names.push_back((home.parent_path() / "lib" / file).string());
    names.push_back(file);
  }
  for (int minor = 15; minor >= 10; --minor) {
    const std::string file = "libpython3." + std::to_string(minor) + ".so.1.0";
    if (std::find(names.begin(), names.end(), file) == names.end()) names.push_back(file);
  }
  return names;
}

Result<SharedLibrary> find_ggml_library() {
  if (const std::string named = environment_value("NIBBLE_GGML_LIBRARY"); !named.empty())
    return open_module(named);
  std::string tried;
  for (const std::string& module : module_candidates()) {
    auto library = open_module(module);
    if (library) return library;
    tried += library.error().message + "; ";
  }
  if (!tried.empty()) return fail(ErrorKind::not_found, tried.substr(0, tried.size() - 2));
  return fail(ErrorKind::not_found, std::string("no xllamacpp here; ") + kHowToGet);
}

}  // namespace nibble
