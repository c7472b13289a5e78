// SPDX-License-Identifier: Apache-2.0
#include "backends/openblas.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "backends/arguments.h"
#include "backends/dequantized_operands.h"
#include "device/shared_library.h"

namespace nibble {
namespace {

// From the CBLAS interface standard; OpenBLAS's 32-bit integer build.
enum CblasOrder { kRowMajor = 101 };
enum CblasTranspose { kNoTranspose = 111, kTranspose = 112 };
using Sgemm = void(CblasOrder, CblasTranspose, CblasTranspose, int, int, int, float, const float*,
                   int, const float*, int, float, float*, int);

struct OpenBlas {
  Sgemm* sgemm = nullptr;
  void (*set_num_threads)(int) = nullptr;
  int (*get_num_threads)() = nullptr;
  std::string version;
};

Result<OpenBlas> load_openblas() {
  auto library = SharedLibrary::open({"libopenblas.so.0", "libopenblas.so"},
                                     "apt-get install libopenblas0-pthread");
  if (!library) return tl::unexpected(library.error());
  OpenBlas blas;
  const auto sgemm = library->function<Sgemm>("cblas_sgemm");
  if (!sgemm) return tl::unexpected(sgemm.error());
  blas.sgemm = *sgemm;
  const auto set_threads = library->function<void(int)>("openblas_set_num_threads");
  const auto get_threads = library->function<int()>("openblas_get_num_threads");
  const auto config = library->function<char*()>("openblas_get_config");
  if (!set_threads || !get_threads || !config) {
    return fail(ErrorKind::not_found,
                library->path() + " is no OpenBLAS: openblas_get_config and its like are missing");
  }
  blas.set_num_threads = *set_threads;
  blas.get_num_threads = *get_threads;
  // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY Cooperlake MAX_THREADS=128": the second
  // word.
  const std::string words = (*config)();
  const auto start = words.find(' ') + 1;
  blas.version = words.substr(start, words.find(' ', start) - start);
  return blas;
}

const Result<OpenBlas>& openblas() {
  static const auto loaded = load_openblas();
  return loaded;
}

class PreparedOpenBlas final : public PreparedGemm {
 public:
  PreparedOpenBlas(const OpenBlas& blas, GemmProblem problem)
      : blas_(blas), problem_(std::move(problem)), all_threads_(blas.get_num_threads()) {}

  std::string kernel_name() const override { return "dequantize f32, cblas_sgemm"; }

  std::int64_t workspace_bytes() const override {
    const auto& [m, n, k] = problem_.shape;
    return WorkspaceCutter::bytes<float>(m * k) + WorkspaceCutter::bytes<float>(m * n);
  }

  Status prepack(const BlockTensorView& b) override {
    if (auto ok = check_weights(problem_, b); !ok) return ok;
    weights_.resize(static_cast<std::size_t>(b.rows * b.columns));
    dequantize_f32(b, weights_);
    return {};
  }

  Status launch(const GemmArguments& arguments) const override {
    if (auto ok = check_arguments(problem_, arguments, workspace_bytes()); !ok) return ok;
    const auto& [m, n, k] = problem_.shape;
    if (m == 0 || n == 0) return {};
    if (weights_.size() != static_cast<std::size_t>(n * k)) {
      return fail(ErrorKind::invalid_argument, "launch before prepack");
    }
    WorkspaceCutter workspace(arguments.workspace);
    const auto a = workspace.cut<float>(m * k);
    const auto sums = workspace.cut<float>(m * n);
    dequantize_f32(arguments.a, a);
    blas_.set_num_threads(arguments.threads > 0 ? arguments.threads : all_threads_);
    const auto rows = static_cast<int>(m), columns = static_cast<int>(n),
               depth = static_cast<int>(k);
    blas_.sgemm(kRowMajor, kNoTranspose, kTranspose, rows, columns, depth, 1.0f, a.data(), depth,
                weights_.data(), depth, 0.0f, sums.data(), columns);
    store_scaled(sums, problem_.shape, arguments);
    return {};
  }

 private:
  const OpenBlas& blas_;
  GemmProblem problem_;
  int all_threads_;
  std::vector<float> weights_;
};

class OpenBlasBackend final : public Backend {
 public:
  std::string_view name() const override { return "openblas"; }
  std::string_view summary() const override {
    return "OpenBLAS sgemm on operands dequantized to f32";
  }

  Result<std::string> version() const override {
    if (!openblas()) return tl::unexpected(openblas().error());
    return openblas()->version;
  }

  Contract contract() const override {
    Contract contract;
    contract.alpha_optional = true;
    contract.activations = {Activation::nvfp4, Activation::mxfp4, Activation::bf16,
                            Activation::f16};
    contract.formats = {Format::nvfp4, Format::mxfp4};
    contract.outs = {OutType::bf16, OutType::f16, OutType::f32};
    contract.a_scales =
        contract.b_scales = {ScaleOrder::row_major, ScaleOrder::tiled_128x4, ScaleOrder::tiled_8x4};
    contract.note = "operands dequantized to f32 first";
    return contract;
  }

  Support supports(const GemmProblem& problem, const CpuInfo&) const override {
    const auto& [m, n, k] = problem.shape;
    if (std::max({m, n, k}) > std::numeric_limits<int>::max()) {
      return Unsupported{fmt::format("m={} n={} k={}: cblas_sgemm counts in 32 bits", m, n, k)};
    }
    return check_contract(contract(), problem);
  }

  Result<std::unique_ptr<PreparedGemm>> prepare(const GemmProblem& problem) const override {
    if (!openblas()) return tl::unexpected(openblas().error());
    return std::make_unique<PreparedOpenBlas>(*openblas(), problem);
  }
};

}  // namespace

std::unique_ptr<Backend> make_openblas_backend() { return std::make_unique<OpenBlasBackend>(); }

}  // namespace nibble
