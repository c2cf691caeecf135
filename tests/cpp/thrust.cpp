// SPDX-License-Identifier: MIT
// hipmm/thrust.hpp: with nvcc, a program; with a host compiler over Thrust's headers, the policy and the allocator. Only
// compiled here: algorithms need kernels.
#include <hipmm/hipmm.hpp>
#include <hipmm/thrust.hpp>

#include <memory>
#include <type_traits>

using allocator = hipmm::thrust_allocator<int>;
static_assert(std::is_same_v<std::allocator_traits<allocator>::pointer, thrust::device_ptr<int>>);
static_assert(std::is_same_v<std::allocator_traits<allocator>::rebind_alloc<char>, hipmm::thrust_allocator<char>>);

hipmm::exec_policy on(const hipmm::stream &stream)
{
  return hipmm::exec_policy{stream, hipmm::named_resource("pool")};
}

#ifdef __CUDACC__
#include <thrust/device_vector.h>
#include <thrust/reduce.h>
#include <thrust/sequence.h>

#include <cstdio>

/* Run on a GPU: the sum is right, the memory comes from hipmm, and none is left. */
int main()
{
  const hipmm::library library = hipmm::library::from_string(R"({"stack": ["statistics", "pool", "device"]})");
  const hipmm::resource top = hipmm::current_resource();
  {
    const hipmm::stream stream;
    thrust::device_vector<int, allocator> values(1000, 0, allocator{stream});
    thrust::sequence(hipmm::exec_policy{stream}, values.begin(), values.end());
    if (top.statistics().current_bytes != 4000) return 1;
    const int sum = thrust::reduce(hipmm::exec_policy{stream}, values.begin(), values.end());
    if (sum != 499500 || top.statistics().total_count < 2) return 2;
    if (allocator{stream} != allocator{stream} || allocator{stream} == allocator{}) return 3;
  }
  std::puts("ok Thrust on hipmm");
  return top.statistics().current_count != 0;
}
#else
int *first(allocator from)
{
  const allocator::pointer block = from.allocate(10);
  from.deallocate(block, 10);
  return block.get();
}
#endif
