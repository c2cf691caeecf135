/* SPDX-License-Identifier: MIT */
/* rmm/mr/fixed_size_memory_resource.hpp of RMM 26: blocks of one size. */
#ifndef HIPMM_COMPAT_RMM_MR_FIXED_SIZE_MEMORY_RESOURCE_HPP
#define HIPMM_COMPAT_RMM_MR_FIXED_SIZE_MEMORY_RESOURCE_HPP

#include <hipmm/compat/detail/value.hpp>

#include <algorithm>
#include <cstddef>

namespace rmm::mr
{
inline namespace of_26
{

/* The block size, in bytes, is rounded up to 256; a larger allocation throws out_of_memory. The blocks to preallocate are taken
 * at once, and as many again when none is free. */
class fixed_size_memory_resource : public hipmm::compat::value_over<fixed_size_memory_resource>
{
public:
  static constexpr std::size_t default_block_size = std::size_t{1} << 20;
  static constexpr std::size_t default_blocks_to_preallocate = 128;

  explicit fixed_size_memory_resource(hipmm::compat::any_device upstream, std::size_t block_size = default_block_size,
                                      std::size_t blocks_to_preallocate = default_blocks_to_preallocate)
      : value_over{upstream, make(upstream, block_size, blocks_to_preallocate)},
        block_size_{align_up(block_size, CUDA_ALLOCATION_ALIGNMENT)}
  {
  }

  [[nodiscard]] std::size_t get_block_size() const noexcept
  {
    return block_size_;
  }

private:
  static hipmm::compat::backing make(const hipmm::compat::any_device &upstream, std::size_t block_size,
                                     std::size_t blocks)
  {
    const std::size_t per_chunk = std::clamp(blocks, std::size_t{1}, std::size_t{4096});
    return hipmm::compat::below{upstream}.make(
        "fixed_size", {{"block_size", block_size}, {"blocks_to_preallocate", blocks}, {"blocks_per_chunk", per_chunk}});
  }

  std::size_t block_size_;
};

} // namespace of_26
} // namespace rmm::mr

#endif
