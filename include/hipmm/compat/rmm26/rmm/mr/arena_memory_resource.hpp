/* SPDX-License-Identifier: MIT */
/* rmm/mr/arena_memory_resource.hpp of RMM 26: an arena for each thread and stream, in memory that all share. */
#ifndef HIPMM_COMPAT_RMM_MR_ARENA_MEMORY_RESOURCE_HPP
#define HIPMM_COMPAT_RMM_MR_ARENA_MEMORY_RESOURCE_HPP

#include <hipmm/compat/detail/value.hpp>

#include <cstddef>
#include <optional>

namespace rmm::mr
{
inline namespace of_26
{

/* The size is fixed, in bytes, and at least 1 MiB. Without a size it is half of the free memory. On a failure the state of the
 * arenas can be dumped to rmm_arena_memory_dump.log. */
class arena_memory_resource : public hipmm::compat::value_over<arena_memory_resource>
{
public:
  explicit arena_memory_resource(hipmm::compat::any_device upstream,
                                 std::optional<std::size_t> arena_size = std::nullopt, bool dump_log_on_failure = false)
      : value_over{upstream, make(upstream, arena_size, dump_log_on_failure)}
  {
  }

private:
  static hipmm::compat::backing make(const hipmm::compat::any_device &upstream, std::optional<std::size_t> arena_size,
                                     bool dumps)
  {
    const hipmm::compat::below below{upstream};
    const std::size_t wanted = arena_size.has_value() ? *arena_size : available_device_memory().first / 2;
    const std::size_t size = align_down(wanted, CUDA_ALLOCATION_ALIGNMENT);
    RMM_EXPECTS(size >= std::size_t{1} << 20, "Arena size smaller than minimum superblock size.");
    return below.make("arena", {{"arena_size", size},
                                {"maximum_size", size},
                                {"dump_log_on_failure", dumps},
                                {"dump_log_file", "rmm_arena_memory_dump.log"}});
  }
};

} // namespace of_26
} // namespace rmm::mr

#endif
