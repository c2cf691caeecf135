/* SPDX-License-Identifier: MIT */
/* rapids_logger/logger.hpp: the logger in RMM 26's interface, with the functions that programs call, and without the library of
 * that name. The linker sees hipmm's own names, so a process may have the library too. */
#ifndef HIPMM_COMPAT_RAPIDS_LOGGER_LOGGER_HPP
#define HIPMM_COMPAT_RAPIDS_LOGGER_LOGGER_HPP

#include "log_levels.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <ostream>
#include <stdexcept>
#include <string>
#include <sys/syscall.h>
#include <type_traits>
#include <unistd.h>
#include <utility>
#include <vector>

namespace rapids_logger
{
inline namespace of_hipmm
{

enum class level_enum : std::int32_t {
  trace = RAPIDS_LOGGER_LOG_LEVEL_TRACE,
  debug = RAPIDS_LOGGER_LOG_LEVEL_DEBUG,
  info = RAPIDS_LOGGER_LOG_LEVEL_INFO,
  warn = RAPIDS_LOGGER_LOG_LEVEL_WARN,
  error = RAPIDS_LOGGER_LOG_LEVEL_ERROR,
  critical = RAPIDS_LOGGER_LOG_LEVEL_CRITICAL,
  off = RAPIDS_LOGGER_LOG_LEVEL_OFF,
  n_levels
};

/* The place where lines go. Loggers share sinks; a sink writes one line at a time. */
class sink
{
public:
  sink(const sink &) = delete;
  sink &operator=(const sink &) = delete;
  virtual ~sink() = default;

  void write(level_enum level, const std::string &text)
  {
    const std::lock_guard<std::mutex> guard{lock_};
    do_write(level, text);
  }
  void flush()
  {
    const std::lock_guard<std::mutex> guard{lock_};
    do_flush();
  }

protected:
  sink() = default;

private:
  virtual void do_write(level_enum level, const std::string &text) = 0;
  virtual void do_flush() = 0;

  std::mutex lock_;
};
using sink_ptr = std::shared_ptr<sink>;

class ostream_sink_mt : public sink
{
public:
  /* The stream must outlive the sink. */
  explicit ostream_sink_mt(std::ostream &stream, bool force_flush = false) : stream_{stream}, flushes_{force_flush}
  {
  }

private:
  void do_write(level_enum, const std::string &text) override
  {
    stream_ << text << '\n';
    if (flushes_) stream_.flush();
  }
  void do_flush() override
  {
    stream_.flush();
  }

  std::ostream &stream_;
  bool flushes_;
};

class basic_file_sink_mt : public sink
{
public:
  explicit basic_file_sink_mt(const std::string &filename, bool truncate = false)
      : file_{filename, truncate ? std::ios::out | std::ios::trunc : std::ios::out | std::ios::app}
  {
    if (!file_) throw std::runtime_error{"Failed opening file " + filename + " for writing"};
  }

private:
  void do_write(level_enum, const std::string &text) override
  {
    file_ << text << '\n';
  }
  void do_flush() override
  {
    file_.flush();
  }

  std::ofstream file_;
};

class stderr_sink_mt : public sink
{
  void do_write(level_enum, const std::string &text) override
  {
    std::fprintf(stderr, "%s\n", text.c_str());
  }
  void do_flush() override
  {
    std::fflush(stderr);
  }
};

class null_sink_mt : public sink
{
  void do_write(level_enum, const std::string &) override
  {
  }
  void do_flush() override
  {
  }
};

using log_callback_t = void (*)(int level, const char *message);
using flush_callback_t = void (*)();

class callback_sink_mt : public sink
{
public:
  explicit callback_sink_mt(const log_callback_t &callback, const flush_callback_t &flush = nullptr)
      : callback_{callback}, flush_{flush}
  {
  }

private:
  void do_write(level_enum level, const std::string &text) override
  {
    callback_(static_cast<int>(level), text.c_str());
  }
  void do_flush() override
  {
    if (flush_) flush_();
  }

  log_callback_t callback_;
  flush_callback_t flush_;
};

/* Formats are printf's; a std::string is an argument for %s. A pattern has spdlog's %v, %t, %H, %M, %S, %f, %l, and widths. */
class logger
{
public:
  logger(std::string name, std::vector<sink_ptr> sinks) : name_{std::move(name)}, sinks_{std::move(sinks)}
  {
  }
  logger(std::string name, const std::string &filename)
      : logger{std::move(name), std::vector<sink_ptr>{std::make_shared<basic_file_sink_mt>(filename, true)}}
  {
  }
  logger(std::string name, std::ostream &stream)
      : logger{std::move(name), std::vector<sink_ptr>{std::make_shared<ostream_sink_mt>(stream)}}
  {
  }
  logger(const logger &) = delete;
  logger &operator=(const logger &) = delete;

  [[nodiscard]] level_enum level() const noexcept
  {
    return level_;
  }
  void set_level(level_enum level) noexcept
  {
    level_ = level;
  }
  [[nodiscard]] bool should_log(level_enum level) const noexcept
  {
    return level >= level_ && level < level_enum::off;
  }
  void flush_on(level_enum level) noexcept
  {
    flush_level_ = level;
  }
  [[nodiscard]] level_enum flush_level() const noexcept
  {
    return flush_level_;
  }
  void flush()
  {
    for (const sink_ptr &each : sinks_) each->flush();
  }
  void set_pattern(std::string pattern)
  {
    pattern_ = std::move(pattern);
  }
  [[nodiscard]] std::vector<sink_ptr> &sinks() noexcept
  {
    return sinks_;
  }
  [[nodiscard]] const std::vector<sink_ptr> &sinks() const noexcept
  {
    return sinks_;
  }

  void log(level_enum level, const std::string &message)
  {
    if (!should_log(level)) return;
    const std::string line = line_of(level, message);
    for (const sink_ptr &each : sinks_) each->write(level, line);
    if (level >= flush_level_) flush();
  }
  template <typename First, typename... Arguments>
  void log(level_enum level, const std::string &format, const First &first, const Arguments &...arguments)
  {
    if (should_log(level)) log(level, text_of(format, plain(first), plain(arguments)...));
  }
  template <typename... Arguments> void trace(const std::string &format, const Arguments &...arguments)
  {
    log(level_enum::trace, format, arguments...);
  }
  template <typename... Arguments> void debug(const std::string &format, const Arguments &...arguments)
  {
    log(level_enum::debug, format, arguments...);
  }
  template <typename... Arguments> void info(const std::string &format, const Arguments &...arguments)
  {
    log(level_enum::info, format, arguments...);
  }
  template <typename... Arguments> void warn(const std::string &format, const Arguments &...arguments)
  {
    log(level_enum::warn, format, arguments...);
  }
  template <typename... Arguments> void error(const std::string &format, const Arguments &...arguments)
  {
    log(level_enum::error, format, arguments...);
  }
  template <typename... Arguments> void critical(const std::string &format, const Arguments &...arguments)
  {
    log(level_enum::critical, format, arguments...);
  }

private:
  template <typename T> static const T &plain(const T &argument) noexcept
  {
    return argument;
  }
  static const char *plain(const std::string &argument) noexcept
  {
    return argument.c_str();
  }

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
#endif
  template <typename... Arguments> static std::string text_of(const std::string &format, Arguments... arguments)
  {
    const int length = std::snprintf(nullptr, 0, format.c_str(), arguments...);
    if (length < 0) throw std::runtime_error{"Error during formatting."};
    std::string text(static_cast<std::size_t>(length) + 1, '\0');
    std::snprintf(text.data(), text.size(), format.c_str(), arguments...);
    text.pop_back();
    return text;
  }
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

  [[nodiscard]] std::string part_of(char letter, level_enum level, const std::string &message) const
  {
    static const char *const names[] = {"trace", "debug", "info", "warning", "error", "critical"};
    std::timespec now{};
    std::tm local{};
    std::timespec_get(&now, TIME_UTC);
    ::localtime_r(&now.tv_sec, &local);
    switch (letter) {
    case 'v': return message;
    case 'n': return name_;
    case 'l': return names[static_cast<std::size_t>(level)];
    case 't': return std::to_string(::syscall(SYS_gettid));
    case 'H': return text_of("%02d", local.tm_hour);
    case 'M': return text_of("%02d", local.tm_min);
    case 'S': return text_of("%02d", local.tm_sec);
    case 'f': return text_of("%06ld", now.tv_nsec / 1000);
    default: return std::string{letter};
    }
  }
  [[nodiscard]] std::string line_of(level_enum level, const std::string &message) const
  {
    std::string line;
    for (std::size_t i = 0; i < pattern_.size(); i++) {
      if (pattern_[i] != '%' || i + 1 == pattern_.size()) {
        line += pattern_[i];
        continue;
      }
      const bool is_left = pattern_[++i] == '-';
      if (is_left) i++;
      std::size_t width = 0;
      for (; i + 1 < pattern_.size() && pattern_[i] >= '0' && pattern_[i] <= '9'; i++)
        width = width * 10 + static_cast<std::size_t>(pattern_[i] - '0');
      const std::string part = part_of(pattern_[i], level, message);
      const std::string space(part.size() < width ? width - part.size() : 0, ' ');
      line += is_left ? part + space : space + part;
    }
    return line;
  }

  std::string name_, pattern_{"[%6t][%H:%M:%S:%f][%-6l] %v"};
  std::vector<sink_ptr> sinks_;
  std::atomic<level_enum> level_{level_enum::info}, flush_level_{level_enum::off};
};

/* Sets another level for a scope. */
struct log_level_setter {
  explicit log_level_setter(logger &changed, level_enum level) : logger_{changed}, previous_{changed.level()}
  {
    logger_.set_level(level);
  }
  log_level_setter(const log_level_setter &) = delete;
  log_level_setter &operator=(const log_level_setter &) = delete;
  ~log_level_setter()
  {
    logger_.set_level(previous_);
  }

private:
  logger &logger_;
  level_enum previous_;
};

} // namespace of_hipmm
} // namespace rapids_logger

#endif
