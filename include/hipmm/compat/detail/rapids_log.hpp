/* SPDX-License-Identifier: MIT */
/* hipmm/compat/detail/rapids_log.hpp: rmm/logger.hpp of RMM 26: the debug log, on the standard error output unless the
 * environment variable RMM_DEBUG_LOG_FILE names a file. hipmm's own log is written to it too, up to the level that the program
 * is compiled with (RMM_LOG_ACTIVE_LEVEL), from the first call of default_logger() on. */
#ifndef HIPMM_COMPAT_DETAIL_RAPIDS_LOG_HPP
#define HIPMM_COMPAT_DETAIL_RAPIDS_LOG_HPP

#include "../rmm26/rapids_logger/logger.hpp"
#include <hipmm/compat/detail/runtime.hpp>

#ifndef RMM_LOG_ACTIVE_LEVEL
#define RMM_LOG_ACTIVE_LEVEL RAPIDS_LOGGER_LOG_LEVEL_INFO
#endif

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace hipmm::compat
{

/* Writes a line of hipmm's log, whose levels are counted the other way. */
inline void receive_rapids_line(void *logger, ::hipmm_log_level level, const char *about, const char *message) noexcept
{
  try {
    const auto wanted = static_cast<rapids_logger::level_enum>(HIPMM_LOG_TRACE - level);
    static_cast<rapids_logger::logger *>(logger)->log(wanted, std::string{about} + (*about ? ": " : "") + message);
  } catch (...) { /* hipmm does not depend on its log */
  }
}

} // namespace hipmm::compat

namespace rmm
{
inline namespace of_26
{

inline rapids_logger::sink_ptr default_sink()
{
  const char *name = ::secure_getenv("RMM_DEBUG_LOG_FILE");
  if (name) return std::make_shared<rapids_logger::basic_file_sink_mt>(name, true);
  return std::make_shared<rapids_logger::stderr_sink_mt>();
}
inline std::string default_pattern()
{
  return "[%6t][%H:%M:%S:%f][%-6l] %v";
}

/* The logger lives for ever: hipmm may log when the program ends. */
HIPMM_COMPAT_ONE inline rapids_logger::logger &default_logger()
{
  static rapids_logger::logger &opened = []() -> rapids_logger::logger & {
    constexpr int most = RMM_LOG_ACTIVE_LEVEL;
    constexpr int level = most >= RAPIDS_LOGGER_LOG_LEVEL_OFF     ? HIPMM_LOG_OFF
                          : most >= RAPIDS_LOGGER_LOG_LEVEL_ERROR ? HIPMM_LOG_ERROR
                                                                  : HIPMM_LOG_TRACE - most;
    auto *made = new rapids_logger::logger{"RMM", std::vector<rapids_logger::sink_ptr>{default_sink()}};
    made->set_pattern(default_pattern());
    made->flush_on(rapids_logger::level_enum::warn);
    static_cast<void>(
        ::hipmm_log_set_sink(hipmm::compat::receive_rapids_line, made, static_cast<::hipmm_log_level>(level)));
    return *made;
  }();
  return opened;
}

} // namespace of_26
} // namespace rmm

#define HIPMM_COMPAT_LOG(wanted, ...)                                                         \
  do {                                                                                        \
    if constexpr (RMM_LOG_ACTIVE_LEVEL <= (wanted))                                           \
      rmm::default_logger().log(static_cast<rapids_logger::level_enum>(wanted), __VA_ARGS__); \
  } while (0)
#define RMM_LOG_TRACE(...)    HIPMM_COMPAT_LOG(RAPIDS_LOGGER_LOG_LEVEL_TRACE, __VA_ARGS__)
#define RMM_LOG_DEBUG(...)    HIPMM_COMPAT_LOG(RAPIDS_LOGGER_LOG_LEVEL_DEBUG, __VA_ARGS__)
#define RMM_LOG_INFO(...)     HIPMM_COMPAT_LOG(RAPIDS_LOGGER_LOG_LEVEL_INFO, __VA_ARGS__)
#define RMM_LOG_WARN(...)     HIPMM_COMPAT_LOG(RAPIDS_LOGGER_LOG_LEVEL_WARN, __VA_ARGS__)
#define RMM_LOG_ERROR(...)    HIPMM_COMPAT_LOG(RAPIDS_LOGGER_LOG_LEVEL_ERROR, __VA_ARGS__)
#define RMM_LOG_CRITICAL(...) HIPMM_COMPAT_LOG(RAPIDS_LOGGER_LOG_LEVEL_CRITICAL, __VA_ARGS__)

#endif
