/* SPDX-License-Identifier: MIT */
/* rmm/mr/callback_memory_resource.hpp of RMM 26: memory from functions of the program. */
#ifndef HIPMM_COMPAT_RMM_MR_CALLBACK_MEMORY_RESOURCE_HPP
#define HIPMM_COMPAT_RMM_MR_CALLBACK_MEMORY_RESOURCE_HPP

#include <hipmm/compat/detail/value.hpp>

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

namespace rmm::mr
{
inline namespace of_26
{

using allocate_callback_t = std::function<void *(std::size_t, ::cuda::stream_ref, void *)>;
using deallocate_callback_t = std::function<void(void *, std::size_t, ::cuda::stream_ref, void *)>;

namespace detail
{

struct callback_functions {
  allocate_callback_t allocate;
  deallocate_callback_t deallocate;
  void *allocate_arg, *deallocate_arg;

  static hipmm::status take(void *arg, std::size_t bytes, std::size_t, ::hipmm_stream_t stream, void **ptr_out) noexcept
  {
    const auto *self = static_cast<const callback_functions *>(arg);
    try {
      const ::cuda::stream_ref on{hipmm::compat::from_hipmm(stream)};
      *ptr_out = self->allocate(bytes, on, self->allocate_arg);
      return *ptr_out ? HIPMM_OK : HIPMM_E_OUT_OF_MEMORY;
    } catch (...) {
      hipmm::compat::pending_exception() = std::current_exception();
      return HIPMM_E_OUT_OF_MEMORY;
    }
  }
  static void give(void *arg, void *ptr, std::size_t bytes, std::size_t, ::hipmm_stream_t stream) noexcept
  {
    const auto *self = static_cast<const callback_functions *>(arg);
    try {
      self->deallocate(ptr, bytes, ::cuda::stream_ref{hipmm::compat::from_hipmm(stream)}, self->deallocate_arg);
    } catch (...) { /* a free of hipmm cannot fail */
    }
  }
};

} // namespace detail

/* The memory must be aligned to 256 bytes. What the allocating function throws reaches the caller. */
class callback_memory_resource : public hipmm::compat::value<callback_memory_resource>
{
public:
  callback_memory_resource(allocate_callback_t allocate_callback, deallocate_callback_t deallocate_callback,
                           void *allocate_callback_arg = nullptr, void *deallocate_callback_arg = nullptr)
      : value{{make({std::move(allocate_callback), std::move(deallocate_callback), allocate_callback_arg,
                     deallocate_callback_arg})}}
  {
  }
  callback_memory_resource() = delete;

private:
  static hipmm::compat::backing make(detail::callback_functions functions)
  {
    const auto describe = [](detail::callback_functions *arg) {
      return ::hipmm_allocator{sizeof(::hipmm_allocator), detail::callback_functions::take,
                               detail::callback_functions::give, arg};
    };
    return {hipmm::compat::make_resource_with(hipmm::compat::current_device(), "callback", {}, "allocator",
                                              std::make_unique<detail::callback_functions>(std::move(functions)),
                                              describe),
            true};
  }
};

} // namespace of_26
} // namespace rmm::mr

#endif
