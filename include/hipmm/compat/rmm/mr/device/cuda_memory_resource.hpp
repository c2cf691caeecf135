/* SPDX-License-Identifier: MIT */
/* rmm/mr/device/cuda_memory_resource.hpp of RMM 23.12: device memory from the runtime, on the current device. */
#ifndef HIPMM_COMPAT_RMM_MR_DEVICE_CUDA_MEMORY_RESOURCE_HPP
#define HIPMM_COMPAT_RMM_MR_DEVICE_CUDA_MEMORY_RESOURCE_HPP

#include "../../cuda_device.hpp"
#include "device_memory_resource.hpp"

#include <cstddef>
#include <utility>

namespace rmm::mr
{

class cuda_memory_resource;

namespace detail
{

inline cuda_memory_resource *initial_resource();

} // namespace detail

/* The initial current resource is one of these too. Where hipmm has a graph, its memory is that of the graph's
 * resource. */
class cuda_memory_resource final : public device_memory_resource
{
public:
  cuda_memory_resource() = default;

  [[nodiscard]] bool supports_streams() const noexcept override
  {
    return false;
  }
  [[nodiscard]] bool supports_get_mem_info() const noexcept override
  {
    return true;
  }

private:
  friend cuda_memory_resource *detail::initial_resource();

  void *do_allocate(std::size_t bytes, cuda_stream_view stream) override
  {
    return hipmm::compat::allocate(do_get_backing(hipmm::compat::current_device()), bytes, stream);
  }
  void do_deallocate(void *ptr, std::size_t bytes, cuda_stream_view stream) override
  {
    hipmm::compat::shared_deallocate(source, ptr, bytes, stream, is_initial_);
  }
  [[nodiscard]] bool do_is_equal(const device_memory_resource &other) const noexcept override
  {
    const auto *same = dynamic_cast<const cuda_memory_resource *>(&other);
    if (!same || same->is_initial_ == is_initial_) return same != nullptr;
    try {
      const int device = hipmm::compat::current_device();
      return behind(device) == same->behind(device);
    } catch (...) {
      return false;
    }
  }
  [[nodiscard]] std::pair<std::size_t, std::size_t> do_get_mem_info(cuda_stream_view) const override
  {
    return available_device_memory();
  }
  [[nodiscard]] hipmm::compat::backing do_get_backing(int device) override
  {
    return {behind(device), true};
  }

  [[nodiscard]] hipmm::resource behind(int device) const
  {
    return hipmm::compat::shared_resource(source, device, is_initial_);
  }

  static constexpr auto source = hipmm::compat::shared_source::device;
  bool is_initial_ = false;
};

namespace detail
{

HIPMM_COMPAT_ONE inline cuda_memory_resource *initial_resource()
{
  static cuda_memory_resource *const initial = [] {
    auto *made = new cuda_memory_resource{}; /* reachable for ever: programs may free memory when they end */
    made->is_initial_ = true;
    return made;
  }();
  return initial;
}

} // namespace detail

} // namespace rmm::mr

#endif
