// SPDX-License-Identifier: MIT
// Thrust in a program of RMM 23.12: a pool with a log and statistics, vectors, and algorithms with temporary memory from the
// resource. With THRUST_DEVICE_SYSTEM_CPP the algorithms run on the host, on memory of the software device; nvcc compiles the
// program for a GPU.
#include <rmm/cuda_stream.hpp>
#include <rmm/device_uvector.hpp>
#include <rmm/device_vector.hpp>
#include <rmm/exec_policy.hpp>
#include <rmm/mr/device/logging_resource_adaptor.hpp>
#include <rmm/mr/device/pool_memory_resource.hpp>
#include <rmm/mr/device/statistics_resource_adaptor.hpp>

#include <thrust/functional.h>
#include <thrust/reduce.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/uninitialized_fill.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

namespace
{

using device_memory = rmm::mr::cuda_memory_resource;
using pool = rmm::mr::pool_memory_resource<device_memory>;
using statistics = rmm::mr::statistics_resource_adaptor<pool>;

int failed = 0;

void expect(bool condition, const char *what)
{
  if (!condition) std::printf("not ok %s\n", what);
  failed += !condition;
}

/* The examples of the READMEs: 23.12, 25.10 and 26.x have the same. */
void runs_algorithms(statistics &counted, rmm::cuda_stream_view stream)
{
  rmm::device_uvector<int32_t> v(100, stream);
  thrust::uninitialized_fill(rmm::exec_policy(stream), v.begin(), v.end(), int32_t{0});
  expect(v.back_element(stream) == 0, "fill");

  const std::int64_t before = counted.get_allocations_counter().total;
  rmm::device_vector<int> vector(1000, rmm::mr::thrust_allocator<int>(stream, &counted));
  expect(counted.get_bytes_counter().value == 4400, "memory of the vector");
  thrust::sequence(rmm::exec_policy(stream), vector.begin(), vector.end());
  thrust::sort(rmm::exec_policy(stream, &counted), vector.begin(), vector.end(), thrust::greater<int>{});
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
    device_memory memory;
    pool own{&memory, 1 << 20, 64 << 20};
    statistics counted{&own};
    rmm::mr::logging_resource_adaptor<statistics> logged{&counted, name};
    rmm::mr::set_current_device_resource(&logged);
    const rmm::cuda_stream stream;
    runs_algorithms(counted, stream);
    stream.synchronize();
    rmm::mr::set_current_device_resource(nullptr);
    expect(counted.get_bytes_counter().value == 0, "all is freed");
  }
  std::ifstream log{name};
  std::size_t rows = 0;
  for (std::string row; std::getline(log, row);) rows++;
  expect(rows >= 3, "the log");
  std::printf(failed ? "not ok Thrust\n" : "ok Thrust in a program of RMM 23.12\n");
  return failed != 0;
}
