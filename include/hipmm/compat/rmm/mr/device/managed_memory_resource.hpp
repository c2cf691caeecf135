/* SPDX-License-Identifier: MIT */
/* rmm/mr/device/managed_memory_resource.hpp of RMM 23.12: memory that migrates between host and devices. */
#ifndef HIPMM_COMPAT_RMM_MR_DEVICE_MANAGED_MEMORY_RESOURCE_HPP
#define HIPMM_COMPAT_RMM_MR_DEVICE_MANAGED_MEMORY_RESOURCE_HPP

#include "../../cuda_device.hpp"
#include "device_memory_resource.hpp"

#include <cstddef>
#include <utility>

namespace rmm::mr
{

class managed_memory_resource final : public device_memory_resource
{
public:
  managed_memory_resource() = default;

  [[nodiscard]] bool supports_streams() const noexcept override
  {
    return false;
  }
  [[nodiscard]] bool supports_get_mem_info() const noexcept override
  {
    return true;
  }

private:
  void *do_allocate(std::size_t bytes, cuda_stream_view stream) override
  {
    return hipmm::compat::allocate(do_get_backing(hipmm::compat::current_device()), bytes, stream);
  }
  void do_deallocate(void *ptr, std::size_t bytes, cuda_stream_view stream) override
  {
    hipmm::compat::shared_deallocate(hipmm::compat::shared_source::managed, ptr, bytes, stream);
  }
  [[nodiscard]] bool do_is_equal(const device_memory_resource &other) const noexcept override
  {
    return dynamic_cast<const managed_memory_resource *>(&other) != nullptr;
  }
  [[nodiscard]] std::pair<std::size_t, std::size_t> do_get_mem_info(cuda_stream_view) const override
  {
    return available_device_memory();
  }
  [[nodiscard]] hipmm::compat::backing do_get_backing(int device) override
  {
    return {hipmm::compat::shared_resource(hipmm::compat::shared_source::managed, device), true};
  }
};

} // namespace rmm::mr

#endif
