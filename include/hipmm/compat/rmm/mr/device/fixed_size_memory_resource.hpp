/* SPDX-License-Identifier: MIT */
/* rmm/mr/device/fixed_size_memory_resource.hpp of RMM 23.12: blocks of one size. */
#ifndef HIPMM_COMPAT_RMM_MR_DEVICE_FIXED_SIZE_MEMORY_RESOURCE_HPP
#define HIPMM_COMPAT_RMM_MR_DEVICE_FIXED_SIZE_MEMORY_RESOURCE_HPP

#include <hipmm/compat/detail/adaptor.hpp>

#include <cstddef>

namespace rmm::mr
{

/* The block size, in bytes, is rounded up to 256; a larger allocation is out_of_memory. The blocks to preallocate are taken
 * at once, and as many again when none is free. */
template <typename Upstream> class fixed_size_memory_resource final : public hipmm::compat::suballocator<Upstream>
{
  using base = hipmm::compat::suballocator<Upstream>;

public:
  static constexpr std::size_t default_block_size = std::size_t{1} << 20;
  static constexpr std::size_t default_blocks_to_preallocate = 128;

  explicit fixed_size_memory_resource(Upstream *upstream, std::size_t block_size = default_block_size,
                                      std::size_t blocks_to_preallocate = default_blocks_to_preallocate)
      : base{upstream, make(upstream, block_size, blocks_to_preallocate)}, block_size_{align_up(
                                                                               block_size, CUDA_ALLOCATION_ALIGNMENT)}
  {
  }
  explicit fixed_size_memory_resource(Upstream &upstream, std::size_t block_size = default_block_size,
                                      std::size_t blocks_to_preallocate = default_blocks_to_preallocate)
      : fixed_size_memory_resource{std::addressof(upstream), block_size, blocks_to_preallocate}
  {
  }
  fixed_size_memory_resource(const fixed_size_memory_resource &) = delete;
  fixed_size_memory_resource &operator=(const fixed_size_memory_resource &) = delete;

  [[nodiscard]] std::size_t get_block_size() const noexcept
  {
    return block_size_;
  }

private:
  static hipmm::compat::backing make(Upstream *upstream, std::size_t block_size, std::size_t blocks)
  {
    static constexpr std::size_t most_per_chunk = 4096;
    const std::size_t per_chunk = blocks == 0 ? 1 : blocks < most_per_chunk ? blocks : most_per_chunk;
    return typename base::below{upstream}.make(
        "fixed_size", {{"block_size", block_size}, {"blocks_to_preallocate", blocks}, {"blocks_per_chunk", per_chunk}});
  }

  std::size_t block_size_;
};

} // namespace rmm::mr

#endif
