// SPDX-License-Identifier: MIT
// The C++ examples of the README of RMM 26.x with the real RMM, and resources of hipmm where the examples have resources of
// RMM: the same calls, made whole. Copies stand for kernels. Compiled by tests/cpp/rmm.sh; with the argument "resources" the
// examples that need no GPU run there, and all run where there is one: see README.md.
#include "../../cpp/test.hpp"

#include <hipmm/hipmm.hpp>
#include <hipmm/rmm.hpp>

#include <rmm/cuda_device.hpp>
#include <rmm/cuda_stream.hpp>
#include <rmm/device_buffer.hpp>
#include <rmm/device_scalar.hpp>
#include <rmm/device_uvector.hpp>
#include <rmm/mr/logging_resource_adaptor.hpp>
#include <rmm/mr/per_device_resource.hpp>
#include <rmm/mr/polymorphic_allocator.hpp>
#include <rmm/mr/statistics_resource_adaptor.hpp>

#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

namespace
{

using rmm::cuda_device_id;
using rmm::cuda_stream_view;

/* What a resource of the user's looks like, as the README says: these two functions, and equality. */
static_assert(cuda::mr::resource_with<hipmm::rmm_resource, cuda::mr::device_accessible>);

/* ---- Without a GPU ---- */

void logging()
{
  std::string filename{"logs/test1.csv"};
  {
    hipmm::rmm_resource upstream;
    rmm::mr::logging_resource_adaptor log_mr{upstream, filename};
    rmm::mr::statistics_resource_adaptor counted{log_mr};
    const cuda::stream_ref stream{cudaStream_t{}};
    counted.deallocate(stream, counted.allocate(stream, 1000, 256), 1000, 256);
    CHECK(counted.get_bytes_counter().peak == 1000);
    log_mr.flush();
  }
  std::ifstream log{filename};
  std::string header, row;
  CHECK(std::getline(log, header) && header == "Thread,Time,Action,Pointer,Size,Stream");
  CHECK(std::getline(log, row) && row.find(",allocate,0x") != std::string::npos);
}

void resources_of_each_device()
{
  const int N = hipmm::device_count();
  for (int i = 0; i < N; ++i) {
    const hipmm::device_guard guard{i}; // set device i before creating MR
    hipmm::rmm_resource pool{
        hipmm::make_resource(i, "pool", R"({"initial_size": "1MiB"})", {hipmm::make_resource(i, "device")})};
    // Set the per-device resource for device i
    rmm::mr::set_per_device_resource(cuda_device_id{i}, pool);
  }
  auto mr = rmm::mr::get_per_device_resource_ref(cuda_device_id{N - 1});
  const cuda::stream_ref stream{cudaStream_t{}};
  void *block = mr.allocate(stream, 1000, 256);
  CHECK(hipmm::block_of(block).owner.type() == "pool" && hipmm::block_of(block).owner.device() == N - 1);
  mr.deallocate(stream, block, 1000, 256);
  for (int i = 0; i < N; ++i) rmm::mr::set_per_device_resource(cuda_device_id{i}, hipmm::rmm_resource{});
}

/* ---- With one ---- */

void default_resources()
{
  hipmm::rmm_resource cuda_mr;
  // Construct a resource that uses a coalescing best-fit pool allocator
  // With the pool initially half of available device memory
  auto initial_size = rmm::percent_of_free_device_memory(50);
  hipmm::rmm_resource pool_mr{hipmm::make_resource(
      0, "pool", "{\"initial_size\": " + std::to_string(initial_size) + "}", {cuda_mr.get_resource()})};
  auto previous = rmm::mr::set_current_device_resource(pool_mr);
  auto mr = rmm::mr::get_current_device_resource_ref();
  CHECK(mr == pool_mr);
  rmm::mr::set_current_device_resource(std::move(previous));
}

void allocators()
{
  rmm::cuda_stream stream;
  rmm::mr::polymorphic_allocator<int> stream_alloc;
  // Constructs an adaptor that forwards all (de)allocations to `stream_alloc` on `stream`.
  auto adapted = rmm::mr::stream_allocator_adaptor(stream_alloc, stream);
  // Allocates storage for 100 ints using `stream_alloc` on `stream`
  auto p = adapted.allocate(100);
  // Deallocates using `stream_alloc` on `stream`
  adapted.deallocate(p, 100);
}

void data_structures()
{
  rmm::cuda_stream owner;
  cuda_stream_view s{owner};
  hipmm::rmm_resource mr;
  // Allocates at least 100 bytes on stream `s` using the *default* resource
  rmm::device_buffer b{100, s};
  CHECK(cudaMemsetAsync(b.data(), 7, b.size(), s.value()) == cudaSuccess); // `b` is only safe to use on `s`
  // Allocates at least 100 bytes on stream `s` using the resource `mr`
  rmm::device_buffer b2{100, s, mr};
  // Allocates uninitialized storage for 100 `int32_t` elements on stream `s` using the resource `mr`
  rmm::device_uvector<int32_t> v2{100, s, mr};
  // Initializes the elements to 0
  CHECK(cudaMemsetAsync(v2.data(), 0, v2.size() * sizeof(int32_t), s.value()) == cudaSuccess);
  CHECK(v2.back_element(s) == 0 && hipmm::block_of(v2.data()).ptr == v2.data());
  // Allocates uninitialized storage for a single `int32_t` in device memory
  rmm::device_scalar<int32_t> a{s};
  int32_t answer = 42;
  a.set_value_async(answer, s); // Updates the value in device memory to `42` on stream `s`
  int32_t v = a.value(s);       // Retrieves the value from device to host on stream `s`
  CHECK(v == 42);
}

std::unique_ptr<rmm::device_buffer> allocate(std::size_t size, cuda::mr::any_resource<cuda::mr::device_accessible> mr =
                                                                   rmm::mr::get_current_device_resource_ref())
{
  return std::make_unique<rmm::device_buffer>(size, rmm::cuda_stream_default, std::move(mr));
}

void resources_as_arguments()
{
  CHECK(allocate(100)->size() == 100 && allocate(100, hipmm::rmm_resource{})->size() == 100);
}

} // namespace

int main(int argc, char **argv)
{
  const hipmm::library library = hipmm::library::from_string(R"({"stack": ["device"]})");
  const test without_gpu[] = {{"26.x: logging", logging}, {"26.x: multiple devices", resources_of_each_device}};
  const int failed = run_tests(without_gpu);
  if (argc > 1 && !std::strcmp(argv[1], "resources")) return failed;
  rmm::mr::set_current_device_resource(hipmm::rmm_resource{});
  const test with_gpu[] = {
      {"26.x: default resources", default_resources},
      {"26.x: allocators", allocators},
      {"26.x: device data structures", data_structures},
      {"26.x: resources as arguments", resources_as_arguments},
  };
  return run_tests(with_gpu) | failed;
}
