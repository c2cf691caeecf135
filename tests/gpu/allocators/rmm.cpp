/* SPDX-License-Identifier: MIT */
/* rmm.cpp: RMM's sub-allocators as a type of hipmm, so that `hipmm replay` and `hipmm bench` measure them by the same harness
 * as hipmm's own: {"stack": [{"type": "rmm", "kind": "pool"}, "device"]}. RMM allocates from the resource below, so hipmm
 * counts exactly what it holds. Not installed; allocators.sh builds it.
 *
 * The caller has the device current, as RMM asks of a program: `replay` and `bench` have. */
#include "live_blocks.hpp"

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

struct peer {
  const hipmm_services *services;
  live_blocks live;
  std::optional<cuda::mr::any_resource<cuda::mr::device_accessible>> resource;
};

std::optional<std::size_t> whole(std::uint64_t bytes)
{
  if (bytes == HIPMM_UNLIMITED) return std::nullopt;
  return bytes / HIPMM_ALIGNMENT * HIPMM_ALIGNMENT; /* RMM takes no other size */
}

void make(peer &peer, const options &wanted, hipmm_resource *below)
{
  const std::size_t initial = *whole(wanted.initial_size);
  if (wanted.kind == ARENA) {
    peer.resource.emplace(rmm::mr::arena_memory_resource{upstream{below}, whole(wanted.maximum_size)});
    return;
  }
  rmm::mr::pool_memory_resource pool{upstream{below}, initial, whole(wanted.maximum_size)};
  if (wanted.kind == BINNING)
    peer.resource.emplace(
        rmm::mr::binning_memory_resource{pool, 18, 22}); /* bins of 256 KiB to 4 MiB, as in RMM's README */
  else
    peer.resource.emplace(pool);
}

/* The status for the exception that is being handled. */
hipmm_status explain(const hipmm_services *services, std::size_t bytes)
{
  try {
    throw;
  } catch (const std::bad_alloc &) {
    if (last_failure != HIPMM_OK) return last_failure;
    return services->refuse(services, HIPMM_E_OUT_OF_MEMORY, "RMM has no {0:bytes}", bytes, 0, 0);
  } catch (const std::exception &reason) {
    return services->fail(services, HIPMM_E_HIP, nullptr, "RMM: %s", reason.what());
  }
}

/* ---- Ops ---- */

hipmm_status allocate(void *self, std::size_t bytes, std::size_t alignment, hipmm_stream_t stream, void **ptr_out)
{
  auto &that = *static_cast<peer *>(self);
  if (!bytes) {
    *ptr_out = nullptr;
    return HIPMM_OK;
  }
  const hipmm_status status = that.live.check(bytes, alignment);
  if (status != HIPMM_OK) return status;
  try {
    last_failure = HIPMM_OK;
    void *ptr = that.resource->allocate(cuda::stream_ref{static_cast<cudaStream_t>(stream)}, bytes, HIPMM_ALIGNMENT);
    that.live.add(ptr, bytes);
    *ptr_out = ptr;
    return HIPMM_OK;
  } catch (...) {
    return explain(that.services, bytes);
  }
}

hipmm_status deallocate(void *self, void *ptr, std::size_t bytes, std::size_t, hipmm_stream_t stream)
{
  auto &that = *static_cast<peer *>(self);
  std::size_t size = 0;
  if (!ptr) return HIPMM_OK;
  const hipmm_status status = that.live.remove(ptr, bytes, &size);
  if (status != HIPMM_OK) return status;
  that.resource->deallocate(cuda::stream_ref{static_cast<cudaStream_t>(stream)}, ptr, size, HIPMM_ALIGNMENT);
  return HIPMM_OK;
}

hipmm_status find(void *self, const void *ptr, hipmm_block *block_out)
{
  return static_cast<peer *>(self)->live.find(ptr, block_out);
}

/* ---- Life ---- */

/* RMM frees all that it holds to the resource below, also under live blocks. */
void destroy(void *self)
{
  auto *that = static_cast<peer *>(self);
  const hipmm_services *services = that->services;
  services->hip->DeviceSynchronize();
  that->resource.reset();
  that->live.close();
  that->~peer();
  services->host_free(services, that, sizeof *that);
}

hipmm_status create(const hipmm_services *services, const void *given, hipmm_resource *const *upstreams, std::size_t,
                    void **self_out)
{
  void *memory = services->host_allocate(services, sizeof(peer));
  if (!memory)
    return services->fail(services, HIPMM_E_OUT_OF_MEMORY, nullptr, "no host memory for the resource itself");
  auto *that = new (memory) peer{services, {}, {}};
  hipmm_status status = that->live.open(services);
  try {
    rmm::default_logger().set_level(rapids_logger::level_enum::off); /* a failure is for the caller to tell */
    if (status == HIPMM_OK) make(*that, *static_cast<const options *>(given), upstreams[0]);
  } catch (const std::bad_alloc &) {
    status =
        services->fail(services, HIPMM_E_OUT_OF_MEMORY, nullptr, "RMM has not enough memory for what it takes at once");
  } catch (const std::exception &reason) {
    status = services->fail(services, HIPMM_E_HIP, nullptr, "RMM: %s", reason.what());
  }
  if (status == HIPMM_OK)
    *self_out = that;
  else
    destroy(that);
  return status;
}

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

constexpr hipmm_ops ops = {
    .struct_size = sizeof(hipmm_ops), .allocate = allocate, .deallocate = deallocate, .find = find};

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
    .ops = &ops,
    .create = create,
    .destroy = destroy,
};
