/* SPDX-License-Identifier: MIT */
/* rmm/mr/device/arena_memory_resource.hpp of RMM 23.12: an arena for each thread and stream, in memory that all share. */
#ifndef HIPMM_COMPAT_RMM_MR_DEVICE_ARENA_MEMORY_RESOURCE_HPP
#define HIPMM_COMPAT_RMM_MR_DEVICE_ARENA_MEMORY_RESOURCE_HPP

#include "../../cuda_device.hpp"
#include <hipmm/compat/detail/adaptor.hpp>

#include <cstddef>

namespace rmm::mr
{

/* The size is fixed, in bytes, at least 1 MiB: half of what is free, unless it is given. On a failure the state of the arenas
 * can be dumped to rmm_arena_memory_dump.log. */
template <typename Upstream> class arena_memory_resource final : public hipmm::compat::suballocator<Upstream>
{
  using base = hipmm::compat::suballocator<Upstream>;

public:
  explicit arena_memory_resource(Upstream *upstream, hipmm::compat::optional_size arena_size = {},
                                 bool dump_log_on_failure = false)
      : base{upstream, make(upstream, arena_size, dump_log_on_failure)}
  {
  }
  explicit arena_memory_resource(Upstream &upstream, hipmm::compat::optional_size arena_size = {},
                                 bool dump_log_on_failure = false)
      : arena_memory_resource{std::addressof(upstream), arena_size, dump_log_on_failure}
  {
  }
  arena_memory_resource(const arena_memory_resource &) = delete;
  arena_memory_resource &operator=(const arena_memory_resource &) = delete;

private:
  static hipmm::compat::backing make(Upstream *upstream, hipmm::compat::optional_size arena_size, bool dumps)
  {
    const typename base::below below{upstream};
    const std::size_t wanted = arena_size.has_value() ? arena_size.value() : available_device_memory().first / 2;
    const std::size_t size = align_down(wanted, CUDA_ALLOCATION_ALIGNMENT);
    RMM_EXPECTS(size >= std::size_t{1} << 20, "Arena size smaller than minimum superblock size.");
    return below.make("arena", {{"arena_size", size},
                                {"maximum_size", size},
                                {"dump_log_on_failure", dumps},
                                {"dump_log_file", "rmm_arena_memory_dump.log"}});
  }
};

template <typename Upstream, typename... Options>
arena_memory_resource(Upstream &, Options...) -> arena_memory_resource<Upstream>;
template <typename Upstream, typename... Options>
arena_memory_resource(Upstream *, Options...) -> arena_memory_resource<Upstream>;

} // namespace rmm::mr

#endif
