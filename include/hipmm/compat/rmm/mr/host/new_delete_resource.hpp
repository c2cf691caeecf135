/* SPDX-License-Identifier: MIT */
/* rmm/mr/host/new_delete_resource.hpp of RMM 23.12: host memory from operator new. */
#ifndef HIPMM_COMPAT_RMM_MR_HOST_NEW_DELETE_RESOURCE_HPP
#define HIPMM_COMPAT_RMM_MR_HOST_NEW_DELETE_RESOURCE_HPP

#include "../../detail/aligned.hpp"
#include "host_memory_resource.hpp"

#include <cstddef>
#include <new>

namespace rmm::mr
{

/* What is no power of two is taken for the default alignment. */
class new_delete_resource final : public host_memory_resource
{
public:
  new_delete_resource() = default;

private:
  static std::align_val_t usable(std::size_t alignment) noexcept
  {
    return std::align_val_t{alignment != 0 && is_supported_alignment(alignment) ? alignment
                                                                                : RMM_DEFAULT_HOST_ALIGNMENT};
  }
  void *do_allocate(std::size_t bytes, std::size_t alignment = RMM_DEFAULT_HOST_ALIGNMENT) override
  {
    return ::operator new(bytes, usable(alignment));
  }
  void do_deallocate(void *ptr, std::size_t, std::size_t alignment = RMM_DEFAULT_HOST_ALIGNMENT) override
  {
    ::operator delete(ptr, usable(alignment));
  }
};

} // namespace rmm::mr

#endif
