/* SPDX-License-Identifier: MIT */
/* hipmm/compat/detail/log_rows.hpp: what logging_resource_adaptor writes to a stream of the program, or to sinks of
 * spdlog, row by row. Files are written by hipmm's type `logging`, in the same form. */
#ifndef HIPMM_COMPAT_DETAIL_LOG_ROWS_HPP
#define HIPMM_COMPAT_DETAIL_LOG_ROWS_HPP

#include <hipmm/hipmm.h>

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <functional>
#include <mutex>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace hipmm::compat
{

inline constexpr const char *log_header = "Thread,Time,Action,Pointer,Size,Stream";

/* The function of a `hooks` resource, which must not call hipmm. */
class log_rows
{
public:
  static constexpr std::uint64_t kinds =
      1U << HIPMM_EVENT_ALLOCATED | 1U << HIPMM_EVENT_FREED | 1U << HIPMM_EVENT_OUT_OF_MEMORY;

  explicit log_rows(std::function<void(const char *row)> output) : output_{std::move(output)}
  {
    output_(log_header);
  }

  static void write(void *arg, const ::hipmm_event *event) noexcept
  {
    try {
      static_cast<log_rows *>(arg)->write(*event);
    } catch (...) { /* the allocation does not depend on the log */
    }
  }

private:
  void write(const ::hipmm_event &event)
  {
    const char *action = event.kind == HIPMM_EVENT_ALLOCATED ? "allocate"
                         : event.kind == HIPMM_EVENT_FREED   ? "free"
                                                             : "allocate failure";
    char row[192];
    std::timespec now{};
    std::tm local{};
    std::timespec_get(&now, TIME_UTC);
    ::localtime_r(&now.tv_sec, &local);
    std::snprintf(row, sizeof row, "%ld,%02d:%02d:%02d.%06ld,%s,0x%jx,%zu,0x%jx", ::syscall(SYS_gettid), local.tm_hour,
                  local.tm_min, local.tm_sec, now.tv_nsec / 1000, action, address(event.ptr), event.bytes,
                  address(event.stream));
    const std::lock_guard<std::mutex> guard{lock_};
    output_(row);
  }

  static std::uintmax_t address(const void *ptr) noexcept
  {
    return reinterpret_cast<std::uintptr_t>(ptr);
  }

  std::mutex lock_;
  std::function<void(const char *row)> output_;
};

} // namespace hipmm::compat

#endif
