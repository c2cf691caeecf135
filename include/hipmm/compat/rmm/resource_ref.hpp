/* SPDX-License-Identifier: MIT */
/* rmm/resource_ref.hpp: a resource that somebody else owns, as the containers take it. In RMM 23.12 it is
 * cuda::mr::async_resource_ref<cuda::mr::device_accessible>; later releases call it device_async_resource_ref. In RMM 26 it is
 * cuda::mr::resource_ref<cuda::mr::device_accessible>. */
#ifndef HIPMM_COMPAT_RMM_RESOURCE_REF_HPP
#define HIPMM_COMPAT_RMM_RESOURCE_REF_HPP

#include <hipmm/compat/detail/generation.hpp>
#if HIPMM_COMPAT_RMM == 26

#include "detail/error.hpp"
#include <hipmm/compat/detail/cuda_mr.hpp>

namespace rmm
{

using device_resource_ref = ::cuda::mr::synchronous_resource_ref<::cuda::mr::device_accessible>;
using device_async_resource_ref = ::cuda::mr::resource_ref<::cuda::mr::device_accessible>;
using host_resource_ref = ::cuda::mr::synchronous_resource_ref<::cuda::mr::host_accessible>;
using host_async_resource_ref = ::cuda::mr::resource_ref<::cuda::mr::host_accessible>;
using host_device_resource_ref =
    ::cuda::mr::synchronous_resource_ref<::cuda::mr::host_accessible, ::cuda::mr::device_accessible>;
using host_device_async_resource_ref =
    ::cuda::mr::resource_ref<::cuda::mr::host_accessible, ::cuda::mr::device_accessible>;

template <typename Resource> device_async_resource_ref to_device_async_resource_ref_checked(Resource *resource)
{
  RMM_EXPECTS(resource != nullptr, "Unexpected null resource pointer.");
  return device_async_resource_ref{*resource};
}

} // namespace rmm

#else

#include "mr/device/device_memory_resource.hpp"
#include <hipmm/compat/detail/foreign.hpp>

#include <cstddef>
#include <memory>
#include <type_traits>

namespace rmm
{

/* From a device_memory_resource, by pointer or by reference, or from another class with allocate_async() and
 * deallocate_async(), such as pinned_memory_resource. Two are equal if their resources are. */
class device_async_resource_ref
{
public:
  /* A move is a copy: allocators have references, and a moved-from allocator equals its copy. */
  device_async_resource_ref(const device_async_resource_ref &) = default;
  device_async_resource_ref &operator=(const device_async_resource_ref &) = default;

  device_async_resource_ref(mr::device_memory_resource *resource) : resource_{resource}
  {
    RMM_EXPECTS(resource != nullptr, "Unexpected null resource pointer.");
  }
  template <typename Resource, typename = std::enable_if_t<std::is_base_of_v<mr::device_memory_resource, Resource>>>
  device_async_resource_ref(Resource &resource) : resource_{std::addressof(resource)}
  {
  }
  template <typename Resource, hipmm::compat::if_foreign<Resource> = 0>
  device_async_resource_ref(Resource *resource)
      : foreign_{std::make_shared<hipmm::compat::foreign_resource<Resource *>>(resource)}, resource_{foreign_.get()}
  {
  }
  /* A reference of another kind is copied; a resource must live as long as it is used. */
  template <typename Resource, hipmm::compat::if_foreign<Resource> = 0>
  device_async_resource_ref(Resource &resource)
      : foreign_{hipmm::compat::make_foreign(resource)}, resource_{foreign_.get()}
  {
  }

  void *allocate_async(std::size_t bytes, cuda_stream_view stream) const
  {
    return resource_->allocate_async(bytes, stream);
  }
  void *allocate_async(std::size_t bytes, std::size_t alignment, cuda_stream_view stream) const
  {
    return resource_->allocate_async(bytes, alignment, stream);
  }
  void deallocate_async(void *ptr, std::size_t bytes, cuda_stream_view stream) const
  {
    resource_->deallocate_async(ptr, bytes, stream);
  }
  void deallocate_async(void *ptr, std::size_t bytes, std::size_t alignment, cuda_stream_view stream) const
  {
    resource_->deallocate_async(ptr, bytes, alignment, stream);
  }
  void *allocate(std::size_t bytes, std::size_t alignment = CUDA_ALLOCATION_ALIGNMENT) const
  {
    return resource_->allocate(bytes, alignment);
  }
  void deallocate(void *ptr, std::size_t bytes, std::size_t alignment = CUDA_ALLOCATION_ALIGNMENT) const
  {
    resource_->deallocate(ptr, bytes, alignment);
  }

  /* In RMM until 23.10 the containers took and returned pointers. A template, so that a comparison with a pointer is one of
   * references. */
  template <typename Base, typename = std::enable_if_t<std::is_same_v<Base, mr::device_memory_resource>>>
  operator Base *() const noexcept
  {
    return resource_;
  }
  [[nodiscard]] mr::device_memory_resource *operator->() const noexcept
  {
    return resource_;
  }

  [[nodiscard]] friend bool operator==(const device_async_resource_ref &one,
                                       const device_async_resource_ref &other) noexcept
  {
    return one.resource_ == other.resource_ || one.resource_->is_equal(*other.resource_);
  }
  [[nodiscard]] friend bool operator!=(const device_async_resource_ref &one,
                                       const device_async_resource_ref &other) noexcept
  {
    return !(one == other);
  }

private:
  std::shared_ptr<mr::device_memory_resource> foreign_; /* around a resource of another class; else empty */
  mr::device_memory_resource *resource_;
};

namespace mr
{

using rmm::device_async_resource_ref;

} // namespace mr
} // namespace rmm

#ifdef HIPMM_COMPAT_OWN_CUDA_MR
namespace cuda
{

using stream_ref = rmm::cuda_stream_view;

namespace mr
{

template <typename... Properties> using async_resource_ref = rmm::device_async_resource_ref;
template <typename... Properties> using resource_ref = rmm::device_async_resource_ref;

template <typename Resource, typename... Properties>
inline constexpr bool async_resource_with = std::is_convertible_v<Resource *, rmm::device_async_resource_ref> &&
                                            (has_property<Resource, Properties> && ...);

} // namespace mr
} // namespace cuda
#endif

#endif /* HIPMM_COMPAT_RMM */
#endif
