/* SPDX-License-Identifier: MIT */
/* rmm.cpp: RMM's sub-allocators as a type of hipmm, so that `hipmm replay` and `hipmm bench` measure them by the same harness
 * as hipmm's own: {"stack": [{"type": "rmm", "kind": "pool"}, "device"]}. RMM allocates from the resource below, so hipmm
 * counts exactly what it holds. Not installed; allocators.sh builds it.
 *
 * The caller has the device current, as RMM asks of a program: `replay` and `bench` have. */
#include "library_type.hpp"

#include <rmm/error.hpp>
#include <rmm/logger.hpp>
#include <rmm/mr/arena_memory_resource.hpp>
#include <rmm/mr/binning_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>

#include <cuda/memory_resource>
#include <cuda/stream_ref>

#include <new>
#include <optional>

namespace
{

enum kind : std::uint32_t { POOL, ARENA, BINNING };

struct options {
  std::uint64_t initial_size, maximum_size;
  std::uint32_t kind;
};

/* ---- The resource below, for RMM ---- */

thread_local hipmm_status last_failure; /* of the resource below, during a call of RMM in this thread */

class upstream
{
public:
  explicit upstream(hipmm_resource *resource) : resource_{resource}
  {
  }
  void *allocate(cuda::stream_ref stream, std::size_t bytes, std::size_t alignment = HIPMM_ALIGNMENT)
  {
    void *ptr = nullptr;
    const hipmm_status status = hipmm_upstream_allocate(resource_, bytes, wide(alignment), stream.get(), &ptr);
    if (status == HIPMM_OK) return ptr;
    last_failure = status;
    throw rmm::out_of_memory{"the resource below has no memory"};
  }
  void deallocate(cuda::stream_ref stream, void *ptr, std::size_t bytes,
                  std::size_t alignment = HIPMM_ALIGNMENT) noexcept
  {
    static_cast<void>(hipmm_upstream_deallocate(resource_, ptr, bytes, wide(alignment), stream.get()));
  }
  void *allocate_sync(std::size_t bytes, std::size_t alignment = HIPMM_ALIGNMENT)
  {
    return allocate(cuda::stream_ref{cudaStream_t{}}, bytes, alignment);
  }
  void deallocate_sync(void *ptr, std::size_t bytes, std::size_t alignment = HIPMM_ALIGNMENT) noexcept
  {
    deallocate(cuda::stream_ref{cudaStream_t{}}, ptr, bytes, alignment);
  }
  friend bool operator==(const upstream &one, const upstream &other) noexcept
  {
    return one.resource_ == other.resource_;
  }
  friend bool operator!=(const upstream &one, const upstream &other) noexcept
  {
    return !(one == other);
  }
  friend constexpr void get_property(const upstream &, cuda::mr::device_accessible) noexcept
  {
  }

private:
  static std::size_t wide(std::size_t alignment)
  {
    return alignment < HIPMM_ALIGNMENT ? HIPMM_ALIGNMENT : alignment;
  }
  hipmm_resource *resource_;
};

/* ---- RMM's resource ---- */

using any_resource = cuda::mr::any_resource<cuda::mr::device_accessible>;

std::optional<std::size_t> whole(std::uint64_t bytes)
{
  if (bytes == HIPMM_UNLIMITED) return std::nullopt;
  return bytes / HIPMM_ALIGNMENT * HIPMM_ALIGNMENT; /* RMM takes no other size */
}

any_resource make(const options &wanted, hipmm_resource *below)
{
  rmm::default_logger().set_level(rapids_logger::level_enum::off); /* a failure is for the caller to tell */
  last_failure = HIPMM_OK;
  if (wanted.kind == ARENA) return rmm::mr::arena_memory_resource{upstream{below}, whole(wanted.maximum_size)};
  rmm::mr::pool_memory_resource pool{upstream{below}, *whole(wanted.initial_size), whole(wanted.maximum_size)};
  if (wanted.kind == POOL) return pool;
  return rmm::mr::binning_memory_resource{pool, 18, 22}; /* bins of 256 KiB to 4 MiB, as in RMM's README */
}

/* At its end it frees all that it holds to the resource below, also under live blocks. */
class rmm_resource
{
public:
  rmm_resource(const hipmm_services *, const options &wanted, hipmm_resource *below) : resource_{make(wanted, below)}
  {
  }
  block allocate(std::size_t bytes, hipmm_stream_t stream)
  {
    last_failure = HIPMM_OK;
    return {resource_.allocate(cuda::stream_ref{static_cast<cudaStream_t>(stream)}, bytes, HIPMM_ALIGNMENT)};
  }
  void deallocate(const block &freed, std::size_t bytes, hipmm_stream_t stream)
  {
    resource_.deallocate(cuda::stream_ref{static_cast<cudaStream_t>(stream)}, freed.ptr, bytes, HIPMM_ALIGNMENT);
  }
  static hipmm_status explain(const hipmm_services *services, std::size_t bytes)
  {
    try {
      throw;
    } catch (const std::bad_alloc &) {
      if (last_failure != HIPMM_OK) return last_failure;
      return services->refuse(services, HIPMM_E_OUT_OF_MEMORY,
                              bytes ? "RMM has no {0:bytes}" : "RMM has not enough memory for what it takes at once",
                              bytes, 0, 0);
    } catch (const std::exception &reason) {
      return services->fail(services, HIPMM_E_HIP, nullptr, "RMM: %s", reason.what());
    }
  }

private:
  any_resource resource_;
};

using type = library_type<rmm_resource, options>;

const char *const kinds[] = {"pool", "arena", "binning", nullptr};

constexpr hipmm_option option_table[] = {
    {.name = "kind",
     .type = HIPMM_OPTION_ENUM,
     .offset = offsetof(options, kind),
     .initial = "pool",
     .doc = "RMM's class: pool_memory_resource, arena_memory_resource, or binning_memory_resource over a pool",
     .choices = kinds},
    {.name = "initial_size",
     .type = HIPMM_OPTION_BYTES,
     .flags = HIPMM_OPTION_PERCENT,
     .offset = offsetof(options, initial_size),
     .initial = "0",
     .unit = "bytes",
     .doc = "What the pool takes at once; the arena takes all of its maximum_size"},
    {.name = "maximum_size",
     .type = HIPMM_OPTION_BYTES,
     .flags = HIPMM_OPTION_PERCENT,
     .offset = offsetof(options, maximum_size),
     .unit = "bytes",
     .doc = "The most that RMM takes; without it a pool has no limit, and the arena takes half of what is free",
     .at_least = "initial_size"},
};

} // namespace

extern "C" HIPMM_EXPORT const hipmm_plugin rmm_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    .type = "rmm",
    .version = "1.0",
    .doc = "A sub-allocator of RMM, to be measured beside hipmm's",
    .role = HIPMM_ROLE_SUB_ALLOCATOR,
    .min_upstreams = 1,
    .max_upstreams = 1,
    .options = option_table,
    .n_options = sizeof option_table / sizeof *option_table,
    .options_bytes = sizeof(options),
    .ops = &type::ops,
    .create = type::create,
    .destroy = type::destroy,
};
