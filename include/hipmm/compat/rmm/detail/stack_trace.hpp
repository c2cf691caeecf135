/* SPDX-License-Identifier: MIT */
/* rmm/detail/stack_trace.hpp of RMM 23.12: where a thread is. */
#ifndef HIPMM_COMPAT_RMM_DETAIL_STACK_TRACE_HPP
#define HIPMM_COMPAT_RMM_DETAIL_STACK_TRACE_HPP

#include <array>
#include <cstdlib>
#include <execinfo.h>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace rmm::detail
{

class stack_trace
{
public:
  /* Of the calling thread. */
  stack_trace()
  {
    std::array<void *, 64> frames{};
    const int depth = ::backtrace(frames.data(), static_cast<int>(frames.size()));
    char **names = ::backtrace_symbols(frames.data(), depth);
    for (int i = 0; names && i < depth; i++) add("#" + std::to_string(i) + " in " + names[i]);
    std::free(names);
  }

  /* Without a frame yet. */
  [[nodiscard]] static stack_trace empty()
  {
    return stack_trace{std::vector<std::string>{}};
  }
  void add(std::string frame)
  {
    frames_.push_back(std::move(frame));
  }

  friend std::ostream &operator<<(std::ostream &output, const stack_trace &trace)
  {
    for (const std::string &frame : trace.frames_) output << frame << '\n';
    return output;
  }

private:
  explicit stack_trace(std::vector<std::string> frames) : frames_{std::move(frames)}
  {
  }

  std::vector<std::string> frames_;
};

} // namespace rmm::detail

#endif
