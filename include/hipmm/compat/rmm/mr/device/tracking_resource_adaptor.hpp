/* SPDX-License-Identifier: MIT */
/* rmm/mr/device/tracking_resource_adaptor.hpp of RMM 23.12: a list of all live allocations. */
#ifndef HIPMM_COMPAT_RMM_MR_DEVICE_TRACKING_RESOURCE_ADAPTOR_HPP
#define HIPMM_COMPAT_RMM_MR_DEVICE_TRACKING_RESOURCE_ADAPTOR_HPP

#include "../../detail/stack_trace.hpp"
#include "../../logger.hpp"
#include <hipmm/compat/detail/adaptor.hpp>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <utility>

namespace rmm::mr
{

/* A wrong free is refused, and changes nothing: in RMM its use is undefined. */
template <typename Upstream>
class tracking_resource_adaptor final : public hipmm::compat::adaptor<tracking_resource_adaptor<Upstream>, Upstream>
{
  using base = hipmm::compat::adaptor<tracking_resource_adaptor<Upstream>, Upstream>;

public:
  struct allocation_info {
    std::unique_ptr<rmm::detail::stack_trace> strace; /* if they are captured */
    std::size_t allocation_size;
  };

  tracking_resource_adaptor(Upstream *upstream, bool capture_stacks = false)
      : base{upstream, typename base::below{upstream}.make("tracking", {{"capture_stacks", capture_stacks},
                                                                        {"report_at_end", false},
                                                                        {"most_reported", most_reported}})},
        captures_stacks_{capture_stacks}
  {
  }
  tracking_resource_adaptor(Upstream &upstream, bool capture_stacks = false)
      : tracking_resource_adaptor{std::addressof(upstream), capture_stacks}
  {
  }

  /* As of this call; the next call changes the map. */
  const std::map<void *, allocation_info> &get_outstanding_allocations() const
  {
    allocations_.clear();
    const auto add = [](void *arg, const ::hipmm_extent *extent) {
      if (extent->state != HIPMM_EXTENT_LIVE) return;
      auto &found = *static_cast<std::map<void *, allocation_info> *>(arg);
      found.emplace(const_cast<void *>(extent->ptr), allocation_info{nullptr, extent->bytes});
    };
    hipmm::compat::check(::hipmm_resource_visit_blocks(this->behind().get(), add, &allocations_));
    if (captures_stacks_) add_traces();
    return allocations_;
  }
  std::size_t get_allocated_bytes() const noexcept
  {
    return this->query("outstanding_bytes");
  }

  /* A line for each allocation, with the lines of its stack trace behind it. */
  std::string get_outstanding_allocations_str() const
  {
    std::ostringstream lines;
    for (const auto &[ptr, info] : get_outstanding_allocations()) {
      lines << ptr << ": " << info.allocation_size << " B";
      if (info.strace) lines << " : callstack:\n" << *info.strace;
      lines << '\n';
    }
    return lines.str();
  }
  void log_outstanding_allocations() const
  {
    RMM_LOG_DEBUG("Outstanding Allocations: {}", get_outstanding_allocations_str());
  }

private:
  static constexpr int most_reported = 1 << 30;

  /* The report has a line for each block, "ADDRESS: BYTES B …", and the lines of its trace behind it, indented. */
  void add_traces() const
  {
    std::istringstream report{this->behind().report()};
    rmm::detail::stack_trace *trace = nullptr;
    for (std::string line; std::getline(report, line);) {
      if (line.rfind("  ", 0) == 0) {
        if (trace) trace->add(line.substr(2));
        continue;
      }
      void *ptr = nullptr;
      trace = nullptr;
      if (!(std::istringstream{line} >> ptr)) continue;
      const auto found = allocations_.find(ptr);
      if (found == allocations_.end()) continue;
      found->second.strace = std::make_unique<rmm::detail::stack_trace>(rmm::detail::stack_trace::empty());
      trace = found->second.strace.get();
    }
  }

  bool captures_stacks_;
  mutable std::map<void *, allocation_info> allocations_;
};

template <typename Upstream> tracking_resource_adaptor<Upstream> make_tracking_adaptor(Upstream *upstream)
{
  return tracking_resource_adaptor<Upstream>{upstream};
}

} // namespace rmm::mr

#endif
