/* SPDX-License-Identifier: MIT */
/* rmm/mr/device/pool_memory_resource.hpp of RMM 23.12: a best-fit pool, whose free blocks are joined. */
#ifndef HIPMM_COMPAT_RMM_MR_DEVICE_POOL_MEMORY_RESOURCE_HPP
#define HIPMM_COMPAT_RMM_MR_DEVICE_POOL_MEMORY_RESOURCE_HPP

#include "../../cuda_device.hpp"
#include <hipmm/compat/detail/adaptor.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>

namespace rmm::mr
{

/* Sizes are in bytes, multiples of 256. Without an initial size the pool takes half of the device's memory, or all that is
 * free if that is less. An allocation that the pool cannot serve is out_of_memory, whatever the upstream throws. */
template <typename Upstream> class pool_memory_resource final : public hipmm::compat::suballocator<Upstream>
{
  using base = hipmm::compat::suballocator<Upstream>;

public:
  explicit pool_memory_resource(Upstream *upstream, hipmm::compat::optional_size initial_pool_size = {},
                                hipmm::compat::optional_size maximum_pool_size = {})
      : base{upstream, make(upstream, initial_pool_size, maximum_pool_size)}
  {
  }
  explicit pool_memory_resource(Upstream &upstream, hipmm::compat::optional_size initial_pool_size = {},
                                hipmm::compat::optional_size maximum_pool_size = {})
      : pool_memory_resource{std::addressof(upstream), initial_pool_size, maximum_pool_size}
  {
  }
  pool_memory_resource(const pool_memory_resource &) = delete;
  pool_memory_resource &operator=(const pool_memory_resource &) = delete;

  /* Bytes from the upstream, allocated or not. */
  [[nodiscard]] std::size_t pool_size() const noexcept
  {
    return this->query("reserved_bytes");
  }

private:
  static std::size_t default_size(const Upstream &upstream)
  {
    const auto [free, total] =
        upstream.supports_get_mem_info() ? upstream.get_mem_info(cuda_stream_legacy) : available_device_memory();
    return align_up(std::min(free, total / 2), CUDA_ALLOCATION_ALIGNMENT);
  }

  static hipmm::compat::backing make(Upstream *upstream, hipmm::compat::optional_size initial,
                                     hipmm::compat::optional_size maximum)
  {
    const typename base::below below{upstream};
    RMM_EXPECTS(is_aligned(initial.value_or(0), CUDA_ALLOCATION_ALIGNMENT),
                "Error, Initial pool size required to be a multiple of 256 bytes");
    RMM_EXPECTS(is_aligned(maximum.value_or(0), CUDA_ALLOCATION_ALIGNMENT),
                "Error, Maximum pool size required to be a multiple of 256 bytes");
    const std::size_t first = initial.has_value() ? initial.value() : default_size(*upstream);
    RMM_EXPECTS(first <= maximum.value_or(std::numeric_limits<std::size_t>::max()),
                "Initial pool size exceeds the maximum pool size!");
    hipmm::graph::options options{{"initial_size", first}};
    if (maximum.has_value()) options.emplace_back("maximum_size", maximum.value());
    return below.make("pool", options, false);
  }
};

template <typename Upstream> pool_memory_resource(Upstream *) -> pool_memory_resource<Upstream>;
template <typename Upstream, typename... Sizes>
pool_memory_resource(Upstream &, Sizes...) -> pool_memory_resource<Upstream>;
template <typename Upstream, typename... Sizes>
pool_memory_resource(Upstream *, Sizes...) -> pool_memory_resource<Upstream>;

} // namespace rmm::mr

#endif
