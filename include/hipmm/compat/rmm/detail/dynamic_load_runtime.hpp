/* SPDX-License-Identifier: MIT */
/* rmm/detail/dynamic_load_runtime.hpp of RMM 23.12: whether the runtime has pools of its own. */
#ifndef HIPMM_COMPAT_RMM_DETAIL_DYNAMIC_LOAD_RUNTIME_HPP
#define HIPMM_COMPAT_RMM_DETAIL_DYNAMIC_LOAD_RUNTIME_HPP

#include <hipmm/compat/detail/core.hpp>

/* Programs ask the preprocessor for it. */
#define RMM_CUDA_MALLOC_ASYNC_SUPPORT

namespace rmm::detail
{

struct async_alloc {
  /* On the current device of the first call: whether cuda_async_memory_resource can be made. */
  [[nodiscard]] static bool is_supported()
  {
    static const bool has_pools = [] {
      ::hipmm_resource *made = nullptr;
      const int device = hipmm::compat::current_device();
      const ::hipmm_status status = ::hipmm_resource_create(device, "async", nullptr, nullptr, 0, &made);
      ::hipmm_resource_release(made);
      return status == HIPMM_OK;
    }();
    return has_pools;
  }
};

} // namespace rmm::detail

#endif
