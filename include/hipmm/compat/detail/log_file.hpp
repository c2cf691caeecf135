/* SPDX-License-Identifier: MIT */
/* hipmm/compat/detail/log_file.hpp: the debug log of a program that does without spdlog. */
#ifndef HIPMM_COMPAT_DETAIL_LOG_FILE_HPP
#define HIPMM_COMPAT_DETAIL_LOG_FILE_HPP

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <mutex>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <sys/syscall.h>
#include <unistd.h>

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

namespace hipmm::compat
{

enum : int { log_trace, log_debug, log_info, log_warn, log_error, log_critical };

/* A file of lines, "[thread][time][level] text". Levels are spdlog's, or those of another enumeration with the same values,
 * from trace, 0, to off, 6. */
class log_file
{
public:
  explicit log_file(const std::string &name) : file_{std::fopen(name.c_str(), "w")}
  {
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
    log(log_trace, format, arguments...);
  }
  template <typename... Arguments> void debug(std::string_view format, const Arguments &...arguments)
  {
    log(log_debug, format, arguments...);
  }
  template <typename... Arguments> void info(std::string_view format, const Arguments &...arguments)
  {
    log(log_info, format, arguments...);
  }
  template <typename... Arguments> void warn(std::string_view format, const Arguments &...arguments)
  {
    log(log_warn, format, arguments...);
  }
  template <typename... Arguments> void error(std::string_view format, const Arguments &...arguments)
  {
    log(log_error, format, arguments...);
  }
  template <typename... Arguments> void critical(std::string_view format, const Arguments &...arguments)
  {
    log(log_critical, format, arguments...);
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
    if (!file_ || level < 0 || level > log_critical) return;
    std::fprintf(file_, "[%6ld][%02d:%02d:%02d:%06ld][%-6s] %s\n", ::syscall(SYS_gettid), local.tm_hour, local.tm_min,
                 local.tm_sec, now.tv_nsec / 1000, names[level], text.c_str());
    if (level >= flush_level_) std::fflush(file_);
  }

  std::FILE *file_;
  std::mutex lock_;
  std::atomic<int> level_{log_info}, flush_level_{log_warn};
};

} // namespace hipmm::compat

#endif
