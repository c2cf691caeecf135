// SPDX-License-Identifier: MIT
// Thrust in a program of RMM 23.12 or 26: a pool with a log and statistics, vectors, and algorithms with temporary memory from the
// resource. With THRUST_DEVICE_SYSTEM_CPP the algorithms run on the host, on memory of the software device; nvcc compiles the
// program for a GPU.
#include <rmm/cuda_stream.hpp>
#include <rmm/device_uvector.hpp>
#include <rmm/device_vector.hpp>
#include <rmm/exec_policy.hpp>
#if HIPMM_COMPAT_RMM == 26
#include <rmm/mr/logging_resource_adaptor.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#include <rmm/mr/statistics_resource_adaptor.hpp>
#else
#include <rmm/mr/device/logging_resource_adaptor.hpp>
#include <rmm/mr/device/pool_memory_resource.hpp>
#include <rmm/mr/device/statistics_resource_adaptor.hpp>
#endif

#include <thrust/functional.h>
#include <thrust/reduce.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/uninitialized_fill.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

namespace
{

int failed = 0;

void expect(bool condition, const char *what)
{
  if (!condition) std::printf("not ok %s\n", what);
  failed += !condition;
}

/* The examples of the READMEs: 23.12, 25.10 and 26.x have the same. */
template <typename Statistics> void runs_algorithms(Statistics &counted, rmm::cuda_stream_view stream)
{
  rmm::device_uvector<int32_t> v(100, stream);
  thrust::uninitialized_fill(rmm::exec_policy(stream), v.begin(), v.end(), int32_t{0});
  expect(v.back_element(stream) == 0, "fill");

  const std::int64_t before = counted.get_allocations_counter().total;
  rmm::device_vector<int> vector(1000, rmm::mr::thrust_allocator<int>(stream, counted));
  expect(counted.get_bytes_counter().value == 4400, "memory of the vector");
  thrust::sequence(rmm::exec_policy(stream), vector.begin(), vector.end());
  thrust::sort(rmm::exec_policy(stream, counted), vector.begin(), vector.end(), thrust::greater<int>{});
  expect(vector[0] == 999 && vector[999] == 0, "sort");
  expect(thrust::reduce(rmm::exec_policy_nosync(stream), vector.begin(), vector.end()) == 499500, "reduce");
  expect(counted.get_allocations_counter().total > before + 1, "temporary memory");

  rmm::device_vector<int> other{vector};
  expect(other.get_allocator() == vector.get_allocator() && other[999] == 0, "copy");
}

} // namespace

int main(int argc, char **argv)
{
  const std::string name = std::string{argc > 1 ? argv[1] : "."} + "/thrust.csv";
  {
    rmm::mr::cuda_memory_resource memory;
    rmm::mr::pool_memory_resource own{memory, std::size_t{1} << 20, std::size_t{64} << 20};
    rmm::mr::statistics_resource_adaptor counted{own};
    rmm::mr::logging_resource_adaptor logged{counted, name};
    rmm::mr::set_current_device_resource(logged);
    const rmm::cuda_stream stream;
    runs_algorithms(counted, stream);
    stream.synchronize();
#if HIPMM_COMPAT_RMM == 26
    rmm::mr::reset_current_device_resource();
#else
    rmm::mr::set_current_device_resource(nullptr);
#endif
    expect(counted.get_bytes_counter().value == 0, "all is freed");
  }
  std::ifstream log{name};
  std::size_t rows = 0;
  for (std::string row; std::getline(log, row);) rows++;
  expect(rows >= 3, "the log");
  std::printf(failed ? "not ok Thrust\n" : "ok Thrust in a program of RMM\n");
  return failed != 0;
}
