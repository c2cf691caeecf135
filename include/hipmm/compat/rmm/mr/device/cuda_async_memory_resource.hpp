/* SPDX-License-Identifier: MIT */
/* rmm/mr/device/cuda_async_memory_resource.hpp of RMM 23.12: a pool of the driver with its owner. */
#ifndef HIPMM_COMPAT_RMM_MR_DEVICE_CUDA_ASYNC_MEMORY_RESOURCE_HPP
#define HIPMM_COMPAT_RMM_MR_DEVICE_CUDA_ASYNC_MEMORY_RESOURCE_HPP

#include "../../cuda_device.hpp"
#include "../../detail/dynamic_load_runtime.hpp"
#include <hipmm/compat/detail/adaptor.hpp>

#include <cstddef>
#include <utility>

namespace rmm::mr
{

/* Sizes are in bytes. Unless they are given, the pool takes half of what is free at once, and keeps what it has. */
class cuda_async_memory_resource final : public hipmm::compat::owner
{
public:
  /* How other processes can import the pool. */
  enum class allocation_handle_type { none = 0x0, posix_file_descriptor = 0x1, win32 = 0x2, win32_kmt = 0x4 };

  cuda_async_memory_resource(hipmm::compat::optional_size initial_pool_size = {},
                             hipmm::compat::optional_size release_threshold = {})
      : cuda_async_memory_resource{initial_pool_size, release_threshold, allocation_handle_type::none}
  {
  }
  cuda_async_memory_resource(hipmm::compat::optional_size initial_pool_size,
                             hipmm::compat::optional_size release_threshold, allocation_handle_type export_handle_type)
      : owner{make(initial_pool_size, release_threshold, export_handle_type)}
  {
  }
  cuda_async_memory_resource(const cuda_async_memory_resource &) = delete;
  cuda_async_memory_resource &operator=(const cuda_async_memory_resource &) = delete;

  [[nodiscard]] hipmm::compat::mempool_handle pool_handle() const noexcept
  {
    return hipmm::compat::pool_handle_of(behind());
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
  static hipmm::compat::backing make(hipmm::compat::optional_size initial, hipmm::compat::optional_size threshold,
                                     allocation_handle_type export_handle_type)
  {
    const auto [free, total] = available_device_memory();
    const bool is_exported = export_handle_type == allocation_handle_type::posix_file_descriptor;
    RMM_EXPECTS(is_exported || export_handle_type == allocation_handle_type::none,
                "Requested IPC memory handle type not supported");
    return {hipmm::compat::make_resource(hipmm::compat::current_device(), "async",
                                         {{"initial_pool_size", initial.value_or(free / 2)},
                                          {"release_threshold", threshold.value_or(total)},
                                          {"handle_type", is_exported ? "posix_fd" : "none"}}),
            true};
  }
  [[nodiscard]] std::pair<std::size_t, std::size_t> do_get_mem_info(cuda_stream_view) const override
  {
    return {0, 0};
  }
};

} // namespace rmm::mr

#endif
