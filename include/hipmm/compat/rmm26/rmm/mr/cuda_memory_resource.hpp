/* SPDX-License-Identifier: MIT */
/* rmm/mr/cuda_memory_resource.hpp of RMM 26: device memory from the runtime, on the current device. */
#ifndef HIPMM_COMPAT_RMM_MR_CUDA_MEMORY_RESOURCE_HPP
#define HIPMM_COMPAT_RMM_MR_CUDA_MEMORY_RESOURCE_HPP

#include <hipmm/compat/detail/value.hpp>

namespace rmm::mr
{
inline namespace of_26
{

class cuda_memory_resource;

namespace detail
{

cuda_memory_resource &initial_resource();

} // namespace detail

/* The initial current resource is one of these too. Where hipmm has a graph, its memory is that of the graph's resource. */
class cuda_memory_resource final
    : public hipmm::compat::source_value<cuda_memory_resource, hipmm::compat::shared_source::device>
{
public:
  cuda_memory_resource() = default;

private:
  friend cuda_memory_resource &detail::initial_resource();
  explicit cuda_memory_resource(bool is_initial) noexcept : source_value{is_initial}
  {
  }
};

namespace detail
{

HIPMM_COMPAT_ONE inline cuda_memory_resource &initial_resource()
{
  /* Reachable for ever: programs may free memory when they end. */
  static cuda_memory_resource &initial = *new cuda_memory_resource{true};
  return initial;
}

} // namespace detail

} // namespace of_26
} // namespace rmm::mr

#endif
