/* SPDX-License-Identifier: MIT */
/* hip_cooperative_groups.h: stands in front of HIP's own, as hip_runtime.h does. The threads of a grid run one after the
 * other, so they know their rank, and cannot wait for each other. */
#ifndef HIPMM_TESTS_HIP_TESTS_INCLUDE_HIP_HIP_COOPERATIVE_GROUPS_H
#define HIPMM_TESTS_HIP_TESTS_INCLUDE_HIP_HIP_COOPERATIVE_GROUPS_H

#include <hip/hip_runtime.h>

namespace cooperative_groups
{
struct grid_group {
  unsigned long long size() const
  {
    return threads_of_block() * gridDim.x * gridDim.y * gridDim.z;
  }
  unsigned long long thread_rank() const
  {
    const unsigned long long block = (blockIdx.z * gridDim.y + blockIdx.y) * (unsigned long long)gridDim.x + blockIdx.x;
    return block * threads_of_block() + (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  }
  void sync() const
  {
    if (size() > 1) ::host_kernel::needs_gpu("a grid whose threads wait for each other");
  }

private:
  static unsigned long long threads_of_block()
  {
    return (unsigned long long)blockDim.x * blockDim.y * blockDim.z;
  }
};

struct multi_grid_group {
  unsigned grid_rank() const
  {
    return 0;
  }
  unsigned num_grids() const
  {
    return 1;
  }
  void sync() const
  {
    ::host_kernel::needs_gpu("grids that wait for each other");
  }
};

inline grid_group this_grid()
{
  return {};
}
inline multi_grid_group this_multi_grid()
{
  return {};
}
} // namespace cooperative_groups

#endif
