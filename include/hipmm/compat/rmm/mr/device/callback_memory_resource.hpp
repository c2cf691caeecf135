/* SPDX-License-Identifier: MIT */
/* rmm/mr/device/callback_memory_resource.hpp of RMM 23.12: memory from functions of the program. */
#ifndef HIPMM_COMPAT_RMM_MR_DEVICE_CALLBACK_MEMORY_RESOURCE_HPP
#define HIPMM_COMPAT_RMM_MR_DEVICE_CALLBACK_MEMORY_RESOURCE_HPP

#include "device_memory_resource.hpp"

#include <cstddef>
#include <functional>
#include <stdexcept>
#include <utility>

namespace rmm::mr
{

using allocate_callback_t = std::function<void *(std::size_t, cuda_stream_view, void *)>;
using deallocate_callback_t = std::function<void(void *, std::size_t, cuda_stream_view, void *)>;

/* What the allocating function throws reaches the caller. */
class callback_memory_resource final : public device_memory_resource
{
public:
  callback_memory_resource(allocate_callback_t allocate_callback, deallocate_callback_t deallocate_callback,
                           void *allocate_callback_arg = nullptr, void *deallocate_callback_arg = nullptr) noexcept
      : allocate_{std::move(allocate_callback)}, deallocate_{std::move(deallocate_callback)},
        allocate_arg_{allocate_callback_arg}, deallocate_arg_{deallocate_callback_arg}
  {
  }
  callback_memory_resource(const callback_memory_resource &) = delete;
  callback_memory_resource &operator=(const callback_memory_resource &) = delete;
  callback_memory_resource(callback_memory_resource &&) noexcept = default;
  callback_memory_resource &operator=(callback_memory_resource &&) noexcept = default;

  [[nodiscard]] bool supports_streams() const noexcept override
  {
    return false;
  }
  [[nodiscard]] bool supports_get_mem_info() const noexcept override
  {
    return false;
  }

private:
  void *do_allocate(std::size_t bytes, cuda_stream_view stream) override
  {
    return allocate_(bytes, stream, allocate_arg_);
  }
  void do_deallocate(void *ptr, std::size_t bytes, cuda_stream_view stream) override
  {
    deallocate_(ptr, bytes, stream, deallocate_arg_);
  }
  [[nodiscard]] std::pair<std::size_t, std::size_t> do_get_mem_info(cuda_stream_view) const override
  {
    throw std::runtime_error{"cannot get free / total memory"};
  }

  allocate_callback_t allocate_;
  deallocate_callback_t deallocate_;
  void *allocate_arg_, *deallocate_arg_;
};

} // namespace rmm::mr

#endif
