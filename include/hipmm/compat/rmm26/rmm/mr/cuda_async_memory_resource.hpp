/* SPDX-License-Identifier: MIT */
/* rmm/mr/cuda_async_memory_resource.hpp of RMM 26: a pool of the driver with its owner. */
#ifndef HIPMM_COMPAT_RMM_MR_CUDA_ASYNC_MEMORY_RESOURCE_HPP
#define HIPMM_COMPAT_RMM_MR_CUDA_ASYNC_MEMORY_RESOURCE_HPP

#include <hipmm/compat/detail/value.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace rmm::mr
{
inline namespace of_26
{

/* Sizes are in bytes. Without an initial size the pool takes nothing at first; it keeps what it has up to the threshold, without
 * one all of it. */
class cuda_async_memory_resource final : public hipmm::compat::value<cuda_async_memory_resource>
{
public:
  /* How other processes can import the pool. */
  enum class allocation_handle_type : std::int32_t {
    none = 0x0,
    posix_file_descriptor = 0x1,
    win32 = 0x2,
    win32_kmt = 0x4,
    fabric = 0x8
  };

  cuda_async_memory_resource(std::optional<std::size_t> initial_pool_size = {},
                             std::optional<std::size_t> release_threshold = {},
                             std::optional<allocation_handle_type> export_handle_type = {})
      : value{{make(initial_pool_size, release_threshold, export_handle_type.value_or(allocation_handle_type::none))}}
  {
  }

  [[nodiscard]] hipmm::compat::mempool_handle pool_handle() const noexcept
  {
    return hipmm::compat::pool_handle_of(shared().behind.resource);
  }

private:
  static hipmm::compat::backing make(std::optional<std::size_t> initial, std::optional<std::size_t> threshold,
                                     allocation_handle_type export_handle_type)
  {
    const bool is_exported = export_handle_type == allocation_handle_type::posix_file_descriptor;
    RMM_EXPECTS(is_exported || export_handle_type == allocation_handle_type::none,
                "Requested IPC memory handle type not supported");
    hipmm::graph::options options{{"initial_pool_size", initial.value_or(0)},
                                  {"handle_type", is_exported ? "posix_fd" : "none"}};
    if (threshold) options.emplace_back("release_threshold", *threshold);
    return {hipmm::compat::make_resource(hipmm::compat::current_device(), "async", options), true};
  }
};

} // namespace of_26
} // namespace rmm::mr

#endif
