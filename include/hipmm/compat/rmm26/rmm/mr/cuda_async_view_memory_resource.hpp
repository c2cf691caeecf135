/* SPDX-License-Identifier: MIT */
/* rmm/mr/cuda_async_view_memory_resource.hpp of RMM 26: a pool of the driver that somebody else owns. */
#ifndef HIPMM_COMPAT_RMM_MR_CUDA_ASYNC_VIEW_MEMORY_RESOURCE_HPP
#define HIPMM_COMPAT_RMM_MR_CUDA_ASYNC_VIEW_MEMORY_RESOURCE_HPP

#include <hipmm/compat/detail/value.hpp>

namespace rmm::mr
{
inline namespace of_26
{

class cuda_async_view_memory_resource final : public hipmm::compat::value<cuda_async_view_memory_resource>
{
public:
  /* Has no pool: allocations throw logic_error. */
  cuda_async_view_memory_resource() = default;
  /* The pool must outlive the object. */
  cuda_async_view_memory_resource(hipmm::compat::mempool_handle pool_handle)
      : value{{make(pool_handle)}}, pool_handle_{pool_handle}
  {
  }

  [[nodiscard]] hipmm::compat::mempool_handle pool_handle() const noexcept
  {
    return pool_handle_;
  }

  /* For operator==. */
  [[nodiscard]] bool equals(const cuda_async_view_memory_resource &other) const noexcept
  {
    return pool_handle_ == other.pool_handle_;
  }

private:
  static hipmm::compat::backing make(hipmm::compat::mempool_handle handle)
  {
    RMM_EXPECTS(handle != nullptr, "Unexpected null pool handle.");
    const ::hipmm_mempool pool{sizeof(::hipmm_mempool), handle};
    return {hipmm::compat::make_resource(hipmm::compat::current_device(), "async_view", {}, {}, {"pool_handle", &pool}),
            true};
  }

  hipmm::compat::mempool_handle pool_handle_{};
};

} // namespace of_26
} // namespace rmm::mr

#endif
