/* SPDX-License-Identifier: MIT */
/* rmm/mr/device/cuda_async_view_memory_resource.hpp of RMM 23.12: a pool of the driver that somebody else owns. */
#ifndef HIPMM_COMPAT_RMM_MR_DEVICE_CUDA_ASYNC_VIEW_MEMORY_RESOURCE_HPP
#define HIPMM_COMPAT_RMM_MR_DEVICE_CUDA_ASYNC_VIEW_MEMORY_RESOURCE_HPP

#include "../../detail/dynamic_load_runtime.hpp"
#include <hipmm/compat/detail/adaptor.hpp>

#include <cstddef>
#include <utility>

namespace rmm::mr
{

class cuda_async_view_memory_resource final : public hipmm::compat::owner
{
public:
  /* The pool must outlive the object. */
  cuda_async_view_memory_resource(hipmm::compat::mempool_handle valid_pool_handle)
      : owner{make(valid_pool_handle)}, pool_handle_{valid_pool_handle}
  {
  }

  [[nodiscard]] hipmm::compat::mempool_handle pool_handle() const noexcept
  {
    return pool_handle_;
  }
  [[nodiscard]] bool supports_streams() const noexcept override
  {
    return true;
  }
  [[nodiscard]] bool supports_get_mem_info() const noexcept override
  {
    return false;
  }

private:
  static hipmm::compat::backing make(hipmm::compat::mempool_handle handle)
  {
    RMM_EXPECTS(handle != nullptr, "Unexpected null pool handle.");
    const ::hipmm_mempool pool{sizeof(::hipmm_mempool), handle};
    return {hipmm::compat::make_resource(hipmm::compat::current_device(), "async_view", {}, {}, {"pool_handle", &pool}),
            true};
  }
  [[nodiscard]] std::pair<std::size_t, std::size_t> do_get_mem_info(cuda_stream_view) const override
  {
    return {0, 0};
  }

  hipmm::compat::mempool_handle pool_handle_;
};

} // namespace rmm::mr

#endif
