/* SPDX-License-Identifier: MIT */
/* rmm/mr/device/per_device_resource.hpp of RMM 23.12: the current resource of each device. hipmm's own table is another
 * one: what is set here serves RMM's functions alone, and until then they take the resource of hipmm's graph. */
#ifndef HIPMM_COMPAT_RMM_MR_DEVICE_PER_DEVICE_RESOURCE_HPP
#define HIPMM_COMPAT_RMM_MR_DEVICE_PER_DEVICE_RESOURCE_HPP

#include "../../resource_ref.hpp"
#include "cuda_memory_resource.hpp"

#include <map>
#include <mutex>
#include <utility>

namespace rmm::mr
{

namespace detail
{

/* The resource of a device; with `next`, replaces it, and returns the one before. */
HIPMM_COMPAT_ONE inline device_memory_resource *exchange_resource(cuda_device_id device, device_memory_resource *next)
{
  struct table {
    std::mutex lock;
    std::map<int, device_memory_resource *> current;
  };
  static table &shared = *new table;
  const std::lock_guard<std::mutex> guard{shared.lock};
  device_memory_resource *&entry = shared.current.try_emplace(device.value(), initial_resource()).first->second;
  return next ? std::exchange(entry, next) : entry;
}

} // namespace detail

inline device_memory_resource *get_per_device_resource(cuda_device_id device)
{
  return detail::exchange_resource(device, nullptr);
}

/* Returns the previous resource. nullptr sets the initial one. The resource must live while it is current. */
inline device_memory_resource *set_per_device_resource(cuda_device_id device, device_memory_resource *next)
{
  return detail::exchange_resource(device, next ? next : detail::initial_resource());
}

inline device_memory_resource *get_current_device_resource()
{
  return get_per_device_resource(get_current_cuda_device());
}
inline device_memory_resource *set_current_device_resource(device_memory_resource *next)
{
  return set_per_device_resource(get_current_cuda_device(), next);
}

/* As later releases have them. */
inline device_async_resource_ref get_per_device_resource_ref(cuda_device_id device)
{
  return device_async_resource_ref{get_per_device_resource(device)};
}
inline device_async_resource_ref get_current_device_resource_ref()
{
  return device_async_resource_ref{get_current_device_resource()};
}
inline device_async_resource_ref set_per_device_resource_ref(cuda_device_id device, device_async_resource_ref next)
{
  return device_async_resource_ref{set_per_device_resource(device, static_cast<device_memory_resource *>(next))};
}
inline device_async_resource_ref set_current_device_resource_ref(device_async_resource_ref next)
{
  return set_per_device_resource_ref(get_current_cuda_device(), next);
}
inline device_async_resource_ref set_per_device_resource(cuda_device_id device, device_memory_resource &next)
{
  return set_per_device_resource_ref(device, next);
}
inline device_async_resource_ref set_current_device_resource(device_memory_resource &next)
{
  return set_current_device_resource_ref(next);
}

} // namespace rmm::mr

#endif
