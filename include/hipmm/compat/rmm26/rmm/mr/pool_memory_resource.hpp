/* SPDX-License-Identifier: MIT */
/* rmm/mr/pool_memory_resource.hpp of RMM 26: a best-fit pool, whose free blocks are joined. */
#ifndef HIPMM_COMPAT_RMM_MR_POOL_MEMORY_RESOURCE_HPP
#define HIPMM_COMPAT_RMM_MR_POOL_MEMORY_RESOURCE_HPP

#include <hipmm/compat/detail/value.hpp>

#include <cstddef>
#include <optional>

namespace rmm::mr
{
inline namespace of_26
{

/* Sizes are in bytes, multiples of 256. An allocation that the pool cannot serve throws out_of_memory, whatever the upstream
 * throws. */
class pool_memory_resource : public hipmm::compat::value_over<pool_memory_resource>
{
public:
  explicit pool_memory_resource(hipmm::compat::any_device upstream, std::size_t initial_pool_size,
                                std::optional<std::size_t> maximum_pool_size = std::nullopt)
      : value_over{upstream, make(upstream, initial_pool_size, maximum_pool_size)}
  {
  }

  /* Bytes from the upstream, allocated or not. */
  [[nodiscard]] std::size_t pool_size() const noexcept
  {
    return query("reserved_bytes");
  }

private:
  static hipmm::compat::backing make(const hipmm::compat::any_device &upstream, std::size_t initial,
                                     std::optional<std::size_t> maximum)
  {
    const hipmm::compat::below below{upstream};
    RMM_EXPECTS(is_aligned(initial, CUDA_ALLOCATION_ALIGNMENT),
                "Error, Initial pool size required to be a multiple of 256 bytes");
    RMM_EXPECTS(is_aligned(maximum.value_or(0), CUDA_ALLOCATION_ALIGNMENT),
                "Error, Maximum pool size required to be a multiple of 256 bytes");
    RMM_EXPECTS(initial <= maximum.value_or(initial), "Initial pool size exceeds the maximum pool size!");
    hipmm::graph::options options{{"initial_size", initial}};
    if (maximum.has_value()) options.emplace_back("maximum_size", maximum.value());
    return below.make("pool", options, false);
  }
};

} // namespace of_26
} // namespace rmm::mr

#endif
