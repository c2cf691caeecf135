/* SPDX-License-Identifier: MIT */
/* rmm/logger.hpp of RMM 23.12: the debug log, which the environment variable RMM_DEBUG_LOG_FILE names, else rmm_log.txt in the
 * working directory. It needs no spdlog; a program that names spdlog's levels finds them here if spdlog is not there. */
#ifndef HIPMM_COMPAT_RMM_LOGGER_HPP
#define HIPMM_COMPAT_RMM_LOGGER_HPP

#if __has_include(<spdlog/common.h>)
#include <spdlog/common.h>
#else
#define SPDLOG_LEVEL_TRACE    0
#define SPDLOG_LEVEL_DEBUG    1
#define SPDLOG_LEVEL_INFO     2
#define SPDLOG_LEVEL_WARN     3
#define SPDLOG_LEVEL_ERROR    4
#define SPDLOG_LEVEL_CRITICAL 5
#define SPDLOG_LEVEL_OFF      6
namespace spdlog::level
{
enum level_enum : int { trace, debug, info, warn, err, critical, off, n_levels };
}
#endif

#ifndef SPDLOG_ACTIVE_LEVEL
#define SPDLOG_ACTIVE_LEVEL SPDLOG_LEVEL_INFO
#endif

#include <hipmm/hipmm.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <sys/syscall.h>
#include <unistd.h>

namespace rmm
{
namespace detail
{

[[nodiscard]] inline std::string default_log_filename()
{
  const char *name = std::getenv("RMM_DEBUG_LOG_FILE");
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

/* A file of lines, "[thread][time][level] text". Levels are spdlog's, or those of another enumeration with the same values.
 * hipmm's own log is written to it too, up to the level that the program is compiled with. */
class log_file
{
public:
  log_file() : file_{std::fopen(default_log_filename().c_str(), "w")}
  {
    static_cast<void>(::hipmm_log_set_sink(receive, this, hipmm_level(SPDLOG_ACTIVE_LEVEL)));
    if (SPDLOG_ACTIVE_LEVEL > SPDLOG_LEVEL_INFO) return;
    info("----- RMM LOG BEGIN -----");
    flush();
  }
  log_file(const log_file &) = delete;
  log_file &operator=(const log_file &) = delete;

  template <typename Level> void set_level(Level level) noexcept
  {
    level_ = static_cast<int>(level);
  }
  [[nodiscard]] spdlog::level::level_enum level() const noexcept
  {
    return static_cast<spdlog::level::level_enum>(level_.load());
  }
  template <typename Level> [[nodiscard]] bool should_log(Level level) const noexcept
  {
    return static_cast<int>(level) >= level_;
  }
  template <typename Level> void flush_on(Level level) noexcept
  {
    flush_level_ = static_cast<int>(level);
  }
  void flush()
  {
    const std::lock_guard<std::mutex> guard{lock_};
    if (file_) std::fflush(file_);
  }

  /* Each {} in the format stands for an argument in turn; what is between the braces has no effect. */
  template <typename Level, typename... Arguments>
  void log(Level level, std::string_view format, const Arguments &...arguments)
  {
    if (!should_log(level)) return;
    std::ostringstream text;
    (add(text, format, arguments), ...);
    text << format;
    write(static_cast<int>(level), text.str());
  }
  template <typename... Arguments> void trace(std::string_view format, const Arguments &...arguments)
  {
    log(SPDLOG_LEVEL_TRACE, format, arguments...);
  }
  template <typename... Arguments> void debug(std::string_view format, const Arguments &...arguments)
  {
    log(SPDLOG_LEVEL_DEBUG, format, arguments...);
  }
  template <typename... Arguments> void info(std::string_view format, const Arguments &...arguments)
  {
    log(SPDLOG_LEVEL_INFO, format, arguments...);
  }
  template <typename... Arguments> void warn(std::string_view format, const Arguments &...arguments)
  {
    log(SPDLOG_LEVEL_WARN, format, arguments...);
  }
  template <typename... Arguments> void error(std::string_view format, const Arguments &...arguments)
  {
    log(SPDLOG_LEVEL_ERROR, format, arguments...);
  }
  template <typename... Arguments> void critical(std::string_view format, const Arguments &...arguments)
  {
    log(SPDLOG_LEVEL_CRITICAL, format, arguments...);
  }

private:
  /* Writes the format up to its next pair of braces, then the argument. */
  template <typename Argument> static void add(std::ostream &text, std::string_view &format, const Argument &argument)
  {
    const std::size_t opened = format.find('{'), closed = format.find('}', opened);
    if (closed == std::string_view::npos) return;
    text << format.substr(0, opened) << argument;
    format.remove_prefix(closed + 1);
  }

  void write(int level, const std::string &text)
  {
    static const char *const names[] = {"trace", "debug", "info", "warning", "error", "critical"};
    std::timespec now{};
    std::tm local{};
    std::timespec_get(&now, TIME_UTC);
    ::localtime_r(&now.tv_sec, &local);
    const std::lock_guard<std::mutex> guard{lock_};
    if (!file_ || level < 0 || level > SPDLOG_LEVEL_CRITICAL) return;
    std::fprintf(file_, "[%6ld][%02d:%02d:%02d:%06ld][%-6s] %s\n", ::syscall(SYS_gettid), local.tm_hour, local.tm_min,
                 local.tm_sec, now.tv_nsec / 1000, names[level], text.c_str());
    if (level >= flush_level_) std::fflush(file_);
  }

  /* hipmm counts its levels the other way. */
  static constexpr ::hipmm_log_level hipmm_level(int level) noexcept
  {
    return level >= SPDLOG_LEVEL_OFF        ? HIPMM_LOG_OFF
           : level >= SPDLOG_LEVEL_ERROR    ? HIPMM_LOG_ERROR
                                            : static_cast<::hipmm_log_level>(HIPMM_LOG_TRACE - level);
  }
  static void receive(void *self, ::hipmm_log_level level, const char *about, const char *message) noexcept
  {
    try {
      static_cast<log_file *>(self)->log(HIPMM_LOG_TRACE - level, *about ? "{}: {}" : "{}{}", about, message);
    } catch (...) { /* hipmm does not depend on its log */
    }
  }

  std::FILE *file_;
  std::mutex lock_;
  std::atomic<int> level_{SPDLOG_LEVEL_INFO}, flush_level_{SPDLOG_LEVEL_WARN};
};

} // namespace detail

/* Opens the file at the first call. */
[[nodiscard]] inline detail::log_file &logger()
{
  static auto *const file = new detail::log_file{}; /* reachable for ever: hipmm may log when the program ends */
  return *file;
}

/* Its name in later releases. */
[[nodiscard]] inline detail::log_file &default_logger()
{
  return logger();
}

} // namespace rmm

#define HIPMM_COMPAT_LOG(active, ...)                                                        \
  do {                                                                                       \
    if constexpr (SPDLOG_ACTIVE_LEVEL <= (active)) rmm::logger().log((active), __VA_ARGS__); \
  } while (0)
#define RMM_LOG_TRACE(...)    HIPMM_COMPAT_LOG(SPDLOG_LEVEL_TRACE, __VA_ARGS__)
#define RMM_LOG_DEBUG(...)    HIPMM_COMPAT_LOG(SPDLOG_LEVEL_DEBUG, __VA_ARGS__)
#define RMM_LOG_INFO(...)     HIPMM_COMPAT_LOG(SPDLOG_LEVEL_INFO, __VA_ARGS__)
#define RMM_LOG_WARN(...)     HIPMM_COMPAT_LOG(SPDLOG_LEVEL_WARN, __VA_ARGS__)
#define RMM_LOG_ERROR(...)    HIPMM_COMPAT_LOG(SPDLOG_LEVEL_ERROR, __VA_ARGS__)
#define RMM_LOG_CRITICAL(...) HIPMM_COMPAT_LOG(SPDLOG_LEVEL_CRITICAL, __VA_ARGS__)

#endif
