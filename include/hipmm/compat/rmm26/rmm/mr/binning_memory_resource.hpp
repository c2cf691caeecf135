/* SPDX-License-Identifier: MIT */
/* rmm/mr/binning_memory_resource.hpp of RMM 26: each request to the smallest bin that is large enough. */
#ifndef HIPMM_COMPAT_RMM_MR_BINNING_MEMORY_RESOURCE_HPP
#define HIPMM_COMPAT_RMM_MR_BINNING_MEMORY_RESOURCE_HPP

#include "fixed_size_memory_resource.hpp"
#include <hipmm/compat/detail/value.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rmm::mr
{
inline namespace of_26
{

namespace detail
{

/* The resource of hipmm is made with the first bin, since one without bins is a mistake in a graph. Until then requests go
 * to the upstream, and memory from then is given back to it. */
struct binning_state {
  std::mutex lock;
  int device = 0;
  hipmm::compat::backing upstream{};
  std::atomic<bool> has_bins{false};
  std::map<std::size_t, std::string> bins; /* sizes, and each bin as JSON */
  std::vector<hipmm::resource> resources;  /* of bins that were given */
};

} // namespace detail

/* Bins of resources, and of blocks of one size over the upstream; larger requests go to the upstream. Bins preallocate
 * nothing. They may be added while the object is in use. */
class binning_memory_resource
    : public hipmm::compat::value_over<binning_memory_resource, std::shared_ptr<detail::binning_state>>
{
  using state_pointer = std::shared_ptr<detail::binning_state>;

public:
  explicit binning_memory_resource(hipmm::compat::any_device upstream)
      : value_over{upstream, hipmm::compat::backing_of(upstream, hipmm::compat::current_device()),
                   std::make_shared<detail::binning_state>()}
  {
    state().device = hipmm::compat::current_device();
    state().upstream = shared().behind;
  }
  /* With a bin for each power of two, from 2 to the power of the one exponent up to that of the other. */
  binning_memory_resource(hipmm::compat::any_device upstream, std::int8_t min_size_exponent,
                          std::int8_t max_size_exponent)
      : binning_memory_resource{std::move(upstream)}
  {
    for (int i = min_size_exponent; i <= max_size_exponent; i++) add_bin(std::size_t{1} << i);
  }

  /* The size is rounded up to 256. A size that has a bin already keeps it. A resource that was made over this one before its
   * first bin stays over the upstream. */
  void add_bin(std::size_t allocation_size, std::optional<device_async_resource_ref> bin_resource = std::nullopt)
  {
    const std::size_t size = align_up(allocation_size, CUDA_ALLOCATION_ALIGNMENT);
    const std::lock_guard<std::mutex> guard{state().lock};
    if (state().bins.count(size) != 0) return;
    hipmm::graph::options bin{{"size", size}};
    if (bin_resource) {
      hipmm::compat::any_device owned{*bin_resource};
      state().resources.push_back(hipmm::compat::backing_of(owned, state().device).resource);
      bin.emplace_back("resource", state().resources.back().name());
    }
    state().bins.emplace(size, hipmm::option_value::object(bin));
    try {
      state().has_bins ? extend() : create();
    } catch (...) {
      state().bins.erase(size);
      throw;
    }
  }

  void deallocate(::rmm::cuda_stream_view stream, void *ptr, std::size_t bytes,
                  std::size_t = CUDA_ALLOCATION_ALIGNMENT) noexcept
  {
    const hipmm::resource &first = state().upstream.resource;
    const auto on = hipmm::compat::to_hipmm(stream.value());
    if (state().has_bins && shared().behind.resource.try_deallocate(ptr, bytes, on) != HIPMM_E_POINTER) return;
    hipmm::compat::deallocate({first, true}, ptr, bytes, stream);
  }

private:
  [[nodiscard]] detail::binning_state &state() const
  {
    return *shared().state;
  }
  [[nodiscard]] std::string list() const
  {
    std::string bins;
    for (const auto &[size, bin] : state().bins) bins += (bins.empty() ? "[" : ", ") + bin;
    return bins + "]";
  }
  void create()
  {
    const std::string options = "{\"extra_bins\": " + list() + "}";
    std::vector<::hipmm_resource *> named;
    for (const hipmm::resource &each : state().resources) named.push_back(each.get());
    shared().behind = hipmm::compat::make_named(state().device, "binning", options, state().upstream, named);
    state().has_bins = true;
  }
  void extend()
  {
    const std::string path = "created/" + shared().behind.resource.name() + "/extra_bins";
    hipmm::compat::check(::hipmm_set(path.c_str(), list().c_str()));
  }
};

} // namespace of_26
} // namespace rmm::mr

#endif
