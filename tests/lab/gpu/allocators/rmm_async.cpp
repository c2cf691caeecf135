/* SPDX-License-Identifier: MIT */
/* rmm_async.cpp: a memory pool of CUDA's driver (cudaMallocAsync) through RMM, as a type of hipmm, so that `hipmm replay` and
 * `hipmm bench` measure it by the same harness as hipmm's own: {"stack": ["rmm_async"]}. Other than hipmm's type `async` it
 * can have a maximum (cudaMemPoolProps.maxSize), which the least budget of a log needs. Not installed; allocators.sh
 * builds it.
 *
 * The caller has the device current, as RMM asks of a program: `replay` and `bench` have. */
#include "library_type.hpp"

#include <rmm/error.hpp>
#include <rmm/mr/cuda_async_view_memory_resource.hpp>

#include <cuda/stream_ref>
#include <cuda_runtime_api.h>

#include <new>
#include <stdexcept>
#include <string>

namespace
{

struct options {
  std::uint64_t maximum_size;
};

/* A pool that keeps all its memory, as RMM's cuda_async_memory_resource has it. */
class driver_pool
{
public:
  driver_pool(int device, std::uint64_t maximum_bytes)
  {
    cudaMemPoolProps properties{};
    std::uint64_t threshold = UINT64_MAX;
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location = {cudaMemLocationTypeDevice, device};
    properties.maxSize = maximum_bytes == HIPMM_UNLIMITED ? 0 : maximum_bytes;
    cudaError_t error = cudaMemPoolCreate(&handle, &properties);
    if (error == cudaSuccess) {
      error = cudaMemPoolSetAttribute(handle, cudaMemPoolAttrReleaseThreshold, &threshold);
      if (error != cudaSuccess) cudaMemPoolDestroy(handle);
    }
    if (error != cudaSuccess)
      throw std::runtime_error{std::string{"a pool of the driver cannot be made: "} + cudaGetErrorName(error)};
  }
  driver_pool(const driver_pool &) = delete;
  ~driver_pool()
  {
    cudaMemPoolDestroy(handle);
  }

  cudaMemPool_t handle;
};

class rmm_async_resource
{
public:
  rmm_async_resource(const hipmm_services *services, const options &wanted, hipmm_resource *)
      : pool_{services->device, wanted.maximum_size}, resource_{pool_.handle}
  {
  }
  block allocate(std::size_t bytes, hipmm_stream_t stream)
  {
    return {resource_.allocate(cuda::stream_ref{static_cast<cudaStream_t>(stream)}, bytes)};
  }
  void deallocate(const block &freed, std::size_t bytes, hipmm_stream_t stream)
  {
    resource_.deallocate(cuda::stream_ref{static_cast<cudaStream_t>(stream)}, freed.ptr, bytes);
  }
  /* The driver keeps a pool as long as a block of it is live. */
  void abandon(void *ptr, std::size_t bytes) noexcept
  {
    deallocate({ptr}, bytes, nullptr);
  }
  static constexpr unsigned ask_every = 128;
  std::optional<held> ask_held()
  {
    std::uint64_t now = 0, peak = 0, reset = 0;
    if (cudaMemPoolGetAttribute(pool_.handle, cudaMemPoolAttrReservedMemHigh, &peak) != cudaSuccess ||
        cudaMemPoolGetAttribute(pool_.handle, cudaMemPoolAttrReservedMemCurrent, &now) != cudaSuccess)
      return std::nullopt;
    if (peak > now) cudaMemPoolSetAttribute(pool_.handle, cudaMemPoolAttrReservedMemHigh, &reset);
    return held{static_cast<std::int64_t>(now), static_cast<std::int64_t>(peak)};
  }
  static hipmm_status explain(const hipmm_services *services, std::size_t bytes)
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

private:
  driver_pool pool_;
  rmm::mr::cuda_async_view_memory_resource resource_;
};

using type = library_type<rmm_async_resource, options>;

constexpr hipmm_option option_table[] = {
    {.name = "maximum_size",
     .type = HIPMM_OPTION_BYTES,
     .flags = HIPMM_OPTION_PERCENT,
     .offset = offsetof(options, maximum_size),
     .unit = "bytes",
     .doc = "The most that the driver's pool takes from the device; no limit without it",
     .minimum = "1"},
};

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
    .ops = &type::ops,
    .create = type::create,
    .destroy = type::destroy,
};
