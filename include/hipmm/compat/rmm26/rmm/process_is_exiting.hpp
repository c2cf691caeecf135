/* SPDX-License-Identifier: MIT */
/* rmm/process_is_exiting.hpp of RMM 26: whether the process has begun to end, for destructors that would call the runtime.
 * hipmm's own objects need no such question: they may be destroyed until the process is gone. */
#ifndef HIPMM_COMPAT_RMM_PROCESS_IS_EXITING_HPP
#define HIPMM_COMPAT_RMM_PROCESS_IS_EXITING_HPP

#include <hipmm/compat/detail/runtime.hpp>

#include <atomic>
#include <cstdlib>

namespace rmm
{
namespace detail
{

HIPMM_COMPAT_ONE inline std::atomic<bool> &is_exiting() noexcept
{
  static std::atomic<bool> flag{false};
  return flag;
}

/* The hook runs before the destructors of what was made before it, so each of the first uses of RMM adds one. */
HIPMM_COMPAT_ONE inline void register_process_exit_hook() noexcept
{
  static const bool is_registered = [] {
    const auto hook = [] { is_exiting().store(true, std::memory_order_release); };
    static_cast<void>(is_exiting());
    return std::atexit(hook) == 0 && std::at_quick_exit(hook) == 0;
  }();
  static_cast<void>(is_registered);
}

} // namespace detail

/* True from the beginning of exit() on, in destructors of objects that were made before the first use of the current
 * resource, or of this function. */
[[nodiscard]] inline bool process_is_exiting() noexcept
{
  detail::register_process_exit_hook();
  return detail::is_exiting().load(std::memory_order_acquire);
}

} // namespace rmm

#endif
