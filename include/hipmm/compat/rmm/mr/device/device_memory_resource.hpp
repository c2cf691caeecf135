/* SPDX-License-Identifier: MIT */
/* rmm/mr/device/device_memory_resource.hpp of RMM 23.12: the class from which resources of device memory are derived. */
#ifndef HIPMM_COMPAT_RMM_MR_DEVICE_DEVICE_MEMORY_RESOURCE_HPP
#define HIPMM_COMPAT_RMM_MR_DEVICE_DEVICE_MEMORY_RESOURCE_HPP

#include <hipmm/compat/detail/generation.hpp>
#if HIPMM_COMPAT_RMM != 23
#error \
    "this header is of RMM 23.12; a program for RMM 26 (HIPMM_COMPAT_RMM=26) includes <rmm/mr/...> without device/ and host/"
#include <HIPMM_COMPAT_RMM>
#endif

#include "../../cuda_stream_view.hpp"
#include "../../detail/aligned.hpp"
#include <hipmm/compat/detail/core.hpp>
#include <hipmm/compat/detail/cuda_mr.hpp>

#include <cstddef>
#include <utility>

namespace rmm::mr
{

/* Memory is aligned to 256 bytes; an alignment that a caller gives rounds the size up to it. */
class device_memory_resource
{
public:
  device_memory_resource() = default;
  device_memory_resource(const device_memory_resource &) = default;
  device_memory_resource(device_memory_resource &&) noexcept = default;
  device_memory_resource &operator=(const device_memory_resource &) = default;
  device_memory_resource &operator=(device_memory_resource &&) noexcept = default;
  virtual ~device_memory_resource() = default;

  void *allocate(std::size_t bytes, cuda_stream_view stream = cuda_stream_view{})
  {
    return do_allocate(bytes, stream);
  }
  void *allocate(std::size_t bytes, std::size_t alignment)
  {
    return do_allocate(align_up(bytes, alignment), cuda_stream_view{});
  }
  void *allocate_async(std::size_t bytes, cuda_stream_view stream)
  {
    return do_allocate(bytes, stream);
  }
  void *allocate_async(std::size_t bytes, std::size_t alignment, cuda_stream_view stream)
  {
    return do_allocate(align_up(bytes, alignment), stream);
  }

  /* With the size of the allocation. Work that was submitted to the stream before may still use the memory. */
  void deallocate(void *ptr, std::size_t bytes, cuda_stream_view stream = cuda_stream_view{})
  {
    do_deallocate(ptr, bytes, stream);
  }
  void deallocate(void *ptr, std::size_t bytes, std::size_t alignment)
  {
    do_deallocate(ptr, align_up(bytes, alignment), cuda_stream_view{});
  }
  void deallocate_async(void *ptr, std::size_t bytes, cuda_stream_view stream)
  {
    do_deallocate(ptr, bytes, stream);
  }
  void deallocate_async(void *ptr, std::size_t bytes, std::size_t alignment, cuda_stream_view stream)
  {
    do_deallocate(ptr, align_up(bytes, alignment), stream);
  }

  /* Whether one may free what the other has allocated. */
  [[nodiscard]] bool is_equal(const device_memory_resource &other) const noexcept
  {
    return do_is_equal(other);
  }
  [[nodiscard]] bool operator==(const device_memory_resource &other) const noexcept
  {
    return do_is_equal(other);
  }
  [[nodiscard]] bool operator!=(const device_memory_resource &other) const noexcept
  {
    return !do_is_equal(other);
  }

  [[nodiscard]] virtual bool supports_streams() const noexcept = 0;
  [[nodiscard]] virtual bool supports_get_mem_info() const noexcept = 0;

  /* Free bytes, and all bytes. */
  [[nodiscard]] std::pair<std::size_t, std::size_t> get_mem_info(cuda_stream_view stream) const
  {
    return do_get_mem_info(stream);
  }

  /* The resource of hipmm behind the object, for the current device: to inspect it, or to build on it. An object of a
   * class of the program's has one that calls the object, and that gives no more memory once the object is destroyed. */
  [[nodiscard]] hipmm::resource hipmm_resource()
  {
    return do_get_backing(hipmm::compat::current_device()).resource;
  }
  [[nodiscard]] hipmm::compat::backing hipmm_backing(int device)
  {
    return do_get_backing(device);
  }

#ifdef HIPMM_COMPAT_CUDA_MR
  friend void get_property(const device_memory_resource &, ::cuda::mr::device_accessible) noexcept
  {
  }
#endif

private:
  virtual void *do_allocate(std::size_t bytes, cuda_stream_view stream) = 0;
  virtual void do_deallocate(void *ptr, std::size_t bytes, cuda_stream_view stream) = 0;
  [[nodiscard]] virtual bool do_is_equal(const device_memory_resource &other) const noexcept
  {
    return this == &other;
  }
  [[nodiscard]] virtual std::pair<std::size_t, std::size_t> do_get_mem_info(cuda_stream_view stream) const = 0;

  [[nodiscard]] virtual hipmm::compat::backing do_get_backing(int device)
  {
    return {callbacks_.on(device, this), true};
  }

  hipmm::compat::callback_table<device_memory_resource> callbacks_;
};

} // namespace rmm::mr

#endif
