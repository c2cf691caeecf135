// SPDX-License-Identifier: MIT
// Thrust in a program of RMM 0.12. nvcc compiles a program for a GPU, a host compiler what needs no kernels.
#include <rmm/thrust_rmm_allocator.h>

#include <type_traits>

static_assert(std::is_same<rmm::device_vector<int>::allocator_type, rmm_allocator<int>>::value, "it is RMM's");

rmm::exec_policy_t policy_of(hipmm_stream_t stream)
{
  return rmm::exec_policy(stream);
}

int *first_of(rmm_allocator<int> from)
{
  const rmm_allocator<int>::pointer block = from.allocate(10);
  rmm_allocator<int>{}.deallocate(block, 10);
  return block.get();
}

#ifdef __CUDACC__
#include <thrust/reduce.h>
#include <thrust/sequence.h>

#include <cstdio>

int main()
{
  rmmOptions_t options;
  options.allocation_mode = PoolAllocation;
  options.enable_logging = true;
  if (rmmInitialize(&options) != RMM_SUCCESS) return 1;
  {
    const cudaStream_t stream = nullptr;
    rmm::device_vector<int> values(1000);
    thrust::sequence(rmm::exec_policy(stream)->on(stream), values.begin(), values.end());
    if (thrust::reduce(rmm::exec_policy(stream)->on(stream), values.begin(), values.end()) != 499500) return 2;
  }
  if (rmmLogSize() < 200 || rmmFinalize() != RMM_SUCCESS) return 3;
  std::puts("ok Thrust in a program of RMM 0.12");
  return 0;
}
#endif
