/* SPDX-License-Identifier: MIT */
/* hipmm/compat/detail/adaptor_parts.hpp: the parts that the adaptors of RMM 23.12 and of RMM 26 share, over hipmm's resources:
 * counters, live allocations, functions at a failure, and rows of a log. */
#ifndef HIPMM_COMPAT_DETAIL_ADAPTOR_PARTS_HPP
#define HIPMM_COMPAT_DETAIL_ADAPTOR_PARTS_HPP

#include <hipmm/compat/detail/core.hpp>
#include <hipmm/compat/detail/log_rows.hpp>
#include <rmm/detail/stack_trace.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace hipmm::compat
{

/* ---- Counters ---- */

/* Now, at most, and in all. */
struct counter {
  std::int64_t value{0};
  std::int64_t peak{0};
  std::int64_t total{0};

  counter &operator+=(std::int64_t change)
  {
    value += change;
    total += change;
    peak = std::max(value, peak);
    return *this;
  }
  counter &operator-=(std::int64_t change)
  {
    value -= change;
    return *this;
  }
  /* Adds the counters of an inner scope. */
  void add_counters_from_tracked_sub_block(const counter &inner)
  {
    peak = std::max(value + inner.peak, peak);
    value += inner.value;
    total += inner.total;
  }
};

/* Of bytes, and of allocations. */
using counters = std::pair<counter, counter>;

inline counters counters_of(const ::hipmm_statistics &all) noexcept
{
  return {{all.current_bytes, all.peak_bytes, all.total_bytes}, {all.current_count, all.peak_count, all.total_count}};
}
inline counters get_counters(const hipmm::resource &from) noexcept
{
  ::hipmm_statistics all{};
  const status code = ::hipmm_statistics_get(from.get(), &all);
  return code == HIPMM_OK ? counters_of(all) : counters{};
}
inline counters push_counters(const hipmm::resource &from)
{
  ::hipmm_statistics outer{};
  check(::hipmm_statistics_push(from.get(), &outer));
  return counters_of(outer);
}
inline counters pop_counters(const hipmm::resource &from)
{
  ::hipmm_statistics inner{};
  if (::hipmm_statistics_pop(from.get(), &inner) != HIPMM_OK)
    throw std::out_of_range{"cannot pop the last allocation counter pair"};
  return counters_of(inner);
}

/* ---- Live allocations ---- */

struct allocation_info {
  std::unique_ptr<rmm::detail::stack_trace> strace; /* if they are captured */
  std::size_t allocation_size;
};
using allocation_map = std::map<void *, allocation_info>;

inline graph::options tracking_options(bool captures_stacks)
{
  return {{"stacks", captures_stacks ? "all" : "off"},
          {"stack_sample", 0},
          {"report_at_end", false},
          {"most_reported", 1 << 30}};
}

/* The report has a line for each block, "ADDRESS: BYTES B …", and the lines of its trace behind it, indented. */
inline void add_traces(const hipmm::resource &tracking, allocation_map &allocations)
{
  std::istringstream report{tracking.report()};
  rmm::detail::stack_trace *trace = nullptr;
  for (std::string line; std::getline(report, line);) {
    if (line.rfind("  ", 0) == 0) {
      if (trace) trace->add(line.substr(2));
      continue;
    }
    void *ptr = nullptr;
    trace = nullptr;
    if (!(std::istringstream{line} >> ptr)) continue;
    const auto found = allocations.find(ptr);
    if (found == allocations.end()) continue;
    found->second.strace = std::make_unique<rmm::detail::stack_trace>(rmm::detail::stack_trace::empty());
    trace = found->second.strace.get();
  }
}

inline allocation_map live_allocations(const hipmm::resource &tracking, bool captures_stacks)
{
  allocation_map allocations;
  const auto add = [](void *arg, const ::hipmm_extent *extent) {
    if (extent->state != HIPMM_EXTENT_LIVE) return;
    auto &found = *static_cast<allocation_map *>(arg);
    found.emplace(const_cast<void *>(extent->ptr), allocation_info{nullptr, extent->bytes});
  };
  check(::hipmm_resource_visit_blocks(tracking.get(), add, &allocations));
  if (captures_stacks) add_traces(tracking, allocations);
  return allocations;
}

/* A line for each allocation, with the lines of its stack trace behind it. */
inline std::string lines_of(const allocation_map &allocations)
{
  std::ostringstream lines;
  for (const auto &[ptr, info] : allocations) {
    lines << ptr << ": " << info.allocation_size << " B";
    if (info.strace) lines << " : callstack:\n" << *info.strace;
    lines << '\n';
  }
  return lines.str();
}

/* ---- A function of the program when an allocation fails ---- */

/* It gets the size and the argument, and returns whether to try again. It may throw. */
using failure_function = std::function<bool(std::size_t, void *)>;

/* Calls the function when an allocation of the upstream ends with an ExceptionType. */
template <typename ExceptionType> struct failure_state {
  failure_function callback;
  void *callback_arg;
  bool is_exception_passed;

  /* Whether the caller would get an ExceptionType: an exception of the program's own upstream, or RMM's exception. */
  [[nodiscard]] bool is_caught() const
  {
    const std::exception_ptr thrown = pending_exception();
    if (!thrown) return std::is_convertible_v<rmm::out_of_memory *, ExceptionType *>;
    try {
      std::rethrow_exception(thrown);
    } catch (const ExceptionType &) {
      return true;
    } catch (...) {
      return false;
    }
  }

  static int call(void *arg, std::size_t bytes) noexcept
  {
    const auto *self = static_cast<const failure_state *>(arg);
    if (!self->is_exception_passed) pending_exception() = nullptr; /* a pool below has handled it */
    const std::exception_ptr thrown = pending_exception();
    try {
      if (!self->is_caught()) return 0;
      const bool is_tried_again = self->callback(bytes, self->callback_arg);
      pending_exception() = is_tried_again ? nullptr : thrown;
      return is_tried_again;
    } catch (...) {
      pending_exception() = std::current_exception();
      return 0;
    }
  }

  static backing make(int device, const backing &upstream, failure_function callback, void *callback_arg)
  {
    auto made =
        std::make_unique<failure_state>(failure_state{std::move(callback), callback_arg, upstream.is_exception_passed});
    const auto describe = [](failure_state *arg) {
      return ::hipmm_failure_handler{sizeof(::hipmm_failure_handler), call, arg};
    };
    return {make_resource_with(device, "failure_callback", upstream.resource, "callback", std::move(made), describe),
            true};
  }
};

/* ---- Rows for each allocation and free ---- */

/* The value of the environment variable RMM_LOG_FILE. Throws logic_error without the variable. */
inline std::string default_log_name()
{
  const char *name = ::secure_getenv("RMM_LOG_FILE");
  RMM_EXPECTS(name != nullptr, "RMM logging requested without an explicit file name, but RMM_LOG_FILE is unset");
  return name;
}

/* The options of a log in a file, whose folder is made if need be. */
inline graph::options log_options(const std::string &filename, bool auto_flush)
{
  const std::filesystem::path folder = std::filesystem::path{filename}.parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder);
  std::string name; /* hipmm gives a percent sign a meaning */
  for (const char each : filename) name += each == '%' ? std::string{"%%"} : std::string{each};
  return {{"file", name}, {"auto_flush", auto_flush}};
}

using row_function = std::function<void(const char *row)>;

inline backing make_log(int device, const backing &upstream, row_function output)
{
  const auto describe = [](log_rows *arg) {
    return ::hipmm_hooks{sizeof(::hipmm_hooks), log_rows::kinds, log_rows::write, arg};
  };
  return {make_resource_with(device, "hooks", upstream.resource, "hooks", std::make_unique<log_rows>(std::move(output)),
                             describe),
          upstream.is_exception_passed};
}

/* Rows to a stream of the program. */
inline row_function rows_to(std::ostream &stream, bool auto_flush)
{
  return [&stream, auto_flush](const char *row) {
    stream << row << '\n';
    if (auto_flush) stream.flush();
  };
}

} // namespace hipmm::compat

#endif
