/* SPDX-License-Identifier: MIT */
/* rmm/logger.hpp: the debug log. That of RMM 26 is in hipmm/compat/detail/rapids_log.hpp. In RMM 23.12 the environment variable
 * RMM_DEBUG_LOG_FILE names it, else it is rmm_log.txt in the working directory. hipmm's own log is written to it too, up to the
 * level that the program is compiled with (SPDLOG_ACTIVE_LEVEL), from the first call of logger() on.
 *
 * With HIPMM_COMPAT_SPDLOG the log is a logger of spdlog, as in RMM. Without it, it has the functions that programs call on
 * that logger, and needs no library; a program that names spdlog's levels finds them here if spdlog is not there. */
#ifndef HIPMM_COMPAT_RMM_LOGGER_HPP
#define HIPMM_COMPAT_RMM_LOGGER_HPP

#include <hipmm/compat/detail/generation.hpp>
#if HIPMM_COMPAT_RMM == 26
#include <hipmm/compat/detail/rapids_log.hpp>
#else

#ifdef HIPMM_COMPAT_SPDLOG
#include <fmt/format.h>
#include <fmt/ostream.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>
#else
#include <hipmm/compat/detail/log_file.hpp>
#endif

#ifndef SPDLOG_ACTIVE_LEVEL
#define SPDLOG_ACTIVE_LEVEL SPDLOG_LEVEL_INFO
#endif

#include <hipmm/compat/detail/runtime.hpp>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <ostream>
#include <string>

namespace rmm
{
namespace detail
{

inline std::string default_log_filename()
{
  const char *name = ::secure_getenv("RMM_DEBUG_LOG_FILE");
  return name ? name : "rmm_log.txt";
}

/* A size in bytes, for people. */
struct bytes {
  std::size_t value;

  friend std::ostream &operator<<(std::ostream &output, const bytes &size)
  {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    auto number = static_cast<double>(size.value);
    std::size_t unit = 0;
    for (; number > 1024; unit++) number /= 1024;
    return output << number << ' ' << units[unit];
  }
};

#ifdef HIPMM_COMPAT_SPDLOG
using logger_type = spdlog::logger;

inline logger_type *make_logger()
{
  const std::string name = default_log_filename();
  auto *made = new logger_type{"RMM", std::make_shared<spdlog::sinks::basic_file_sink_mt>(name, true)};
  made->set_pattern("[%6t][%H:%M:%S:%f][%-6l] %v");
  made->flush_on(spdlog::level::warn);
  return made;
}
#else
using logger_type = hipmm::compat::log_file;

inline logger_type *make_logger()
{
  return new logger_type{default_log_filename()};
}
#endif

/* Writes a line of hipmm's log, whose levels are counted the other way. */
inline void receive_line(void *logger, ::hipmm_log_level level, const char *about, const char *message) noexcept
{
  try {
    const auto wanted = static_cast<spdlog::level::level_enum>(HIPMM_LOG_TRACE - level);
    static_cast<logger_type *>(logger)->log(wanted, "{}{}{}", about, *about ? ": " : "", message);
  } catch (...) { /* hipmm does not depend on its log */
  }
}

} // namespace detail

/* Opens the file at the first call. The logger lives for ever: hipmm may log when the program ends. */
HIPMM_COMPAT_ONE inline detail::logger_type &logger()
{
  static detail::logger_type *const opened = [] {
    constexpr int most = SPDLOG_ACTIVE_LEVEL;
    constexpr int level = most >= SPDLOG_LEVEL_OFF     ? HIPMM_LOG_OFF
                          : most >= SPDLOG_LEVEL_ERROR ? HIPMM_LOG_ERROR
                                                       : HIPMM_LOG_TRACE - most;
    detail::logger_type *made = detail::make_logger();
    if (most <= SPDLOG_LEVEL_INFO) made->info("----- RMM LOG BEGIN -----");
    made->flush();
    static_cast<void>(::hipmm_log_set_sink(detail::receive_line, made, static_cast<::hipmm_log_level>(level)));
    return made;
  }();
  return *opened;
}

/* Its name in later releases. */
inline detail::logger_type &default_logger()
{
  return logger();
}

} // namespace rmm

#ifdef HIPMM_COMPAT_SPDLOG
template <> struct fmt::formatter<rmm::detail::bytes> : fmt::ostream_formatter {
};
#endif

#define HIPMM_COMPAT_LOG(wanted, ...)                                                 \
  do {                                                                                \
    if constexpr (SPDLOG_ACTIVE_LEVEL <= (wanted))                                    \
      rmm::logger().log(static_cast<spdlog::level::level_enum>(wanted), __VA_ARGS__); \
  } while (0)
#define RMM_LOG_TRACE(...)    HIPMM_COMPAT_LOG(SPDLOG_LEVEL_TRACE, __VA_ARGS__)
#define RMM_LOG_DEBUG(...)    HIPMM_COMPAT_LOG(SPDLOG_LEVEL_DEBUG, __VA_ARGS__)
#define RMM_LOG_INFO(...)     HIPMM_COMPAT_LOG(SPDLOG_LEVEL_INFO, __VA_ARGS__)
#define RMM_LOG_WARN(...)     HIPMM_COMPAT_LOG(SPDLOG_LEVEL_WARN, __VA_ARGS__)
#define RMM_LOG_ERROR(...)    HIPMM_COMPAT_LOG(SPDLOG_LEVEL_ERROR, __VA_ARGS__)
#define RMM_LOG_CRITICAL(...) HIPMM_COMPAT_LOG(SPDLOG_LEVEL_CRITICAL, __VA_ARGS__)

#endif /* HIPMM_COMPAT_RMM */
#endif
