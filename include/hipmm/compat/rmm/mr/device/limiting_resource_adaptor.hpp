/* SPDX-License-Identifier: MIT */
/* rmm/mr/device/limiting_resource_adaptor.hpp of RMM 23.12: a limit on the memory that is allocated at once. */
#ifndef HIPMM_COMPAT_RMM_MR_DEVICE_LIMITING_RESOURCE_ADAPTOR_HPP
#define HIPMM_COMPAT_RMM_MR_DEVICE_LIMITING_RESOURCE_ADAPTOR_HPP

#include <hipmm/compat/detail/adaptor.hpp>

#include <cstddef>
#include <utility>

namespace rmm::mr
{

/* The limit is in bytes; sizes count as rounded up to 256, the only alignment. Beyond the limit: out_of_memory. */
template <typename Upstream>
class limiting_resource_adaptor final : public hipmm::compat::adaptor<limiting_resource_adaptor<Upstream>, Upstream>
{
  using base = hipmm::compat::adaptor<limiting_resource_adaptor<Upstream>, Upstream>;

public:
  limiting_resource_adaptor(Upstream *upstream, std::size_t allocation_limit,
                            std::size_t alignment = CUDA_ALLOCATION_ALIGNMENT)
      : base{upstream, make(upstream, allocation_limit, alignment)}, limit_{allocation_limit}
  {
  }
  limiting_resource_adaptor(Upstream &upstream, std::size_t allocation_limit,
                            std::size_t alignment = CUDA_ALLOCATION_ALIGNMENT)
      : limiting_resource_adaptor{std::addressof(upstream), allocation_limit, alignment}
  {
  }

  std::size_t get_allocated_bytes() const
  {
    return this->query("allocated_bytes");
  }
  [[nodiscard]] std::size_t get_allocation_limit() const
  {
    return limit_;
  }

private:
  static hipmm::compat::backing make(Upstream *upstream, std::size_t limit, std::size_t alignment)
  {
    RMM_EXPECTS(alignment == CUDA_ALLOCATION_ALIGNMENT, "The alignment of limiting_resource_adaptor is 256.");
    return typename base::below{upstream}.make("limiting", {{"limit", limit}});
  }
  [[nodiscard]] std::pair<std::size_t, std::size_t> do_get_mem_info(cuda_stream_view) const override
  {
    return {limit_ - get_allocated_bytes(), limit_};
  }

  std::size_t limit_;
};

template <typename Upstream>
limiting_resource_adaptor<Upstream> make_limiting_adaptor(Upstream *upstream, std::size_t allocation_limit)
{
  return limiting_resource_adaptor<Upstream>{upstream, allocation_limit};
}

} // namespace rmm::mr

#endif
