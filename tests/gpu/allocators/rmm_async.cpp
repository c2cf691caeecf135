/* SPDX-License-Identifier: MIT */
/* rmm_async.cpp: a memory pool of CUDA's driver (cudaMallocAsync) through RMM, as a type of hipmm, so that `hipmm replay` and
 * `hipmm bench` measure it by the same harness as hipmm's own: {"stack": ["rmm_async"]}. Other than hipmm's type `async` it
 * can have a maximum (cudaMemPoolProps.maxSize), which the least budget of a log needs. Not installed; allocators.sh
 * builds it.
 *
 * The caller has the device current, as RMM asks of a program: `replay` and `bench` have. */
#include "live_blocks.hpp"

#include <rmm/error.hpp>
#include <rmm/mr/cuda_async_view_memory_resource.hpp>

#include <cuda/stream_ref>
#include <cuda_runtime_api.h>

#include <mutex>
#include <new>

namespace
{

/* The driver is asked what its pool holds at one allocation in so many. Its own peak says what it held meanwhile. */
constexpr unsigned ask_every = 128;

struct options {
  std::uint64_t maximum_size;
};

struct peer {
  const hipmm_services *services;
  live_blocks live;
  cudaMemPool_t pool = nullptr;
  rmm::mr::cuda_async_view_memory_resource resource;
  std::mutex mutex; /* of counted_bytes */
  std::int64_t counted_bytes = 0;
};

/* ---- What the pool holds ---- */

void count(peer &that)
{
  std::unique_lock<std::mutex> lock{that.mutex, std::try_to_lock};
  std::uint64_t now = 0, peak = 0, reset = 0;
  if (!lock || cudaMemPoolGetAttribute(that.pool, cudaMemPoolAttrReservedMemHigh, &peak) != cudaSuccess ||
      cudaMemPoolGetAttribute(that.pool, cudaMemPoolAttrReservedMemCurrent, &now) != cudaSuccess)
    return;
  that.services->count_held(that.services, static_cast<std::int64_t>(peak) - that.counted_bytes);
  that.services->count_held(that.services, static_cast<std::int64_t>(now) - static_cast<std::int64_t>(peak));
  that.counted_bytes = static_cast<std::int64_t>(now);
  if (peak > now) cudaMemPoolSetAttribute(that.pool, cudaMemPoolAttrReservedMemHigh, &reset);
}

/* ---- Ops ---- */

/* The status for the exception that is being handled. */
hipmm_status explain(const hipmm_services *services, std::size_t bytes)
{
  cudaGetLastError();
  try {
    throw;
  } catch (const std::bad_alloc &) {
    return services->refuse(services, HIPMM_E_OUT_OF_MEMORY, "the driver's pool has no {0:bytes}", bytes, 0, 0);
  } catch (const std::exception &reason) {
    return services->fail(services, HIPMM_E_HIP, nullptr, "RMM: %s", reason.what());
  }
}

hipmm_status allocate(void *self, std::size_t bytes, std::size_t alignment, hipmm_stream_t stream, void **ptr_out)
{
  static thread_local unsigned allocations;
  auto &that = *static_cast<peer *>(self);
  if (!bytes) {
    *ptr_out = nullptr;
    return HIPMM_OK;
  }
  const hipmm_status status = that.live.check(bytes, alignment);
  if (status != HIPMM_OK) return status;
  try {
    void *ptr = that.resource.allocate(cuda::stream_ref{static_cast<cudaStream_t>(stream)}, bytes);
    that.live.add(ptr, bytes);
    if (allocations++ % ask_every == 0) count(that);
    *ptr_out = ptr;
    return HIPMM_OK;
  } catch (...) {
    const hipmm_status why = explain(that.services, bytes);
    count(that);
    return why;
  }
}

hipmm_status deallocate(void *self, void *ptr, std::size_t bytes, std::size_t, hipmm_stream_t stream)
{
  auto &that = *static_cast<peer *>(self);
  std::size_t size = 0;
  if (!ptr) return HIPMM_OK;
  const hipmm_status status = that.live.remove(ptr, bytes, &size);
  if (status != HIPMM_OK) return status;
  that.resource.deallocate(cuda::stream_ref{static_cast<cudaStream_t>(stream)}, ptr, size);
  return HIPMM_OK;
}

hipmm_status find(void *self, const void *ptr, hipmm_block *block_out)
{
  return static_cast<peer *>(self)->live.find(ptr, block_out);
}

/* ---- Life ---- */

/* A pool that keeps all its memory, as RMM's cuda_async_memory_resource has it. */
cudaError_t open(peer &that, const options &wanted)
{
  cudaMemPoolProps properties{};
  std::uint64_t threshold = UINT64_MAX;
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, that.services->device};
  properties.maxSize = wanted.maximum_size == HIPMM_UNLIMITED ? 0 : wanted.maximum_size;
  cudaError_t error = cudaMemPoolCreate(&that.pool, &properties);
  if (error == cudaSuccess) error = cudaMemPoolSetAttribute(that.pool, cudaMemPoolAttrReleaseThreshold, &threshold);
  return error;
}

void release(peer *that)
{
  const hipmm_services *services = that->services;
  if (that->pool) cudaMemPoolDestroy(that->pool);
  services->count_held(services, -that->counted_bytes);
  that->live.close();
  that->~peer();
  services->host_free(services, that, sizeof *that);
}

/* The driver keeps a pool as long as a block of it is live. */
void destroy(void *self)
{
  auto *that = static_cast<peer *>(self);
  that->services->hip->DeviceSynchronize();
  that->live.visit(
      [&](void *ptr, std::size_t bytes) { that->resource.deallocate(cuda::stream_ref{cudaStream_t{}}, ptr, bytes); });
  that->services->hip->DeviceSynchronize();
  release(that);
}

hipmm_status create(const hipmm_services *services, const void *given, hipmm_resource *const *, std::size_t,
                    void **self_out)
{
  void *memory = services->host_allocate(services, sizeof(peer));
  if (!memory)
    return services->fail(services, HIPMM_E_OUT_OF_MEMORY, nullptr, "no host memory for the resource itself");
  auto *that = new (memory) peer{services, {}, nullptr, {}, {}};
  hipmm_status status = that->live.open(services);
  try {
    const cudaError_t error = status == HIPMM_OK ? open(*that, *static_cast<const options *>(given)) : cudaSuccess;
    if (error != cudaSuccess)
      status = services->fail(services, HIPMM_E_HIP, nullptr, "a pool of the driver cannot be made: %s",
                              cudaGetErrorName(error));
    if (status == HIPMM_OK) that->resource = rmm::mr::cuda_async_view_memory_resource{that->pool};
  } catch (...) {
    status = explain(services, 0);
  }
  if (status == HIPMM_OK)
    *self_out = that;
  else
    release(that);
  return status;
}

constexpr hipmm_option option_table[] = {
    {.name = "maximum_size",
     .type = HIPMM_OPTION_BYTES,
     .flags = HIPMM_OPTION_PERCENT,
     .offset = offsetof(options, maximum_size),
     .unit = "bytes",
     .doc = "The most that the driver's pool takes from the device; no limit without it",
     .minimum = "1"},
};

constexpr hipmm_ops ops = {
    .struct_size = sizeof(hipmm_ops), .allocate = allocate, .deallocate = deallocate, .find = find};

} // namespace

extern "C" HIPMM_EXPORT const hipmm_plugin rmm_async_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    .type = "rmm_async",
    .version = "1.0",
    .doc = "The driver's memory pool through RMM, to be measured beside hipmm's",
    .role = HIPMM_ROLE_SOURCE,
    .flags = HIPMM_PLUGIN_KEEPS_MEMORY | HIPMM_PLUGIN_DEVICE_MEMORY,
    .options = option_table,
    .n_options = sizeof option_table / sizeof *option_table,
    .options_bytes = sizeof(options),
    .ops = &ops,
    .create = create,
    .destroy = destroy,
};
