/* SPDX-License-Identifier: MIT */
/* hipmm/compat/detail/container_resource.hpp: a container's resource. In RMM 23.12 it is a reference to a resource that somebody
 * else owns, in RMM 26 a copy. */
#ifndef HIPMM_COMPAT_DETAIL_CONTAINER_RESOURCE_HPP
#define HIPMM_COMPAT_DETAIL_CONTAINER_RESOURCE_HPP

#include <hipmm/compat/detail/generation.hpp>
#if HIPMM_COMPAT_RMM == 26
#include <rmm/mr/per_device_resource.hpp>
#else
#include <rmm/mr/device/per_device_resource.hpp>
#endif

#include <hipmm/buffer.h>

namespace hipmm::compat
{

#if HIPMM_COMPAT_RMM == 26
using container_resource = owned_resource;

inline owned_resource default_resource()
{
  return rmm::mr::detail::current_resource();
}
inline backing backing_for(const owned_resource &from, int device)
{
  return from.on(device);
}
inline rmm::device_async_resource_ref reference_to(const owned_resource &from) noexcept
{
  return rmm::device_async_resource_ref{const_cast<owned_resource &>(from).get()};
}
#else
using container_resource = rmm::device_async_resource_ref;

inline rmm::device_async_resource_ref default_resource()
{
  return rmm::mr::get_current_device_resource();
}
inline backing backing_for(const rmm::device_async_resource_ref &from, int device)
{
  return from->hipmm_backing(device);
}
inline rmm::device_async_resource_ref reference_to(const rmm::device_async_resource_ref &from) noexcept
{
  return from;
}
#endif

/* Whether the memory comes from an `aligned` resource. */
inline bool is_aligned_type(const ::hipmm_buffer *buffer)
{
  return hipmm::resource::retain(::hipmm_buffer_resource(buffer)).type() == "aligned";
}

} // namespace hipmm::compat

#endif
