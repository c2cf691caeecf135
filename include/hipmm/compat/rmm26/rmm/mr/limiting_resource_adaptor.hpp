/* SPDX-License-Identifier: MIT */
/* rmm/mr/limiting_resource_adaptor.hpp of RMM 26: a limit on the memory that is allocated at once. */
#ifndef HIPMM_COMPAT_RMM_MR_LIMITING_RESOURCE_ADAPTOR_HPP
#define HIPMM_COMPAT_RMM_MR_LIMITING_RESOURCE_ADAPTOR_HPP

#include <hipmm/compat/detail/value.hpp>

#include <cstddef>

namespace rmm::mr
{
inline namespace of_26
{

/* The limit is in bytes. Sizes count as rounded up to 256, the only alignment. An allocation beyond the limit throws
 * out_of_memory. */
class limiting_resource_adaptor : public hipmm::compat::value_over<limiting_resource_adaptor>
{
public:
  limiting_resource_adaptor(hipmm::compat::any_device upstream, std::size_t allocation_limit,
                            std::size_t alignment = CUDA_ALLOCATION_ALIGNMENT)
      : value_over{upstream, make(upstream, allocation_limit, alignment)}, limit_{allocation_limit}
  {
  }

  [[nodiscard]] std::size_t get_allocated_bytes() const
  {
    return query("allocated_bytes");
  }
  [[nodiscard]] std::size_t get_allocation_limit() const
  {
    return limit_;
  }

private:
  static hipmm::compat::backing make(const hipmm::compat::any_device &upstream, std::size_t limit,
                                     std::size_t alignment)
  {
    RMM_EXPECTS(alignment == CUDA_ALLOCATION_ALIGNMENT, "The alignment of limiting_resource_adaptor is 256.");
    return hipmm::compat::below{upstream}.make("limiting", {{"limit", limit}});
  }

  std::size_t limit_;
};

} // namespace of_26
} // namespace rmm::mr

#endif
