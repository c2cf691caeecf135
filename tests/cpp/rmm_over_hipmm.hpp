/* SPDX-License-Identifier: MIT */
/* rmm_over_hipmm.hpp: RMM's classes of resources as resources of hipmm, for RMM's own tests (rmm_own_tests.sh). The script
 * puts this header in the place of RMM's headers of these classes, so all of RMM, and its tests, allocate from hipmm.
 *
 * Sources follow the current device, as RMM's do. A sub-allocator stands over any resource of RMM, by the type `callback`,
 * and lives as long as a copy of it. cuda_memory_resource is the resource in force, which HIPMM_CONFIG names; without it, the
 * type `device`. */
#ifndef HIPMM_TESTS_CPP_RMM_OVER_HIPMM_HPP
#define HIPMM_TESTS_CPP_RMM_OVER_HIPMM_HPP

#include <hipmm/hipmm.hpp>
#include <hipmm/rmm.hpp>

#include <rmm/aligned.hpp>
#include <rmm/cuda_device.hpp>
#include <rmm/detail/aligned.hpp>
#include <rmm/detail/error.hpp>
#include <rmm/detail/runtime_capabilities.hpp>
#include <rmm/error.hpp>
#include <rmm/mr/detail/arena.hpp> // as RMM's header has it, for the tests of its parts
#include <rmm/resource_ref.hpp>

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace over_hipmm
{

using upstream_resource = cuda::mr::any_resource<cuda::mr::device_accessible>;

/* RMM's table of devices holds resources until the process ends: hipmm is not finalized. */
inline void initialise()
{
  static const auto *const library = new hipmm::library{hipmm::library::if_needed()};
  static_cast<void>(library);
}

/* Runs a function, whose errors become RMM's. */
template <typename Function> auto as_rmm(Function &&function)
{
  try {
    initialise();
    return function();
  } catch (const hipmm::failure &reason) {
    hipmm::detail::throw_as_rmm(reason.code());
  }
}

/* The one resource of a type on the current device; of the type `device`, the one in force. */
inline hipmm::rmm_resource resource_of(const std::string &type)
{
  return as_rmm([&] {
    static auto &made = *new std::map<std::pair<std::string, int>, hipmm::rmm_resource>;
    static std::mutex lock;
    const int device = hipmm::current_device();
    const std::lock_guard<std::mutex> guard{lock};
    auto found = made.find({type, device});
    if (found == made.end()) {
      const hipmm::resource from =
          type == "device" ? hipmm::current_resource(device) : hipmm::make_resource(device, type);
      found = made.emplace(std::pair{type, device}, hipmm::rmm_resource{from}).first;
    }
    return found->second;
  });
}

template <typename Kind> class source
{
public:
  void *allocate(cuda::stream_ref stream, std::size_t bytes, std::size_t alignment = hipmm::default_alignment)
  {
    return resource_of(Kind::type).allocate(stream, bytes, alignment);
  }
  void deallocate(cuda::stream_ref stream, void *ptr, std::size_t bytes,
                  std::size_t alignment = hipmm::default_alignment) noexcept
  {
    resource_of(Kind::type).deallocate(stream, ptr, bytes, alignment);
  }
  void *allocate_sync(std::size_t bytes, std::size_t alignment = hipmm::default_alignment)
  {
    return resource_of(Kind::type).allocate_sync(bytes, alignment);
  }
  void deallocate_sync(void *ptr, std::size_t bytes, std::size_t alignment = hipmm::default_alignment) noexcept
  {
    resource_of(Kind::type).deallocate_sync(ptr, bytes, alignment);
  }
  friend bool operator==(const source &, const source &) noexcept
  {
    return true;
  }
  friend bool operator!=(const source &, const source &) noexcept
  {
    return false;
  }
  friend constexpr void get_property(const source &, cuda::mr::device_accessible) noexcept
  {
  }

  /* The properties of memory of this kind that RMM's class has beside. */
  template <typename Property, typename K = Kind, std::enable_if_t<K::is_host_accessible, int> = 0,
            std::enable_if_t<std::is_same_v<Property, cuda::mr::host_accessible>, int> = 0>
  friend constexpr void get_property(const source &, Property) noexcept
  {
  }
};

struct device {
  static constexpr const char *type = "device";
  static constexpr bool is_host_accessible = false;
};
struct managed {
  static constexpr const char *type = "managed";
  static constexpr bool is_host_accessible = true;
};
struct pinned {
  static constexpr const char *type = "pinned";
  static constexpr bool is_host_accessible = true;
};
struct system {
  static constexpr const char *type = "system";
  static constexpr bool is_host_accessible = true;
};
struct async_managed {
  static constexpr const char *type = "async_managed";
  static constexpr bool is_host_accessible = true;
};

/* A resource of its own, of a type with options. Copies are the same resource. */
class stack
{
public:
  void *allocate(cuda::stream_ref stream, std::size_t bytes, std::size_t alignment = hipmm::default_alignment)
  {
    return state_->top.allocate(stream, bytes, alignment);
  }
  void deallocate(cuda::stream_ref stream, void *ptr, std::size_t bytes,
                  std::size_t alignment = hipmm::default_alignment) noexcept
  {
    state_->top.deallocate(stream, ptr, bytes, alignment);
  }
  void *allocate_sync(std::size_t bytes, std::size_t alignment = hipmm::default_alignment)
  {
    return state_->top.allocate_sync(bytes, alignment);
  }
  void deallocate_sync(void *ptr, std::size_t bytes, std::size_t alignment = hipmm::default_alignment) noexcept
  {
    state_->top.deallocate_sync(ptr, bytes, alignment);
  }
  friend bool operator==(const stack &one, const stack &other) noexcept
  {
    return one.state_ == other.state_;
  }
  friend bool operator!=(const stack &one, const stack &other) noexcept
  {
    return !(one == other);
  }
  friend constexpr void get_property(const stack &, cuda::mr::device_accessible) noexcept
  {
  }

protected:
  /* `kept`: what the resource uses, and must not outlive. */
  stack(const std::string &type, const hipmm::graph::options &options, const std::vector<hipmm::resource> &below = {},
        std::shared_ptr<void> kept = nullptr)
      : state_{as_rmm([&] {
          const std::string json = hipmm::option_value::object(options);
          return std::make_shared<state>(state{
              std::move(kept), hipmm::rmm_resource{hipmm::make_resource(hipmm::current_device(), type, json, below)}});
        })}
  {
  }

  [[nodiscard]] const hipmm::resource &top() const noexcept
  {
    return state_->top.get_resource();
  }

private:
  struct state {
    std::shared_ptr<void> kept; /* destroyed last */
    hipmm::rmm_resource top;
  };

  std::shared_ptr<state> state_;
};

/* A resource of RMM for a resource of the type `callback`. */
struct callback {
  explicit callback(upstream_resource from)
      : upstream{std::move(from)}, functions{hipmm::functions_of(unused_name(), upstream)}
  {
  }
  [[nodiscard]] hipmm::resource make() const
  {
    initialise();
    return hipmm::make_resource(hipmm::current_device(), "callback", R"({"allocator": ")" + functions.name() + R"("})");
  }
  static std::string unused_name()
  {
    static std::atomic<int> count{0};
    return "upstream" + std::to_string(count++);
  }

  upstream_resource upstream;
  hipmm::allocator_functions functions;
};

/* A stack of a resource over one of RMM's. */
class sub_allocator : public stack
{
public:
  [[nodiscard]] rmm::device_async_resource_ref get_upstream_resource() const noexcept
  {
    return rmm::device_async_resource_ref{below_->upstream};
  }

protected:
  sub_allocator(const std::string &type, const hipmm::graph::options &options, upstream_resource upstream)
      : sub_allocator{type, options, std::make_shared<callback>(std::move(upstream))}
  {
  }

private:
  sub_allocator(const std::string &type, const hipmm::graph::options &options, std::shared_ptr<callback> below)
      : stack{type, options, {below->make()}, below}, below_{std::move(below)}
  {
  }

  std::shared_ptr<callback> below_;
};

/* "maximum_size" only if there is a maximum. */
inline hipmm::graph::options sizes(const char *initial, std::size_t bytes, std::optional<std::size_t> maximum)
{
  hipmm::graph::options options{{initial, bytes}};
  if (maximum) options.emplace_back("maximum_size", *maximum);
  return options;
}

} // namespace over_hipmm

namespace rmm::mr
{

namespace detail
{
/* As a test asks before it uses system memory. */
inline bool is_system_memory_supported(cuda_device_id device)
{
  int is_supported = 0;
  return cudaDeviceGetAttribute(&is_supported, cudaDevAttrPageableMemoryAccess, device.value()) == cudaSuccess &&
         is_supported == 1;
}
} // namespace detail

using cuda_memory_resource = over_hipmm::source<over_hipmm::device>;
using cuda_async_managed_memory_resource = over_hipmm::source<over_hipmm::async_managed>;
using managed_memory_resource = over_hipmm::source<over_hipmm::managed>;
using pinned_host_memory_resource = over_hipmm::source<over_hipmm::pinned>;

/* RMM's constructor refuses a device that cannot use the system's memory; hipmm's stack does when it is built. */
class system_memory_resource : public over_hipmm::source<over_hipmm::system>
{
public:
  system_memory_resource()
  {
    if (!detail::is_system_memory_supported(rmm::get_current_cuda_device()))
      throw rmm::logic_error("the device cannot use the system's memory");
  }
};

/* Each has a pool of the driver's of its own. */
class cuda_async_memory_resource : public over_hipmm::stack
{
public:
  enum class allocation_handle_type : std::int32_t { none = 0, posix_file_descriptor = 1, win32 = 2, fabric = 8 };

  cuda_async_memory_resource(std::optional<std::size_t> initial_size = {}, std::optional<std::size_t> threshold = {},
                             std::optional<allocation_handle_type> handle_type = {})
      : stack{"async", options_of(initial_size, threshold, handle_type)}
  {
  }
  [[nodiscard]] cudaMemPool_t pool_handle() const
  {
    void *handle = nullptr;
    hipmm::check(hipmm_resource_pool_handle(top().get(), &handle));
    return static_cast<cudaMemPool_t>(handle);
  }

private:
  /* The type knows no handles but those of POSIX. */
  static hipmm::graph::options options_of(std::optional<std::size_t> initial_size, std::optional<std::size_t> threshold,
                                          std::optional<allocation_handle_type> handle_type)
  {
    hipmm::graph::options options;
    if (initial_size) options.emplace_back("initial_pool_size", *initial_size);
    if (threshold) options.emplace_back("release_threshold", *threshold);
    if (handle_type == allocation_handle_type::posix_file_descriptor) options.emplace_back("handle_type", "posix_fd");
    if (handle_type == allocation_handle_type::fabric) throw rmm::logic_error{"no handles of this type"};
    return options;
  }
};

class pool_memory_resource : public over_hipmm::sub_allocator
{
public:
  explicit pool_memory_resource(over_hipmm::upstream_resource upstream, std::size_t initial_size,
                                std::optional<std::size_t> maximum_size = std::nullopt)
      : sub_allocator{"pool", over_hipmm::sizes("initial_size", initial_size, maximum_size), std::move(upstream)}
  {
  }
  [[nodiscard]] std::size_t pool_size() const
  {
    return static_cast<std::size_t>(top().query("reserved_bytes"));
  }
};

class arena_memory_resource : public over_hipmm::sub_allocator
{
public:
  explicit arena_memory_resource(over_hipmm::upstream_resource upstream,
                                 std::optional<std::size_t> arena_size = std::nullopt, bool is_dumped = false)
      : sub_allocator{"arena", options_of(arena_size, is_dumped), std::move(upstream)}
  {
  }

private:
  /* RMM's arena does not grow beyond its size. */
  static hipmm::graph::options options_of(std::optional<std::size_t> arena_size, bool is_dumped)
  {
    auto options = over_hipmm::sizes("arena_size", arena_size.value_or(0), arena_size);
    options.emplace_back("dump_log_on_failure", is_dumped);
    options.emplace_back("dump_log_file", "rmm_arena_memory_dump.log");
    return options;
  }
};

class fixed_size_memory_resource : public over_hipmm::sub_allocator
{
public:
  static constexpr std::size_t default_block_size = 1U << 20U;
  static constexpr std::size_t default_blocks_to_preallocate = 128;

  explicit fixed_size_memory_resource(over_hipmm::upstream_resource upstream,
                                      std::size_t block_size = default_block_size,
                                      std::size_t blocks_to_preallocate = default_blocks_to_preallocate)
      : sub_allocator{"fixed_size",
                      {{"block_size", block_size}, {"blocks_to_preallocate", blocks_to_preallocate}},
                      std::move(upstream)},
        block_size_{block_size}
  {
  }
  [[nodiscard]] std::size_t get_block_size() const noexcept
  {
    return block_size_;
  }

private:
  std::size_t block_size_;
};

class binning_memory_resource : public over_hipmm::sub_allocator
{
public:
  binning_memory_resource(over_hipmm::upstream_resource upstream, std::int8_t min_size_exponent,
                          std::int8_t max_size_exponent)
      : sub_allocator{"binning",
                      {{"min_size_exponent", min_size_exponent}, {"max_size_exponent", max_size_exponent}},
                      std::move(upstream)}
  {
  }
};

} // namespace rmm::mr

#endif
