// SPDX-License-Identifier: Apache-2.0
#include "backends/onednn_matmul.h"

#if __has_include(<oneapi/dnnl/dnnl.h>)

#include <fmt/format.h>
#include <oneapi/dnnl/dnnl.h>

#include "device/shared_library.h"

namespace nibble {
namespace {

// clang-format off
#define NIBBLE_ONEDNN_COMMON(X) \
  X(dnnl_version)               \
  X(dnnl_engine_create)         \
  X(dnnl_stream_create)         \
  X(dnnl_stream_wait)           \
  X(dnnl_stream_destroy)        \
  X(dnnl_memory_create)         \
  X(dnnl_memory_destroy)        \
  X(dnnl_primitive_create)      \
  X(dnnl_primitive_execute)     \
  X(dnnl_primitive_destroy)     \
  X(dnnl_primitive_desc_query)  \
  X(dnnl_primitive_desc_destroy)
#if DNNL_VERSION_MAJOR >= 3
#define NIBBLE_ONEDNN(X)                  \
  NIBBLE_ONEDNN_COMMON(X)                 \
  X(dnnl_memory_desc_create_with_strides) \
  X(dnnl_memory_desc_destroy)             \
  X(dnnl_matmul_primitive_desc_create)
#else
#define NIBBLE_ONEDNN(X)              \
  NIBBLE_ONEDNN_COMMON(X)             \
  X(dnnl_memory_desc_init_by_strides) \
  X(dnnl_matmul_desc_init)            \
  X(dnnl_primitive_desc_create)
#endif
// clang-format on

struct Onednn {
#define NIBBLE_MEMBER(function) decltype(&::function) function = nullptr;
  NIBBLE_ONEDNN(NIBBLE_MEMBER)
#undef NIBBLE_MEMBER
  int all_threads = 1;
  void (*set_num_threads)(int) =
      nullptr;  // OpenMP's, of the calling thread; none in a build with other threads
  dnnl_engine_t engine = nullptr;
  std::string version;
};

Status failed(const char* what, dnnl_status_t status) {
  return fail(status == dnnl_unimplemented ? ErrorKind::unsupported : ErrorKind::failed,
              fmt::format("oneDNN: {} gave status {}{}", what, static_cast<int>(status),
                          status == dnnl_unimplemented ? " (unimplemented)" : ""));
}

Result<Onednn> load_onednn() {
  const auto library = SharedLibrary::open({fmt::format("libdnnl.so.{}", DNNL_VERSION_MAJOR)},
                                           "apt-get install libdnnl-dev");
  if (!library) return tl::unexpected(library.error());
  Onednn api;
#define NIBBLE_LOAD(name)                                                 \
  api.name = reinterpret_cast<decltype(&::name)>(library->symbol(#name)); \
  if (!api.name) return fail(ErrorKind::not_found, library->path() + " has no symbol " #name);
  NIBBLE_ONEDNN(NIBBLE_LOAD)
#undef NIBBLE_LOAD
  // Found through oneDNN's own dependencies.
  api.set_num_threads = reinterpret_cast<void (*)(int)>(library->symbol("omp_set_num_threads"));
  if (auto* most = reinterpret_cast<int (*)()>(library->symbol("omp_get_max_threads")))
    api.all_threads = most();
  const dnnl_version_t* version = api.dnnl_version();
  api.version = fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
  if (const auto status = api.dnnl_engine_create(&api.engine, dnnl_cpu, 0);
      status != dnnl_success) {
    return tl::unexpected(failed("dnnl_engine_create", status).error());
  }
  return api;
}

// Loaded once and never closed: oneDNN's threads and its engine live as long as the process.
const Result<Onednn>& onednn() {
  static const auto loaded = load_onednn();
  return loaded;
}

// dnnl_memory_desc_t is a plain struct in version 2 and an owned handle in version 3.
class MemoryDescription {
 public:
  MemoryDescription() = default;
  MemoryDescription(const MemoryDescription&) = delete;
  MemoryDescription& operator=(const MemoryDescription&) = delete;
#if DNNL_VERSION_MAJOR >= 3
  ~MemoryDescription() {
    if (handle_) onednn()->dnnl_memory_desc_destroy(handle_);
  }
  dnnl_status_t describe(const dnnl_dims_t sizes, dnnl_data_type_t type,
                         const dnnl_dims_t strides) {
    return onednn()->dnnl_memory_desc_create_with_strides(&handle_, 2, sizes, type, strides);
  }
  const_dnnl_memory_desc_t get() const { return handle_; }
#else
  dnnl_status_t describe(const dnnl_dims_t sizes, dnnl_data_type_t type,
                         const dnnl_dims_t strides) {
    return onednn()->dnnl_memory_desc_init_by_strides(&handle_, 2, sizes, type, strides);
  }
  const dnnl_memory_desc_t* get() const { return &handle_; }
#endif

 private:
  dnnl_memory_desc_t handle_{};
};

// A dnnl_memory_t over memory of the caller.
class Memory {
 public:
  Memory(const MemoryDescription& description, const void* data) {
    // oneDNN takes sources as void* too; it does not write them.
    status_ = onednn()->dnnl_memory_create(&handle_, description.get(), onednn()->engine,
                                           const_cast<void*>(data));
  }
  ~Memory() {
    if (handle_) onednn()->dnnl_memory_destroy(handle_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  dnnl_memory_t get() const { return handle_; }
  dnnl_status_t status() const { return status_; }

 private:
  dnnl_memory_t handle_ = nullptr;
  dnnl_status_t status_ = dnnl_success;
};

class Matmul final : public OnednnMatmul {
 public:
  ~Matmul() override {
    if (primitive_) onednn()->dnnl_primitive_destroy(primitive_);
    if (description_) onednn()->dnnl_primitive_desc_destroy(description_);
    if (stream_) onednn()->dnnl_stream_destroy(stream_);
  }

  Status build(const GemmShape& shape, bool bf16) {
    // A primitive never uses more threads than there were when it was made.
    if (onednn()->set_num_threads) onednn()->set_num_threads(onednn()->all_threads);
    const auto type = bf16 ? dnnl_bf16 : dnnl_f32;
    const dnnl_dims_t a_sizes{shape.m, shape.k}, a_strides{shape.k, 1};
    const dnnl_dims_t b_sizes{shape.k, shape.n}, b_strides{1, shape.k};
    const dnnl_dims_t sum_sizes{shape.m, shape.n}, sum_strides{shape.n, 1};
    for (const auto status :
         {a_.describe(a_sizes, type, a_strides), b_.describe(b_sizes, type, b_strides),
          sums_.describe(sum_sizes, dnnl_f32, sum_strides)}) {
      if (status != dnnl_success) return failed("a memory description", status);
    }
    if (const auto status = create_description(); status != dnnl_success)
      return failed("the matmul description", status);
    if (const auto status = onednn()->dnnl_primitive_create(&primitive_, description_);
        status != dnnl_success) {
      return failed("dnnl_primitive_create", status);
    }
    const auto status =
        onednn()->dnnl_stream_create(&stream_, onednn()->engine, dnnl_stream_default_flags);
    return status == dnnl_success ? Status{} : failed("dnnl_stream_create", status);
  }

  std::string implementation() const override {
    const char* text = nullptr;
    const auto status =
        onednn()->dnnl_primitive_desc_query(description_, dnnl_query_impl_info_str, 0, &text);
    return status == dnnl_success && text ? text : "unnamed";
  }

  Status run(const void* a, const void* b, float* sums, int threads) const override {
    if (threads > 0 && onednn()->set_num_threads) onednn()->set_num_threads(threads);
    const Memory source(a_, a), weights(b_, b), destination(sums_, sums);
    for (const auto* memory : {&source, &weights, &destination}) {
      if (memory->status() != dnnl_success) return failed("dnnl_memory_create", memory->status());
    }
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, source.get()},
                                         {DNNL_ARG_WEIGHTS, weights.get()},
                                         {DNNL_ARG_DST, destination.get()}};
    auto status = onednn()->dnnl_primitive_execute(primitive_, stream_, 3, arguments);
    if (status == dnnl_success) status = onednn()->dnnl_stream_wait(stream_);
    return status == dnnl_success ? Status{} : failed("dnnl_primitive_execute", status);
  }

 private:
  dnnl_status_t create_description() {
#if DNNL_VERSION_MAJOR >= 3
    return onednn()->dnnl_matmul_primitive_desc_create(&description_, onednn()->engine, a_.get(),
                                                       b_.get(), nullptr, sums_.get(), nullptr);
#else
    dnnl_matmul_desc_t matmul;
    const auto status =
        onednn()->dnnl_matmul_desc_init(&matmul, a_.get(), b_.get(), nullptr, sums_.get());
    if (status != dnnl_success) return status;
    return onednn()->dnnl_primitive_desc_create(&description_, &matmul, nullptr, onednn()->engine,
                                                nullptr);
#endif
  }

  MemoryDescription a_, b_, sums_;
  dnnl_primitive_desc_t description_ = nullptr;
  dnnl_primitive_t primitive_ = nullptr;
  dnnl_stream_t stream_ = nullptr;
};

}  // namespace

Result<std::string> onednn_version() {
  if (!onednn()) return tl::unexpected(onednn().error());
  return onednn()->version;
}

Result<std::unique_ptr<OnednnMatmul>> OnednnMatmul::create(const GemmShape& shape, bool bf16) {
  if (!onednn()) return tl::unexpected(onednn().error());
  auto matmul = std::make_unique<Matmul>();
  if (auto ok = matmul->build(shape, bf16); !ok) return tl::unexpected(ok.error());
  return matmul;
}

}  // namespace nibble

#else

namespace nibble {
namespace {

tl::unexpected<Error> built_without() {
  return fail(
      ErrorKind::not_found,
      "this nibble was built without oneDNN's header: apt-get install libdnnl-dev and build again");
}

}  // namespace

Result<std::string> onednn_version() { return built_without(); }
Result<std::unique_ptr<OnednnMatmul>> OnednnMatmul::create(const GemmShape&, bool) {
  return built_without();
}

}  // namespace nibble

#endif
