// SPDX-License-Identifier: MIT
// The C++ examples of RMM 26.10's README: the same calls, made whole. Copies stand for kernels. HIP's headers are there, the
// names of the runtime are CUDA's, and the runtime is the software device.
#include "../cpp/test.hpp"

#include <rmm/cuda_device.hpp>
#include <rmm/cuda_stream.hpp>
#include <rmm/cuda_stream_pool.hpp>
#include <rmm/device_buffer.hpp>
#include <rmm/device_scalar.hpp>
#include <rmm/device_uvector.hpp>
#include <rmm/logger.hpp>
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/logging_resource_adaptor.hpp>
#include <rmm/mr/per_device_resource.hpp>
#include <rmm/mr/polymorphic_allocator.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#include <rmm/prefetch.hpp>
#include <rmm/resource_ref.hpp>

#include <cuda/memory_resource>
#include <cuda/std/span>
#include <cuda/stream>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace
{

using rmm::cuda_device_id;
using rmm::mr::set_per_device_resource;

void default_resources()
{
  rmm::mr::cuda_memory_resource cuda_mr;
  // Construct a resource that uses a coalescing best-fit pool allocator
  // With the pool initially half of available device memory
  auto initial_size = rmm::percent_of_free_device_memory(50);
  rmm::mr::pool_memory_resource pool_mr{cuda_mr, initial_size};
  auto previous = rmm::mr::set_current_device_resource(pool_mr);
  auto mr = rmm::mr::get_current_device_resource_ref();
  CHECK(mr == rmm::device_async_resource_ref{pool_mr} && mr == pool_mr && pool_mr.pool_size() >= initial_size);
  rmm::mr::set_current_device_resource(previous);
  CHECK(rmm::mr::get_current_device_resource_ref() == cuda_mr);
}

void multiple_devices()
{
  const int N = rmm::get_num_cuda_devices();
  CHECK(N == 2);
  for (int i = 0; i < N; ++i) {
    RMM_CUDA_TRY(cudaSetDevice(i)); // set device i before creating MR
    auto initial_size = rmm::percent_of_free_device_memory(50);
    rmm::mr::pool_memory_resource pool{rmm::mr::cuda_memory_resource{}, initial_size};
    // Set the per-device resource for device i
    set_per_device_resource(cuda_device_id{i}, pool);
  }
  CHECK(rmm::mr::get_per_device_resource_ref(cuda_device_id{0}) !=
        rmm::mr::get_per_device_resource_ref(cuda_device_id{1}));
  for (int i = 0; i < N; ++i) rmm::mr::reset_per_device_resource(cuda_device_id{i});
  {
    RMM_CUDA_TRY(cudaSetDevice(0));
    auto mr = rmm::mr::cuda_memory_resource{};
    rmm::device_buffer buf(16, cuda::stream_ref{cudaStream_t{cudaStreamDefault}}, mr);
    RMM_CUDA_TRY(cudaSetDevice(1));
    // No need to switch back to device 0 before ~buf runs
  }
  RMM_CUDA_TRY(cudaSetDevice(0));
}

void allocators()
{
  rmm::cuda_stream stream;
  rmm::mr::polymorphic_allocator<int> stream_alloc;

  // Constructs an adaptor that forwards all (de)allocations to `stream_alloc` on `stream`.
  auto adapted = rmm::mr::stream_allocator_adaptor(stream_alloc, stream);

  // Allocates storage for 100 ints using `stream_alloc` on `stream`
  auto p = adapted.allocate(100);
  CHECK(p != nullptr);
  // Deallocates using `stream_alloc` on `stream`
  adapted.deallocate(p, 100);
}

void data_structures()
{
  rmm::cuda_stream owner;
  cuda::stream_ref s{owner};
  rmm::mr::cuda_memory_resource mr;
  {
    // Allocates at least 100 bytes on stream `s` using the *default* resource
    rmm::device_buffer b{100, s};
    void *p = b.data();                                // Raw, untyped pointer to underlying device memory
    RMM_CUDA_TRY(cudaMemsetAsync(p, 7, 100, s.get())); // `b` is only safe to use on `s`

    // Allocates at least 100 bytes on stream `s` using the resource `mr`
    rmm::device_buffer b2{100, s, mr};
    RMM_CUDA_TRY(cudaMemcpyAsync(b2.data(), b.data(), 100, cudaMemcpyDefault, s.get()));
    std::string bytes(100, ' ');
    RMM_CUDA_TRY(cudaMemcpyAsync(bytes.data(), b2.data(), 100, cudaMemcpyDefault, s.get()));
    owner.synchronize();
    CHECK(bytes == std::string(100, '\7'));
  }
  {
    // Allocates uninitialized storage for 100 `int32_t` elements on stream `s` using the default resource
    rmm::device_uvector<int32_t> v(100, s);
    // Initializes the elements to 0
    RMM_CUDA_TRY(cudaMemsetAsync(v.data(), 0, v.size() * sizeof(int32_t), s.get()));
    CHECK(v.back_element(s) == 0);
    // Allocates uninitialized storage for 100 `int32_t` elements on stream `s` using the resource `mr`
    rmm::device_uvector<int32_t> v2{100, s, mr};
    cuda::std::span<const int32_t> elements{v2};
    CHECK(elements.data() == v2.data() && elements.size() == 100);
    rmm::prefetch(elements, rmm::get_current_cuda_device(), s);
  }
  {
    // Allocates uninitialized storage for a single `int32_t` in device memory
    rmm::device_scalar<int32_t> a{s};
    a.set_value(42, s);     // Updates the value in device memory to `42` on stream `s`
    int32_t v = a.value(s); // Retrieves the value from device to host on stream `s`
    CHECK(v == 42);
  }
}

void streams()
{
  rmm::cuda_stream_pool pool{2};
  cuda::stream_ref first = pool.get_stream(), other = pool.get_stream();
  CHECK(first != other && first == pool.get_stream() && pool.get_pool_size() == 2);
  rmm::cuda_stream_view view{first};
  CHECK(view == first && rmm::cuda_stream_default.value() == nullptr && rmm::cuda_stream_view{}.is_default());
}

void event_log()
{
  std::string filename{"logs/test1.csv"};
  {
    rmm::mr::cuda_memory_resource upstream;
    rmm::mr::logging_resource_adaptor log_mr{upstream, filename};
    cuda::stream_ref stream{cudaStream_t{cudaStreamDefault}};
    log_mr.deallocate(stream, log_mr.allocate(stream, 100), 100);
  }
  std::ifstream log{filename};
  std::string header, row;
  CHECK(std::getline(log, header) && header == "Thread,Time,Action,Pointer,Size,Stream");
  CHECK(std::getline(log, row) && row.find(",allocate,0x") != std::string::npos && std::getline(log, row) &&
        row.find(",free,0x") != std::string::npos);
}

void debug_log()
{
  rmm::default_logger().set_level(rapids_logger::level_enum::trace);
  RMM_LOG_INFO("[A][stream %s][%zu bytes]", std::string{"0x1"}, std::size_t{100});
  RMM_LOG_TRACE("%s", "is not compiled");
  rmm::default_logger().flush();
  std::ifstream log{"debug.txt"};
  std::string line, all;
  while (std::getline(log, line)) all += line + "\n";
  CHECK(all.find("[info  ] [A][stream 0x1][100 bytes]\n") != std::string::npos &&
        all.find("compiled") == std::string::npos);
}

} // namespace

int main()
{
  const test tests[] = {
      {"default resources", default_resources},
      {"multiple devices", multiple_devices},
      {"allocators", allocators},
      {"data structures", data_structures},
      {"streams", streams},
      {"event log", event_log},
      {"debug log", debug_log},
  };
  return run_tests(tests);
}
