/* SPDX-License-Identifier: MIT */
/* rmm/mr/host/pinned_memory_resource.hpp of RMM 23.12: pinned host memory, which every device can access. */
#ifndef HIPMM_COMPAT_RMM_MR_HOST_PINNED_MEMORY_RESOURCE_HPP
#define HIPMM_COMPAT_RMM_MR_HOST_PINNED_MEMORY_RESOURCE_HPP

#include "../../cuda_stream_view.hpp"
#include "../../detail/aligned.hpp"
#include "host_memory_resource.hpp"
#include <hipmm/compat/detail/core.hpp>

#include <cstddef>
#include <new>
#include <utility>

namespace rmm::mr
{

/* Also an upstream of pools. All objects share one resource of hipmm, on device 0: the memory is of no device. */
class pinned_memory_resource final : public host_memory_resource
{
public:
  pinned_memory_resource() = default;

  [[nodiscard]] bool supports_streams() const noexcept
  {
    return false;
  }
  [[nodiscard]] bool supports_get_mem_info() const noexcept
  {
    return false;
  }
  [[nodiscard]] std::pair<std::size_t, std::size_t> get_mem_info(cuda_stream_view) const
  {
    return {0, 0};
  }

  void *allocate_async(std::size_t bytes, cuda_stream_view)
  {
    return do_allocate(bytes);
  }
  void *allocate_async(std::size_t bytes, std::size_t alignment, cuda_stream_view)
  {
    return do_allocate(bytes, alignment);
  }
  void deallocate_async(void *ptr, std::size_t bytes, cuda_stream_view)
  {
    do_deallocate(ptr, bytes);
  }
  void deallocate_async(void *ptr, std::size_t bytes, std::size_t alignment, cuda_stream_view)
  {
    do_deallocate(ptr, bytes, alignment);
  }

  [[nodiscard]] hipmm::compat::backing hipmm_backing(int device) const
  {
    return {hipmm::compat::shared_resource(hipmm::compat::shared_source::pinned, device), true};
  }

#ifdef HIPMM_COMPAT_CUDA_MR
  friend void get_property(const pinned_memory_resource &, ::cuda::mr::device_accessible) noexcept
  {
  }
#endif

private:
  static std::size_t usable(std::size_t alignment) noexcept
  {
    return is_supported_alignment(alignment) && alignment > CUDA_ALLOCATION_ALIGNMENT ? alignment
                                                                                      : CUDA_ALLOCATION_ALIGNMENT;
  }
  void *do_allocate(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) override
  {
    void *ptr = nullptr;
    const hipmm::resource from = hipmm_backing(0).resource;
    if (::hipmm_allocate_aligned(from.get(), bytes, usable(alignment), nullptr, &ptr) != HIPMM_OK)
      throw std::bad_alloc{};
    return ptr;
  }
  void do_deallocate(void *ptr, std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) override
  {
    hipmm_backing(0).resource.deallocate(ptr, bytes, {}, usable(alignment));
  }
};

} // namespace rmm::mr

#endif
