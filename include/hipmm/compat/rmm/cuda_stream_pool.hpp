/* SPDX-License-Identifier: MIT */
/* rmm/cuda_stream_pool.hpp: streams of the current device, returned in turn. */
#ifndef HIPMM_COMPAT_RMM_CUDA_STREAM_POOL_HPP
#define HIPMM_COMPAT_RMM_CUDA_STREAM_POOL_HPP

#include "cuda_stream.hpp"

#include <atomic>
#include <cstddef>
#include <vector>

namespace rmm
{

class cuda_stream_pool
{
public:
  static constexpr std::size_t default_size{16};

  explicit cuda_stream_pool(std::size_t pool_size = default_size,
                            cuda_stream::flags flags = cuda_stream::flags::sync_default)
  {
    RMM_EXPECTS(pool_size > 0, "Stream pool size must be greater than zero");
    streams_.reserve(pool_size);
    for (std::size_t i = 0; i < pool_size; i++) streams_.emplace_back(flags);
  }
  cuda_stream_pool(const cuda_stream_pool &) = delete;
  cuda_stream_pool &operator=(const cuda_stream_pool &) = delete;

  cuda_stream_view get_stream() const noexcept
  {
    return streams_[next_++ % streams_.size()].view();
  }
  cuda_stream_view get_stream(std::size_t index) const
  {
    return streams_[index % streams_.size()].view();
  }
  std::size_t get_pool_size() const noexcept
  {
    return streams_.size();
  }

private:
  std::vector<cuda_stream> streams_;
  mutable std::atomic_size_t next_{};
};

} // namespace rmm

#endif
