/* SPDX-License-Identifier: MIT */
/* rmm/mr/device/aligned_resource_adaptor.hpp of RMM 23.12: addresses that are aligned to more than 256 bytes. */
#ifndef HIPMM_COMPAT_RMM_MR_DEVICE_ALIGNED_RESOURCE_ADAPTOR_HPP
#define HIPMM_COMPAT_RMM_MR_DEVICE_ALIGNED_RESOURCE_ADAPTOR_HPP

#include <hipmm/compat/detail/adaptor.hpp>

#include <cstddef>

namespace rmm::mr
{

/* The alignment is a power of two, in bytes. Allocations below the threshold are aligned to 256. */
template <typename Upstream>
class aligned_resource_adaptor final : public hipmm::compat::adaptor<aligned_resource_adaptor<Upstream>, Upstream>
{
  using base = hipmm::compat::adaptor<aligned_resource_adaptor<Upstream>, Upstream>;

public:
  static constexpr std::size_t default_alignment_threshold = 0;

  explicit aligned_resource_adaptor(Upstream *upstream, std::size_t alignment = CUDA_ALLOCATION_ALIGNMENT,
                                    std::size_t alignment_threshold = default_alignment_threshold)
      : base{upstream, make(upstream, alignment, alignment_threshold)}, alignment_{alignment}, threshold_{
                                                                                                   alignment_threshold}
  {
  }
  explicit aligned_resource_adaptor(Upstream &upstream, std::size_t alignment = CUDA_ALLOCATION_ALIGNMENT,
                                    std::size_t alignment_threshold = default_alignment_threshold)
      : aligned_resource_adaptor{std::addressof(upstream), alignment, alignment_threshold}
  {
  }
  aligned_resource_adaptor(const aligned_resource_adaptor &) = delete;
  aligned_resource_adaptor &operator=(const aligned_resource_adaptor &) = delete;

private:
  static hipmm::compat::backing make(Upstream *upstream, std::size_t alignment, std::size_t threshold)
  {
    const typename base::below below{upstream};
    RMM_EXPECTS(is_supported_alignment(alignment), "Allocation alignment is not a power of 2.");
    return below.make("aligned",
                      {{"alignment", alignment < CUDA_ALLOCATION_ALIGNMENT ? CUDA_ALLOCATION_ALIGNMENT : alignment},
                       {"alignment_threshold", threshold}});
  }
  [[nodiscard]] bool do_is_equal(const device_memory_resource &other) const noexcept override
  {
    if (this == &other) return true;
    const auto *same = dynamic_cast<const aligned_resource_adaptor *>(&other);
    return same && this->get_upstream()->is_equal(*same->get_upstream()) && alignment_ == same->alignment_ &&
           threshold_ == same->threshold_;
  }

  std::size_t alignment_, threshold_;
};

} // namespace rmm::mr

#endif
