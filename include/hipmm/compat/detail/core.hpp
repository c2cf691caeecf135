/* SPDX-License-Identifier: MIT */
/* hipmm/compat/detail/core.hpp: what the classes of rmm/ share: initialisation, RMM's exceptions for hipmm's failures,
 * allocation from resources, and resources over objects of the program. */
#ifndef HIPMM_COMPAT_DETAIL_CORE_HPP
#define HIPMM_COMPAT_DETAIL_CORE_HPP

#include <hipmm/buffer.h>
#include <hipmm/compat/detail/runtime.hpp>
#include <hipmm/cpp/graph.hpp>
#include <hipmm/cpp/library.hpp>
#include <hipmm/cpp/resource.hpp>
#include <rmm/cuda_stream_view.hpp>
#include <rmm/detail/error.hpp>

#include <atomic>
#include <cstddef>
#include <exception>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace hipmm::compat
{

/* ---- Failures ---- */

/* The exception that an object of the program threw in the calling thread's last allocation. hipmm's C functions have only
 * a status between it and the caller. */
HIPMM_COMPAT_ONE inline std::exception_ptr &pending_exception() noexcept
{
  static thread_local std::exception_ptr pending;
  return pending;
}

/* Throws the program's own exception, or RMM's exception for a status that is not HIPMM_OK. */
[[noreturn]] inline void throw_failure(status code, bool is_exception_passed = true)
{
  const std::exception_ptr thrown = std::exchange(pending_exception(), nullptr);
  if (thrown && is_exception_passed) std::rethrow_exception(thrown);
  const failure &&reason = error{code};
  if (code == HIPMM_E_OUT_OF_MEMORY || code == HIPMM_E_LIMIT) throw rmm::out_of_memory{reason.message()};
  if (code == HIPMM_E_HIP || code == HIPMM_E_NO_DEVICE) throw rmm::cuda_error{reason.message()};
  throw rmm::logic_error{reason.message()};
}

inline void check(status code)
{
  if (code != HIPMM_OK) throw_failure(code);
}

/* ---- The library and the current device ---- */

inline void need_library()
{
  check(open_library());
}

inline int current_device()
{
  need_library();
  int device = 0;
  check(::hipmm_device_current(&device));
  return device;
}

/* ---- Resources ---- */

/* What stands behind an object of RMM's. */
struct backing {
  hipmm::resource resource;
  bool is_exception_passed; /* an exception of the program below reaches the caller, as no pool takes it for its own */
};

inline void *allocate(const backing &from, std::size_t bytes, rmm::cuda_stream_view stream,
                      std::size_t alignment = default_alignment)
{
  void *ptr = nullptr;
  pending_exception() = nullptr;
  const ::hipmm_stream_t on = to_hipmm(stream.value());
  const status code = alignment <= default_alignment
                          ? ::hipmm_allocate(from.resource.get(), bytes, on, &ptr)
                          : ::hipmm_allocate_aligned(from.resource.get(), bytes, alignment, on, &ptr);
  const bool is_too_aligned = code == HIPMM_E_ARGUMENT && alignment > default_alignment;
  if ((code == HIPMM_E_HIP || is_too_aligned) && !pending_exception()) throw rmm::bad_alloc{error{code}.what()};
  if (code != HIPMM_OK) throw_failure(code, from.is_exception_passed);
  return ptr;
}

/* A block that cannot be freed while its stream is being captured becomes a buffer's, whose end waits for the end of the
 * capture. */
inline void deallocate(const backing &from, void *ptr, std::size_t bytes, rmm::cuda_stream_view stream,
                       std::size_t alignment = default_alignment) noexcept
{
  ::hipmm_buffer *left = nullptr;
  const status freed = alignment <= default_alignment
                           ? ::hipmm_deallocate(from.resource.get(), ptr, bytes, to_hipmm(stream.value()))
                           : from.resource.try_deallocate(ptr, bytes, to_hipmm(stream.value()), alignment);
  if (freed != HIPMM_E_STATE) return;
  ::hipmm_memory memory{sizeof(::hipmm_memory), ptr, bytes, bytes, from.resource.get(), to_hipmm(stream.value())};
  ::hipmm_resource_retain(memory.resource);
  if (::hipmm_buffer_adopt(&memory, &left) == HIPMM_OK)
    static_cast<void>(::hipmm_buffer_destroy(left));
  else
    ::hipmm_resource_release(memory.resource);
}

/* An object that an option of the resource names. */
using named_object = ::hipmm_object;

/* Creates a resource of a type on a device. */
inline hipmm::resource make_resource(int device, const char *type, const graph::options &options = {},
                                     const hipmm::resource &upstream = {},
                                     const named_object &object = {nullptr, nullptr}, bool is_exception_passed = true)
{
  const std::string json = option_value::object(options);
  ::hipmm_resource *const below = upstream.get();
  ::hipmm_recipe recipe{};
  recipe.struct_size = sizeof recipe;
  recipe.type = type;
  recipe.options = json.c_str();
  recipe.upstreams = &below;
  recipe.n_upstreams = below ? 1 : 0;
  recipe.objects = &object;
  recipe.n_objects = object.option ? 1 : 0;
  ::hipmm_resource *created = nullptr;
  need_library();
  pending_exception() = nullptr;
  const status code = ::hipmm_resource_create_from(device, &recipe, &created);
  if (code != HIPMM_OK) throw_failure(code, is_exception_passed);
  return hipmm::resource::adopt(created);
}

/* Creates one from its options as JSON, with resources that they name. */
inline backing make_named(int device, const char *type, const std::string &options, const backing &upstream,
                          const std::vector<::hipmm_resource *> &named)
{
  ::hipmm_resource *const below = upstream.resource.get(), *created = nullptr;
  ::hipmm_recipe recipe{};
  recipe.struct_size = sizeof recipe;
  recipe.type = type;
  recipe.options = options.c_str();
  recipe.upstreams = &below;
  recipe.n_upstreams = 1;
  recipe.named_resources = named.data();
  recipe.n_named_resources = named.size();
  need_library();
  check(::hipmm_resource_create_from(device, &recipe, &created));
  return {hipmm::resource::adopt(created), upstream.is_exception_passed};
}

inline mempool_handle pool_handle_of(const hipmm::resource &from) noexcept
{
  void *handle = nullptr;
  const status code = ::hipmm_resource_pool_handle(from.get(), &handle);
  return code == HIPMM_OK ? static_cast<mempool_handle>(handle) : nullptr;
}

/* Creates one with a state of the C++ object, which lives as long as the resource. */
template <typename State, typename Describe>
hipmm::resource make_resource_with(int device, const char *type, const hipmm::resource &upstream, const char *option,
                                   std::unique_ptr<State> state, Describe describe)
{
  const auto described = describe(state.get());
  hipmm::resource created = make_resource(device, type, {}, upstream, {option, &described});
  check(::hipmm_resource_set_user_data(created.get(), state.get(),
                                       [](void *data) { delete static_cast<State *>(data); }));
  static_cast<void>(state.release());
  return created;
}

/* ---- Resources over objects of the program ---- */

/* The object that a `callback` resource allocates from; nullptr once that object is destroyed. */
template <typename Target> struct callback_state {
  std::atomic<Target *> target;

  static status allocate(void *arg, std::size_t bytes, std::size_t alignment, ::hipmm_stream_t stream,
                         void **ptr_out) noexcept
  {
    Target *target = static_cast<callback_state *>(arg)->target.load();
    if (!target) return HIPMM_E_STATE;
    if (alignment > default_alignment) return HIPMM_E_NOT_SUPPORTED;
    try {
      *ptr_out = target->allocate_async(bytes, rmm::cuda_stream_view{from_hipmm(stream)});
      return *ptr_out ? HIPMM_OK : HIPMM_E_OUT_OF_MEMORY;
    } catch (...) {
      pending_exception() = std::current_exception();
      return HIPMM_E_OUT_OF_MEMORY;
    }
  }

  static void deallocate(void *arg, void *ptr, std::size_t bytes, std::size_t, ::hipmm_stream_t stream) noexcept
  {
    Target *target = static_cast<callback_state *>(arg)->target.load();
    if (!target) return;
    try {
      target->deallocate_async(ptr, bytes, rmm::cuda_stream_view{from_hipmm(stream)});
    } catch (...) { /* a free of hipmm cannot fail */
    }
  }
};

template <typename Target> hipmm::resource make_callback(int device, callback_state<Target> *&state_out, Target *target)
{
  using state = callback_state<Target>;
  auto owned = std::make_unique<state>();
  owned->target = target;
  state_out = owned.get();
  return make_resource_with(device, "callback", {}, "allocator", std::move(owned), [](state *arg) {
    return ::hipmm_allocator{sizeof(::hipmm_allocator), state::allocate, state::deallocate, arg};
  });
}

/* The `callback` resources over an object, one for each device. A copy or a moved object has none yet. */
template <typename Target> class callback_table
{
public:
  callback_table() noexcept = default;
  callback_table(const callback_table &) noexcept
  {
  }
  callback_table &operator=(const callback_table &) noexcept
  {
    return *this;
  }

  /* What still refers to a resource gets no more memory from it. */
  ~callback_table()
  {
    for (const row &each : rows_) each.state->target = nullptr;
  }

  hipmm::resource on(int device, Target *target)
  {
    const std::lock_guard<std::mutex> guard{lock_};
    for (const row &each : rows_)
      if (each.device == device) return each.resource;
    callback_state<Target> *state = nullptr;
    hipmm::resource made = make_callback(device, state, target);
    rows_.push_back({device, made, state});
    return made;
  }

private:
  struct row {
    int device;
    hipmm::resource resource;
    callback_state<Target> *state;
  };
  std::mutex lock_;
  std::vector<row> rows_;
};

/* ---- Sources without a state, of which all objects share one resource for each device ---- */

enum class shared_source { device, managed, pinned, system };

/* With `is_initial`, the current resource of hipmm's table, if that is more than plain device memory. */
HIPMM_COMPAT_ONE inline hipmm::resource shared_resource(shared_source type, int device, bool is_initial = false)
{
  struct table {
    std::mutex lock;
    std::vector<hipmm::resource> sources[4], initial;
  };
  static table &shared = *new table; /* reachable for ever: see need_library() */
  const auto index = static_cast<std::size_t>(device);
  static const char *const names[] = {"device", "managed", "pinned", "system"};
  need_library();

  const std::lock_guard<std::mutex> guard{shared.lock};
  auto &sources = shared.sources[static_cast<std::size_t>(type)];
  if (sources.size() <= index) sources.resize(index + 1);
  if (is_initial) {
    if (shared.initial.size() <= index) shared.initial.resize(index + 1);
    hipmm::resource &initial = shared.initial[index];
    if (initial) return initial;
    ::hipmm_resource *current = nullptr;
    check(::hipmm_resource_get_for_device(device, &current));
    initial = hipmm::resource::adopt(current);
    if (initial.type() != "device") return initial;
    if (!sources[index]) sources[index] = initial;
    return initial = sources[index];
  }
  hipmm::resource &source = sources[index];
  if (!source) source = make_resource(device, names[static_cast<std::size_t>(type)]);
  return source;
}

/* Frees memory that one of these resources has allocated: usually that of the current device, but the runtime frees memory
 * of every device. */
inline void shared_deallocate(shared_source type, void *ptr, std::size_t bytes, rmm::cuda_stream_view stream,
                              bool is_initial = false)
{
  const int current = current_device();
  status freed = shared_resource(type, current, is_initial).try_deallocate(ptr, bytes, to_hipmm(stream.value()));
  int count = 0;
  if (freed != HIPMM_E_POINTER || ::hipmm_device_count(&count) != HIPMM_OK) return;
  for (int device = 0; device < count && freed == HIPMM_E_POINTER; device++)
    if (device != current) freed = shared_resource(type, device, is_initial).try_deallocate(ptr, bytes);
}

} // namespace hipmm::compat

#endif
