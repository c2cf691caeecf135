/* SPDX-License-Identifier: MIT */
/* hipmm/cpp/object.hpp: functions and memory of the program under names, which a graph uses.
 *
 *     hipmm::failure_handler spill{"spill", [&](std::size_t bytes) { return cache.free_some(bytes); }};
 *     auto library = hipmm::library::from_string(
 *         R"({"stack": [{"type": "failure_callback", "callback": "spill"}, "pool", "device"]})");
 *
 * Each object is registered while it lives, and must outlive the stacks that use it: declare it before the library. A
 * later object of the same name replaces it for stacks that are built afterwards. Registration is possible before
 * initialisation. Any thread may call the functions, several at once. No exception leaves a function: the comments say
 * how hipmm handles it. */
#ifndef HIPMM_CPP_OBJECT_HPP
#define HIPMM_CPP_OBJECT_HPP

#include <hipmm/cpp/error.hpp>
#include <hipmm/cpp/stream.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

namespace hipmm
{

namespace detail
{

/* The state of a registered object, except functions of the program. */
struct no_state {
};

/* The state of the object that has each name of a kind. Registering locks it, so that it agrees with the C interface. */
template <typename Object> struct name_table {
  std::mutex lock;
  std::map<std::string, const void *> states;

  static name_table &shared()
  {
    static name_table &table = *new name_table; /* reachable for ever: static objects may be destroyed later */
    return table;
  }
};

/* A name that is registered while the object lives, or until another object takes it. The C functions get `State` as
 * their argument: it stays where it is when the object is moved. */
template <typename Object, status (*Register)(const char *, const Object *), typename State> class registration
{
public:
  registration(registration &&) noexcept = default;
  registration &operator=(registration &&other) noexcept
  {
    registration taken{std::move(other)};
    std::swap(name_, taken.name_);
    std::swap(state_, taken.state_);
    return *this;
  }

  [[nodiscard]] const std::string &name() const noexcept
  {
    return name_;
  }

protected:
  registration(std::string name, State state, Object object)
      : name_{std::move(name)}, state_{std::make_unique<State>(std::move(state))}
  {
    object.struct_size = sizeof object;
    if constexpr (!std::is_same_v<State, no_state>) object.arg = state_.get();
    const std::lock_guard<std::mutex> guard{names().lock};
    const void *&current = names().states[name_];
    check(Register(name_.c_str(), &object));
    current = state_.get();
  }
  ~registration()
  {
    if (!state_) return;
    const std::lock_guard<std::mutex> guard{names().lock};
    const auto found = names().states.find(name_);
    if (found == names().states.end() || found->second != state_.get()) return;
    static_cast<void>(Register(name_.c_str(), nullptr));
    names().states.erase(found);
  }

private:
  static name_table<Object> &names()
  {
    return name_table<Object>::shared();
  }

  std::string name_;
  std::unique_ptr<State> state_;
};

struct allocator_state {
  std::function<void *(std::size_t bytes, std::size_t alignment, stream_ref stream)> allocate;
  std::function<void(void *ptr, std::size_t bytes, std::size_t alignment, stream_ref stream)> deallocate;
};

using failure_state = std::function<bool(std::size_t bytes)>;
using event_state = std::function<void(const ::hipmm_event &event)>;

} // namespace detail

/* Functions that allocate, for the type `callback`: "allocator" names them. The alignment is a power of two, at least
 * 256. If memory is exhausted, `allocate` returns nullptr or throws std::bad_alloc. Another exception of hipmm gives
 * its status, and any other exception is HIPMM_E_PLUGIN. An exception of `deallocate` is ignored. Neither may allocate
 * from the resource that calls it. */
class allocator_functions
    : public detail::registration<::hipmm_allocator, ::hipmm_allocator_register, detail::allocator_state>
{
public:
  using allocate_function = decltype(detail::allocator_state::allocate);
  using deallocate_function = decltype(detail::allocator_state::deallocate);

  allocator_functions(std::string name, allocate_function allocate, deallocate_function deallocate)
      : registration{
            std::move(name), {std::move(allocate), std::move(deallocate)}, {0, call_allocate, call_deallocate, nullptr}}
  {
  }

private:
  static status call_allocate(void *arg, std::size_t bytes, std::size_t alignment, hipmm_stream_t stream,
                              void **ptr_out) noexcept
  {
    try {
      void *ptr = static_cast<detail::allocator_state *>(arg)->allocate(bytes, alignment, stream);
      if (!ptr) return HIPMM_E_OUT_OF_MEMORY;
      *ptr_out = ptr;
      return HIPMM_OK;
    } catch (const failure &reason) {
      return reason.code();
    } catch (const std::bad_alloc &) {
      return HIPMM_E_OUT_OF_MEMORY;
    } catch (...) {
      return HIPMM_E_PLUGIN;
    }
  }

  static void call_deallocate(void *arg, void *ptr, std::size_t bytes, std::size_t alignment,
                              hipmm_stream_t stream) noexcept
  {
    try {
      static_cast<detail::allocator_state *>(arg)->deallocate(ptr, bytes, alignment, stream);
    } catch (...) { /* a free cannot fail */
    }
  }
};

/* Called after an allocation of `bytes` found no memory, for the type `failure_callback`: "callback" names it. True:
 * try again. False, or an exception: the allocation fails. */
class failure_handler
    : public detail::registration<::hipmm_failure_handler, ::hipmm_failure_handler_register, detail::failure_state>
{
public:
  failure_handler(std::string name, std::function<bool(std::size_t bytes)> called)
      : registration{std::move(name), std::move(called), {0, call, nullptr}}
  {
  }

private:
  static int call(void *arg, std::size_t bytes) noexcept
  {
    try {
      return (*static_cast<detail::failure_state *>(arg))(bytes) ? 1 : 0;
    } catch (...) {
      return 0;
    }
  }
};

/* Called for events, for the type `hooks`: "hooks" names it; or for ranks, for the type `spilling`: "policy" names it.
 * `kinds`: bits 1 << HIPMM_EVENT_…; 0: all. The function must not call hipmm. Exceptions are ignored. */
class event_hooks : public detail::registration<::hipmm_hooks, ::hipmm_hooks_register, detail::event_state>
{
public:
  event_hooks(std::string name, std::function<void(const ::hipmm_event &event)> called, std::uint64_t kinds = 0)
      : registration{std::move(name), std::move(called), {0, kinds, call, nullptr}}
  {
  }

private:
  static void call(void *arg, const ::hipmm_event *event) noexcept
  {
    try {
      (*static_cast<detail::event_state *>(arg))(*event);
    } catch (...) { /* hipmm's call does not depend on it */
    }
  }
};

/* Device memory of the program, for the type `fixed_buffer`: "buffer" names it. */
class region : public detail::registration<::hipmm_region, ::hipmm_region_register, detail::no_state>
{
public:
  region(std::string name, void *ptr, std::size_t bytes) : registration{std::move(name), {}, {0, ptr, bytes}}
  {
  }
};

/* A driver's pool of the program, a hipMemPool_t or cudaMemPool_t, for the type `async_view`: "pool" names it. */
class mempool : public detail::registration<::hipmm_mempool, ::hipmm_mempool_register, detail::no_state>
{
public:
  mempool(std::string name, void *handle) : registration{std::move(name), {}, {0, handle}}
  {
  }
};

} // namespace hipmm

#endif
