/* SPDX-License-Identifier: MIT */
/* rmm/mr/per_device_resource.hpp of RMM 26: the current resource of each device. */
#ifndef HIPMM_COMPAT_RMM_MR_PER_DEVICE_RESOURCE_HPP
#define HIPMM_COMPAT_RMM_MR_PER_DEVICE_RESOURCE_HPP

#include "../process_is_exiting.hpp"
#include "cuda_memory_resource.hpp"
#include <hipmm/compat/detail/value.hpp>

#include <map>
#include <mutex>
#include <utility>

namespace rmm::mr
{
inline namespace of_26
{

/* hipmm has another table of its own. A resource that is set here serves only RMM's functions. Until one is set, they take the
 * resource of hipmm's graph. */

namespace detail
{

/* `behind`: what hipmm has behind the resource on the device, once a container has asked for it. */
struct current_entry {
  hipmm::compat::any_device resource;
  hipmm::compat::backing behind;
};
struct current_table {
  std::mutex lock;
  std::map<int, current_entry> current;
};
HIPMM_COMPAT_ONE inline current_table &all_current()
{
  static current_table &shared = *new current_table; /* reachable for ever, as the initial resource */
  ::rmm::detail::register_process_exit_hook();
  return shared;
}

/* The caller has the lock. */
inline current_entry &current_of(current_table &table, cuda_device_id device)
{
  const auto found = table.current.find(device.value());
  if (found != table.current.end()) return found->second;
  return table.current.emplace(device.value(), current_entry{initial_resource(), {}}).first->second;
}

/* A copy of the current device's, as containers own it: no other thread can replace it meanwhile. */
inline hipmm::compat::owned_resource current_resource()
{
  current_table &table = all_current();
  const cuda_device_id device = get_current_cuda_device();
  const std::lock_guard<std::mutex> guard{table.lock};
  current_entry &current = current_of(table, device);
  if (!current.behind.resource) current.behind = hipmm::compat::backing_of(current.resource, device.value());
  return {current.resource, current.behind};
}

} // namespace detail

/* The reference is valid until another resource is set. */
inline device_async_resource_ref get_per_device_resource_ref(cuda_device_id device)
{
  detail::current_table &table = detail::all_current();
  const std::lock_guard<std::mutex> guard{table.lock};
  return device_async_resource_ref{detail::current_of(table, device).resource};
}

/* Returns the previous resource. */
inline hipmm::compat::any_device set_per_device_resource(cuda_device_id device, hipmm::compat::any_device next)
{
  RMM_EXPECTS(next.has_value(), "A resource was set that holds nothing, for it was moved from or never set.");
  detail::current_table &table = detail::all_current();
  const std::lock_guard<std::mutex> guard{table.lock};
  return std::exchange(detail::current_of(table, device), {std::move(next), {}}).resource;
}
inline hipmm::compat::any_device reset_per_device_resource(cuda_device_id device)
{
  return set_per_device_resource(device, detail::initial_resource());
}

inline device_async_resource_ref get_current_device_resource_ref()
{
  return get_per_device_resource_ref(get_current_cuda_device());
}
inline hipmm::compat::any_device set_current_device_resource(hipmm::compat::any_device next)
{
  return set_per_device_resource(get_current_cuda_device(), std::move(next));
}
inline hipmm::compat::any_device reset_current_device_resource()
{
  return reset_per_device_resource(get_current_cuda_device());
}

/* As releases until 26.06 have them. */
inline hipmm::compat::any_device set_per_device_resource_ref(cuda_device_id device, hipmm::compat::any_device next)
{
  return set_per_device_resource(device, std::move(next));
}
inline hipmm::compat::any_device set_current_device_resource_ref(hipmm::compat::any_device next)
{
  return set_current_device_resource(std::move(next));
}
inline hipmm::compat::any_device reset_per_device_resource_ref(cuda_device_id device)
{
  return reset_per_device_resource(device);
}
inline hipmm::compat::any_device reset_current_device_resource_ref()
{
  return reset_current_device_resource();
}

} // namespace of_26
} // namespace rmm::mr

#endif
