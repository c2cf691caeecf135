/* SPDX-License-Identifier: MIT */
/* rmm/mr/sam_headroom_memory_resource.hpp of RMM 26: pageable memory of the host that prefers the device. */
#ifndef HIPMM_COMPAT_RMM_MR_SAM_HEADROOM_MEMORY_RESOURCE_HPP
#define HIPMM_COMPAT_RMM_MR_SAM_HEADROOM_MEMORY_RESOURCE_HPP

#include <hipmm/compat/detail/value.hpp>

#include <cstddef>

namespace rmm::mr
{
inline namespace of_26
{

/* So many bytes of the device's memory stay free for others. */
class sam_headroom_memory_resource final : public hipmm::compat::value<sam_headroom_memory_resource>
{
public:
  explicit sam_headroom_memory_resource(std::size_t headroom)
      : value{{{hipmm::compat::make_resource(hipmm::compat::current_device(), "sam_headroom", {{"headroom", headroom}}),
                true}}},
        headroom_{headroom}
  {
  }

  /* For operator==. */
  [[nodiscard]] bool equals(const sam_headroom_memory_resource &other) const noexcept
  {
    return headroom_ == other.headroom_;
  }

  friend constexpr void get_property(const sam_headroom_memory_resource &, ::cuda::mr::host_accessible) noexcept
  {
  }

private:
  std::size_t headroom_;
};

} // namespace of_26
} // namespace rmm::mr

#endif
