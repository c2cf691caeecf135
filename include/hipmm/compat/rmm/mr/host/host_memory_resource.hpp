/* SPDX-License-Identifier: MIT */
/* rmm/mr/host/host_memory_resource.hpp of RMM 23.12: the class from which resources of host memory are derived. */
#ifndef HIPMM_COMPAT_RMM_MR_HOST_HOST_MEMORY_RESOURCE_HPP
#define HIPMM_COMPAT_RMM_MR_HOST_HOST_MEMORY_RESOURCE_HPP

#include <hipmm/compat/detail/generation.hpp>
#if HIPMM_COMPAT_RMM != 23
#error \
    "this header is of RMM 23.12; a program for RMM 26 (HIPMM_COMPAT_RMM=26) includes <rmm/mr/...> without device/ and host/"
#include <HIPMM_COMPAT_RMM>
#endif

#include <hipmm/compat/detail/cuda_mr.hpp>

#include <cstddef>

namespace rmm::mr
{

/* As std::pmr::memory_resource. */
class host_memory_resource
{
public:
  host_memory_resource() = default;
  host_memory_resource(const host_memory_resource &) = default;
  host_memory_resource(host_memory_resource &&) noexcept = default;
  host_memory_resource &operator=(const host_memory_resource &) = default;
  host_memory_resource &operator=(host_memory_resource &&) noexcept = default;
  virtual ~host_memory_resource() = default;

  void *allocate(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t))
  {
    return do_allocate(bytes, alignment);
  }
  void deallocate(void *ptr, std::size_t bytes, std::size_t alignment = alignof(std::max_align_t))
  {
    do_deallocate(ptr, bytes, alignment);
  }

  [[nodiscard]] bool is_equal(const host_memory_resource &other) const noexcept
  {
    return do_is_equal(other);
  }
  [[nodiscard]] bool operator==(const host_memory_resource &other) const noexcept
  {
    return do_is_equal(other);
  }
  [[nodiscard]] bool operator!=(const host_memory_resource &other) const noexcept
  {
    return !do_is_equal(other);
  }

#ifdef HIPMM_COMPAT_CUDA_MR
  friend void get_property(const host_memory_resource &, ::cuda::mr::host_accessible) noexcept
  {
  }
#endif

private:
  virtual void *do_allocate(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) = 0;
  virtual void do_deallocate(void *ptr, std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) = 0;
  [[nodiscard]] virtual bool do_is_equal(const host_memory_resource &other) const noexcept
  {
    return this == &other;
  }
};

} // namespace rmm::mr

#endif
