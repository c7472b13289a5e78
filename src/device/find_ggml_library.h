// SPDX-License-Identifier: Apache-2.0
// Where llama.cpp's ggml is: the extension module of the PyPI package xllamacpp exports its C API.
// The backend and `nibble doctor` both ask here.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "device/shared_library.h"

namespace nibble {

// Opens the first that works of: $NIBBLE_GGML_LIBRARY (alone, where it is set), the package in
// $VIRTUAL_ENV, the package in a .venv beside the executable or in a folder above it. Where the
// module does not open by itself, libpython is opened before it, with its symbols global: the
// module refers to them, though no interpreter is started.
Result<SharedLibrary> find_ggml_library();

// The modules of xllamacpp under one virtual environment, sorted; empty where there is none.
std::vector<std::string> ggml_modules_in(const std::filesystem::path& virtual_environment);

// The names under which the libpython of a module is looked for, the likeliest first: that of the
// "python3.N" in its path, beside the interpreter that `pyvenv.cfg` names, then any of 3.10 to 3.15
// (the module keeps to the stable ABI).
std::vector<std::string> python_libraries_for(const std::string& module_path);

}  // namespace nibble
