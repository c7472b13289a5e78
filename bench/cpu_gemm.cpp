// SPDX-License-Identifier: Apache-2.0
// Time of the CPU GEMM beside its peers and the floor. M=1 rotates over weights of more than four
// times the last-level cache; its floor is reading the same packed bytes with the same threads.
// M=512 stands against OpenBLAS and oneDNN on dequantized operands. Each result is compared with
// the exact product before it is timed; peers take turns, a round a repetition. A record:
//   VIRTUAL_ENV=.venv build/release/bench_cpu_gemm --benchmark_out=FILE.json
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backends/registry.h"
#include "cpu/gemm_kernel.h"
#include "cpu/packed_weights.h"
#include "cpu/worker_pool.h"
#include "device/environment.h"
#include "device/find_ggml_library.h"
#include "record_context.h"
#include "reference/comparison.h"
#include "reference/quantize.h"

namespace nibble {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::int64_t kN = 6144, kK = 6144;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

[[noreturn]] void stop(const std::string& why) {
  std::fprintf(stderr, "bench_cpu_gemm: %s\n", why.c_str());
  std::exit(1);
}

std::vector<float> normal_data(std::int64_t elements, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> data(static_cast<std::size_t>(elements));
  for (float& x : data) x = normal(random);
  return data;
}

BlockTensor block_tensor(Format format, std::int64_t rows, std::int64_t columns, unsigned seed) {
  const auto data = normal_data(rows * columns, seed);
  auto made = format == Format::nvfp4 ? quantize_nvfp4(data, rows, columns, Nvfp4Rule::rn)
                                      : quantize_mxfp4(data, rows, columns, Mxfp4Rule::floor);
  if (!made) stop(made.error().message);
  return std::move(made->tensor);
}

// A of any kind that a backend here takes.
struct Activations {
  BlockTensor blocks;
  std::vector<std::byte> bytes;
  ActivationView view;

  Activations(Activation kind, std::int64_t m, std::int64_t k) {
    if (is_block_format(kind)) {
      blocks = block_tensor(kind == Activation::nvfp4 ? Format::nvfp4 : Format::mxfp4, m, k, 3);
      view = blocks.view();
      return;
    }
    const auto data = normal_data(m * k, 3);
    if (kind == Activation::q8_0) {
      bytes.resize(static_cast<std::size_t>(m * k / 32 * 34));
      for (std::size_t i = 0; i < data.size(); ++i) {
        std::byte* block = &bytes[i / 32 * 34];
        const std::uint16_t scale = f16_encode(1.0f / 32);
        std::memcpy(block, &scale, 2);
        const float code = std::clamp(std::round(data[i] * 32), -127.0f, 127.0f);
        block[2 + i % 32] = static_cast<std::byte>(static_cast<std::int8_t>(code));
      }
      view = Q8TensorView{m, k, bytes};
      return;
    }
    bytes.resize(data.size() * 2);
    for (std::size_t i = 0; i < data.size(); ++i) {
      const auto bits = kind == Activation::bf16 ? bf16_encode(data[i]) : f16_encode(data[i]);
      std::memcpy(&bytes[2 * i], &bits, 2);
    }
    view = DenseTensorView{kind == Activation::bf16 ? DenseType::bf16 : DenseType::f16, m, k, 2 * k,
                           bytes};
  }
};

// One backend on one problem, with several copies of the weights that it takes in turn.
class Contender {
 public:
  Contender(const Backend& backend, const GemmProblem& problem, const BlockTensor& b, int copies,
            int threads)
      : name_(backend.name()),
        problem_(problem),
        a_(problem.a, problem.shape.m, problem.shape.k),
        threads_(threads) {
    for (int copy = 0; copy < copies; ++copy) {
      auto prepared = backend.prepare(problem);
      if (!prepared) stop(prepared.error().message);
      const auto start = Clock::now();
      if (auto ok = (*prepared)->prepack(b.view()); !ok) stop(ok.error().message);
      prepack_s_ = seconds_since(start);
      prepared_.push_back(std::move(*prepared));
    }
    output_.resize(static_cast<std::size_t>(problem.shape.m * row_bytes()));
    workspace_.resize(static_cast<std::size_t>(prepared_.front()->workspace_bytes()));
    for (int copy = 0; copy < copies; ++copy) {
      std::fill(output_.begin(), output_.end(), std::byte{0xFF});
      launch();
      if (copy == 0 || copy + 1 == copies) check_rows(b);
    }
  }

  void launch() {
    const auto& prepared = prepared_[next_++ % prepared_.size()];
    const GemmArguments arguments{a_.view, nullptr,    problem_.out, row_bytes(),
                                  output_, workspace_, threads_};
    if (auto ok = prepared->launch(arguments); !ok) stop(ok.error().message);
  }
  const std::string& name() const { return name_; }
  std::string kernel() const { return prepared_.front()->kernel_name(); }
  double prepack_s() const { return prepack_s_; }

 private:
  std::int64_t row_bytes() const { return problem_.shape.n * out_bytes(problem_.out); }

  // Every row where the exact product is quick (NVFP4 x NVFP4), else the first and the last eight.
  void check_rows(const BlockTensor& b) const {
    const GemmInputs inputs{a_.view, b.view(), 1.0f};
    const std::int64_t m = problem_.shape.m;
    const bool all = m <= 16 || (problem_.a == Activation::nvfp4 && problem_.b == Format::nvfp4);
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
    for (std::int64_t row = 0; row < m; row += 256) {
      if (all) ranges.emplace_back(row, std::min<std::int64_t>(256, m - row));
    }
    if (!all) ranges = {{0, 8}, {m - 8, 8}};
    Comparison comparison({.judge_noise = true});
    for (const auto& [row, rows] : ranges) {
      const auto panel = exact_product(inputs, problem_.out, row, rows);
      if (!panel) stop(panel.error().message);
      comparison.add(*panel, {problem_.out, m, problem_.shape.n, row_bytes(), output_});
    }
    const auto accuracy = comparison.finish();
    if (!accuracy.why_wrong.empty()) stop(name_ + " is wrong: " + accuracy.why_wrong);
  }

  std::string name_;
  GemmProblem problem_;
  Activations a_;
  int threads_;
  std::vector<std::unique_ptr<PreparedGemm>> prepared_;
  std::vector<std::byte> output_, workspace_;
  std::size_t next_ = 0;
  double prepack_s_ = 0;
};

// Reads as many bytes as packed weights have, in pieces of the size that the GEMM takes.
class Reader {
 public:
  Reader(std::int64_t bytes, int copies, int threads) : threads_(threads) {
    for (int copy = 0; copy < copies; ++copy) {
      copies_.emplace_back(bytes);
      if (copies_.back().size() != bytes) stop("no memory for the bytes to read");
      std::memset(copies_.back().data(), copy + 1, static_cast<std::size_t>(bytes));
    }
  }

  void read() {
    const auto& bytes = copies_[next_++ % copies_.size()];
    constexpr std::int64_t kPiece = 144 << 10;
    const std::int64_t pieces = divide_up(bytes.size(), kPiece);
    WorkerPool::shared().run(threads_, pieces, [&](std::int64_t piece) {
      const std::int64_t size = std::min(kPiece, bytes.size() - piece * kPiece);
      read_words(reinterpret_cast<const std::uint64_t*>(bytes.data() + piece * kPiece), size / 8);
    });
  }

 private:
  // Prefetches as the kernels do: without it a core reads more slowly, and the floor would be too
  // easy.
  __attribute__((noinline)) static void read_words(const std::uint64_t* from, std::int64_t words) {
    std::uint64_t any[8] = {};
    for (std::int64_t i = 0; i + 8 <= words; i += 8) {
      __builtin_prefetch(from + i + 256);
      for (int lane = 0; lane < 8; ++lane) any[lane] |= from[i + lane];
    }
    benchmark::DoNotOptimize(any);
  }

  std::vector<AlignedBytes> copies_;
  int threads_;
  std::size_t next_ = 0;
};

struct Entry {
  std::string name;
  std::function<void()> run;
  std::vector<double> seconds;

  double median() const {
    auto sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

// Each entry once a round, in turns: what disturbs the machine disturbs all.
void time_in_turns(benchmark::State& state, std::vector<Entry>& entries) {
  for (auto& entry : entries) entry.run();
  for (auto _ : state) {
    for (auto& entry : entries) {
      const auto start = Clock::now();
      entry.run();
      entry.seconds.push_back(seconds_since(start));
    }
    state.SetIterationTime(entries.front().seconds.back());
  }
}

// libbenchmark exports the internals of its std::regex, which xllamacpp's module, built by another
// compiler, would take for its own and crash: so it is opened here first, bound to itself. False
// where it is not in $NIBBLE_GGML_LIBRARY, $VIRTUAL_ENV or ./.venv.
bool open_ggml_apart() {
  std::vector<std::string> modules;
  if (const char* named = std::getenv("NIBBLE_GGML_LIBRARY")) {
    modules.push_back(named);
  } else {
    const char* environment = std::getenv("VIRTUAL_ENV");
    modules = ggml_modules_in(environment ? environment : ".venv");
  }
  for (const auto& module : modules) {
    for (const auto& python : python_libraries_for(module)) {
      if (dlopen(python.c_str(), RTLD_LAZY | RTLD_GLOBAL) != nullptr) break;
    }
    if (dlopen(module.c_str(), RTLD_LAZY | RTLD_DEEPBIND) != nullptr) return true;
  }
  return false;
}

// An absent library is said on stderr and left out.
std::unique_ptr<Contender> contender(std::string_view name, GemmProblem problem,
                                     const BlockTensor& b, int copies, int threads) {
  const Backend* backend = find_backend(name);
  if (backend == nullptr) return nullptr;
  static const bool ggml_is_open = open_ggml_apart();
  if (name == "ggml" && !ggml_is_open) {
    std::fprintf(stderr, "bench_cpu_gemm: ggml is left out: no xllamacpp in $VIRTUAL_ENV\n");
    return nullptr;
  }
  if (const auto version = backend->version(); !version) {
    std::fprintf(stderr, "bench_cpu_gemm: %s is left out: %s\n", std::string(name).c_str(),
                 version.error().message.c_str());
    return nullptr;
  }
  if (name == "ggml") problem.a = Activation::q8_0;
  return std::make_unique<Contender>(*backend, problem, b, copies, threads);
}

std::int64_t last_level_cache_bytes() {
  static const std::int64_t bytes =
      std::max<std::int64_t>(read_cpu().last_level_cache_bytes, 1 << 20);
  return bytes;
}

const BlockTensor& weights(Format format) {
  static std::map<Format, BlockTensor> made;
  if (!made.count(format)) made[format] = block_tensor(format, kN, kK, 5);
  return made[format];
}

std::int64_t packed_bytes(Format format) { return kN * kK / 2 + kN * kK / block_size(format); }

void report(benchmark::State& state, const std::vector<Entry>& entries, const Contender& own,
            const GemmShape& shape) {
  const double own_s = entries.front().median();
  for (const auto& entry : entries) {
    state.counters[entry.name + "_median_us"] = entry.median() * 1e6;
    if (&entry == &entries.front()) continue;
    // Above 1: `cpu` takes longer.
    state.counters["cpu_over_" + entry.name] = own_s / entry.median();
  }
  const auto multiply_adds = static_cast<double>(shape.m * shape.n * shape.k);
  state.counters["cpu_multiply_adds_per_s"] = multiply_adds / own_s;
  state.counters["cpu_prepack_us"] = own.prepack_s() * 1e6;
  state.SetLabel(own.kernel());
}

// M = 1: cpu, the floor, and ggml on the same bytes.
void one_row(benchmark::State& state, Activation a, Format format, int threads) {
  const GemmProblem problem{{1, kN, kK}, a, format, OutType::bf16};
  const int copies = static_cast<int>(4 * last_level_cache_bytes() / packed_bytes(format)) + 1;
  const auto& b = weights(format);
  const auto own = contender("cpu", problem, b, copies, threads);
  const auto ggml = contender("ggml", problem, b, copies, threads);
  Reader reader(packed_bytes(format), copies, threads);
  std::vector<Entry> entries{{"cpu", [&] { own->launch(); }, {}},
                             {"read", [&] { reader.read(); }, {}}};
  if (ggml) entries.push_back({"ggml", [&] { ggml->launch(); }, {}});
  time_in_turns(state, entries);
  report(state, entries, *own, problem.shape);
  state.counters["weight_copies"] = copies;
  state.counters["read_bytes_per_s"] =
      static_cast<double>(packed_bytes(format)) / entries[1].median();
}

void many_rows(benchmark::State& state, std::int64_t m, Activation a, Format format, int threads) {
  const GemmProblem problem{{m, kN, kK}, a, format, OutType::bf16};
  const auto& b = weights(format);
  std::vector<std::unique_ptr<Contender>> contenders;
  for (const auto* backend_name : {"cpu", "openblas", "onednn"}) {
    auto made = contender(backend_name, problem, b, 1, threads);
    if (made) contenders.push_back(std::move(made));
  }
  std::vector<Entry> entries;
  for (const auto& each : contenders) {
    entries.push_back({each->name(), [&each] { each->launch(); }, {}});
  }
  time_in_turns(state, entries);
  report(state, entries, *contenders.front(), problem.shape);
}

void register_benchmarks() {
  std::vector<int> thread_counts{1};
  if (usable_threads() > 1) thread_counts.push_back(usable_threads());
  constexpr std::pair<Activation, Format> kKinds[] = {{Activation::nvfp4, Format::nvfp4},
                                                      {Activation::mxfp4, Format::mxfp4},
                                                      {Activation::bf16, Format::nvfp4},
                                                      {Activation::f16, Format::nvfp4},
                                                      {Activation::bf16, Format::mxfp4}};
  for (const std::int64_t m : {1, 512}) {
    for (const auto& [a, format] : kKinds) {
      for (const int threads : thread_counts) {
        const std::string title = "m" + std::to_string(m) + "/" + std::string(name(a)) + "_x_" +
                                  std::string(name(format)) + "/threads" + std::to_string(threads);
        const auto body = [=, kind = a, of = format](benchmark::State& state) {
          m == 1 ? one_row(state, kind, of, threads) : many_rows(state, m, kind, of, threads);
        };
        benchmark::RegisterBenchmark(title.c_str(), body)
            ->UseManualTime()
            ->Iterations(m == 1 ? 31 : 5)
            ->Unit(benchmark::kMicrosecond);
      }
    }
  }
}

}  // namespace
}  // namespace nibble

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  nibble::add_record_context();
  benchmark::AddCustomContext("dispatch_target", nibble::gemm_kernels().target);
  benchmark::AddCustomContext("last_level_cache_bytes",
                              std::to_string(nibble::last_level_cache_bytes()));
  benchmark::AddCustomContext("usable_threads", std::to_string(nibble::usable_threads()));
  benchmark::AddCustomContext("problem", "N=K=6144, bf16 output");
  nibble::register_benchmarks();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
