/* SPDX-License-Identifier: MIT */
/* rmm/mr/device/binning_memory_resource.hpp of RMM 23.12: each request to the smallest bin that is large enough. */
#ifndef HIPMM_COMPAT_RMM_MR_DEVICE_BINNING_MEMORY_RESOURCE_HPP
#define HIPMM_COMPAT_RMM_MR_DEVICE_BINNING_MEMORY_RESOURCE_HPP

#include "device_memory_resource.hpp"
#include "fixed_size_memory_resource.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace rmm::mr
{

/* Bins of resources, and of blocks of one size over the upstream; larger requests go to the upstream. Bins must not be added
 * while another thread uses the object, and not while memory is allocated that would belong to them. */
template <typename Upstream> class binning_memory_resource final : public device_memory_resource
{
public:
  explicit binning_memory_resource(Upstream *upstream) : upstream_{upstream}
  {
    RMM_EXPECTS(upstream != nullptr, "Unexpected null upstream pointer.");
  }
  explicit binning_memory_resource(Upstream &upstream) : binning_memory_resource{std::addressof(upstream)}
  {
  }

  /* With a bin for each power of two, from 2 to the power of the one exponent up to that of the other. */
  binning_memory_resource(Upstream *upstream, std::int8_t min_size_exponent, std::int8_t max_size_exponent)
      : binning_memory_resource{upstream}
  {
    for (int i = min_size_exponent; i <= max_size_exponent; i++) add_bin(std::size_t{1} << i);
  }
  binning_memory_resource(Upstream &upstream, std::int8_t min_size_exponent, std::int8_t max_size_exponent)
      : binning_memory_resource{std::addressof(upstream), min_size_exponent, max_size_exponent}
  {
  }
  binning_memory_resource(const binning_memory_resource &) = delete;
  binning_memory_resource &operator=(const binning_memory_resource &) = delete;

  [[nodiscard]] bool supports_streams() const noexcept override
  {
    return true;
  }
  [[nodiscard]] bool supports_get_mem_info() const noexcept override
  {
    return false;
  }
  [[nodiscard]] Upstream *get_upstream() const noexcept
  {
    return upstream_;
  }

  /* The size is rounded up to 256. A size that has a bin already keeps it. */
  void add_bin(std::size_t allocation_size, device_memory_resource *bin_resource = nullptr)
  {
    const std::size_t size = align_up(allocation_size, CUDA_ALLOCATION_ALIGNMENT);
    if (bins_.count(size) != 0) return;
    if (!bin_resource) {
      owned_.push_back(std::make_unique<fixed_size_memory_resource<Upstream>>(upstream_, size));
      bin_resource = owned_.back().get();
    }
    bins_.emplace(size, bin_resource);
  }

private:
  [[nodiscard]] device_memory_resource &resource_for(std::size_t bytes) const
  {
    const auto bin = bins_.lower_bound(bytes);
    return bin == bins_.end() ? *upstream_ : *bin->second;
  }

  void *do_allocate(std::size_t bytes, cuda_stream_view stream) override
  {
    return bytes == 0 ? nullptr : resource_for(bytes).allocate(bytes, stream);
  }
  void do_deallocate(void *ptr, std::size_t bytes, cuda_stream_view stream) override
  {
    resource_for(bytes).deallocate(ptr, bytes, stream);
  }
  [[nodiscard]] std::pair<std::size_t, std::size_t> do_get_mem_info(cuda_stream_view) const override
  {
    return {0, 0};
  }

  Upstream *upstream_;
  std::vector<std::unique_ptr<fixed_size_memory_resource<Upstream>>> owned_;
  std::map<std::size_t, device_memory_resource *> bins_;
};

} // namespace rmm::mr

#endif
