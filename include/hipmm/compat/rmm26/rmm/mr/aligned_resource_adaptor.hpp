/* SPDX-License-Identifier: MIT */
/* rmm/mr/aligned_resource_adaptor.hpp of RMM 26: addresses that are aligned to more than 256 bytes. */
#ifndef HIPMM_COMPAT_RMM_MR_ALIGNED_RESOURCE_ADAPTOR_HPP
#define HIPMM_COMPAT_RMM_MR_ALIGNED_RESOURCE_ADAPTOR_HPP

#include <hipmm/compat/detail/value.hpp>

#include <algorithm>
#include <cstddef>

namespace rmm::mr
{
inline namespace of_26
{

/* The alignment is a power of two, in bytes. Allocations below the threshold get the alignment that they ask for. */
class aligned_resource_adaptor : public hipmm::compat::value_over<aligned_resource_adaptor>
{
public:
  static constexpr std::size_t default_alignment_threshold = 0;

  explicit aligned_resource_adaptor(hipmm::compat::any_device upstream,
                                    std::size_t alignment = CUDA_ALLOCATION_ALIGNMENT,
                                    std::size_t alignment_threshold = default_alignment_threshold)
      : value_over{upstream, make(upstream, alignment, alignment_threshold)}
  {
  }

private:
  static hipmm::compat::backing make(const hipmm::compat::any_device &upstream, std::size_t alignment,
                                     std::size_t threshold)
  {
    const hipmm::compat::below below{upstream};
    RMM_EXPECTS(is_supported_alignment(alignment), "Allocation alignment is not a power of 2.");
    return below.make(
        "aligned", {{"alignment", std::max(alignment, CUDA_ALLOCATION_ALIGNMENT)}, {"alignment_threshold", threshold}});
  }
};

} // namespace of_26
} // namespace rmm::mr

#endif
