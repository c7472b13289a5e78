// SPDX-License-Identifier: Apache-2.0
#include "device/libraries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "device/environment.h"
#include "device/find_ggml_library.h"
#include "device/shared_library.h"

namespace nibble {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(SharedLibrary, OpensTheFirstThatIsHere) {
  const auto library = SharedLibrary::open({"libnibble_none.so.9", "libm.so.6"}, "");
  ASSERT_TRUE(library) << library.error().message;
  EXPECT_TRUE(std::filesystem::is_regular_file(library->path())) << library->path();
  const auto cosine = library->function<double(double)>("cos");
  ASSERT_TRUE(cosine);
  EXPECT_EQ((*cosine)(0.0), 1.0);
}

TEST(SharedLibrary, AMissingSymbolIsNamed) {
  const auto library = SharedLibrary::open({"libm.so.6"}, "");
  ASSERT_TRUE(library);
  EXPECT_EQ(library->symbol("nibble_no_such_symbol"), nullptr);
  const auto missing = library->function<void()>("nibble_no_such_symbol");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::not_found);
  EXPECT_THAT(missing.error().message, EndsWith("has no symbol nibble_no_such_symbol"));
}

TEST(SharedLibrary, TheErrorHasEveryNameTheLoadersWordsAndTheWayOut) {
  const auto library =
      SharedLibrary::open({"libnibble_a.so", "libnibble_b.so"}, "apt-get install nibble-a");
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().kind, ErrorKind::not_found);
  EXPECT_THAT(library.error().message, HasSubstr("libnibble_a.so: cannot open shared object"));
  EXPECT_THAT(library.error().message, HasSubstr("libnibble_b.so: cannot open shared object"));
  EXPECT_THAT(library.error().message, EndsWith("apt-get install nibble-a"));
  EXPECT_FALSE(SharedLibrary::open({}, ""));
}

TEST(Versions, AsTheLibrariesWriteThem) {
  EXPECT_EQ(openblas_version("OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH Zen MAX_THREADS=64"),
            "0.3.21");
  EXPECT_EQ(openblas_version("OpenBLAS 0.3.21"), "0.3.21");
  EXPECT_EQ(openblas_version("odd"), "odd");
  EXPECT_EQ(packed_version(130100), "13.1.0");  // cublasLtGetVersion() of 13.1
  EXPECT_EQ(packed_version(91900), "9.19.0");   // cudnnGetVersion() of 9.19
  EXPECT_EQ(cuda_version(13020), "13.2");       // cuDriverGetVersion() of 13.2
}

TEST(Libraries, EachIsHereWithItsPathOrSaysHowToGetIt) {
  std::vector<std::string> names;
  for (const LibraryInfo& library : read_libraries()) {
    names.push_back(library.name);
    if (library.path)
      EXPECT_TRUE(std::filesystem::exists(*library.path)) << *library.path;
    else
      EXPECT_NE(library.note, "") << library.name;
    EXPECT_TRUE(library.path || !library.version) << library.name;
  }
  EXPECT_THAT(names, ElementsAre("openblas", "onednn", "ggml", "libcuda", "nvml", "cublaslt",
                                 "cudnn", "nvrtc"));
}

TEST(Environment, NoGpuHasAReason) {
  const Environment environment = read_environment();
  EXPECT_EQ(environment.gpus.empty(), !environment.no_gpu_reason.empty());
  EXPECT_EQ(environment.libraries.size(), read_libraries().size());
}

class FakeVirtualEnvironment : public testing::Test {
 protected:
  FakeVirtualEnvironment()
      : root_(testing::TempDir() + "nibble_venv_" + std::to_string(getpid())),
        package_(root_ / "lib/python3.11/site-packages/xllamacpp") {
    std::filesystem::create_directories(package_);
  }
  ~FakeVirtualEnvironment() override {
    unsetenv("NIBBLE_GGML_LIBRARY");
    std::filesystem::remove_all(root_);
  }

  void add(const std::filesystem::path& file, const char* text) { std::ofstream(file) << text; }

  std::filesystem::path root_, package_;
};

TEST_F(FakeVirtualEnvironment, FindsTheModuleAndNothingElse) {
  EXPECT_THAT(ggml_modules_in(root_), IsEmpty());
  add(package_ / "__init__.py", "");
  add(package_ / "xllamacpp.abi3.so", "");
  EXPECT_THAT(ggml_modules_in(root_), ElementsAre(package_ / "xllamacpp.abi3.so"));
  EXPECT_THAT(ggml_modules_in(root_ / "none"), IsEmpty());
}

TEST_F(FakeVirtualEnvironment, LooksForTheLibraryOfItsOwnPythonFirst) {
  const std::string module = (package_ / "xllamacpp.abi3.so").string();
  EXPECT_EQ(python_libraries_for(module).front(), "libpython3.11.so.1.0");
  add(root_ / "pyvenv.cfg", "home = /opt/python/bin\nversion = 3.11.2\n");
  EXPECT_EQ(python_libraries_for(module).at(0), "/opt/python/lib/libpython3.11.so.1.0");
  EXPECT_EQ(python_libraries_for(module).at(1), "libpython3.11.so.1.0");
  EXPECT_EQ(python_libraries_for("/opt/xllamacpp.abi3.so").front(), "libpython3.15.so.1.0");
}

TEST_F(FakeVirtualEnvironment, APlainLibraryOpensWithoutPython) {
  setenv("NIBBLE_GGML_LIBRARY", "libm.so.6", 1);
  EXPECT_TRUE(find_ggml_library());
}

TEST_F(FakeVirtualEnvironment, ANamedModuleIsTheOnlyOneTried) {
  const std::string module = (package_ / "xllamacpp.abi3.so").string();
  add(module, "not a library");
  setenv("NIBBLE_GGML_LIBRARY", module.c_str(), 1);
  const auto library = find_ggml_library();
  ASSERT_FALSE(library);
  EXPECT_THAT(library.error().message, HasSubstr(module));
  EXPECT_THAT(library.error().message, Not(HasSubstr(".venv/")));
}

}  // namespace
}  // namespace nibble
