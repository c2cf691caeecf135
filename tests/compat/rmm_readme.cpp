// SPDX-License-Identifier: MIT
// The C++ examples of the READMEs of hipMM (23.12), RMM 25.10 and, as far as their resources are objects that the program
// owns, RMM 26.x: the same calls, made whole. Copies stand for kernels. With HIP's headers the runtime's names are written in
// both spellings; the runtime is the software device.
#include "../cpp/test.hpp"

#include <rmm/aligned.hpp>
#include <rmm/cuda_device.hpp>
#include <rmm/cuda_stream.hpp>
#include <rmm/device_buffer.hpp>
#include <rmm/device_scalar.hpp>
#include <rmm/device_uvector.hpp>
#include <rmm/error.hpp>
#include <rmm/logger.hpp>
#include <rmm/mr/device/cuda_memory_resource.hpp>
#include <rmm/mr/device/logging_resource_adaptor.hpp>
#include <rmm/mr/device/managed_memory_resource.hpp>
#include <rmm/mr/device/per_device_resource.hpp>
#include <rmm/mr/device/polymorphic_allocator.hpp>
#include <rmm/mr/device/pool_memory_resource.hpp>
#include <rmm/resource_ref.hpp>

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace
{

/* ---- hipMM, and RMM 23.12 ---- */

void default_resources_of_23()
{
  {
    rmm::mr::cuda_memory_resource cuda_mr;
    // Construct a resource that uses a coalescing best-fit pool allocator
    rmm::mr::pool_memory_resource<rmm::mr::cuda_memory_resource> pool_mr{&cuda_mr};
    rmm::mr::set_current_device_resource(&pool_mr); // Updates the current device resource pointer to `pool_mr`
    rmm::mr::device_memory_resource *mr = rmm::mr::get_current_device_resource(); // Points to `pool_mr`
    CHECK(mr == &pool_mr && pool_mr.pool_size() > 0);
    rmm::mr::set_current_device_resource(nullptr);
  }
}

void multiple_devices_of_23()
{
  using pool_memory_resource = rmm::mr::pool_memory_resource<rmm::mr::cuda_memory_resource>;
  rmm::mr::cuda_memory_resource upstream;
  const int N = rmm::get_num_cuda_devices();
  std::vector<std::unique_ptr<pool_memory_resource>> per_device_pools;
  for (int i = 0; i < N; ++i) {
    RMM_CUDA_TRY(hipSetDevice(i)); // set device i before creating MR
    // Use a vector of unique_ptr to maintain the lifetime of the MRs
    per_device_pools.push_back(std::make_unique<pool_memory_resource>(&upstream, 1 << 20));
    // Set the per-device resource for device i
    rmm::mr::set_per_device_resource(rmm::cuda_device_id{i}, per_device_pools.back().get());
  }
  {
    RMM_CUDA_TRY(hipSetDevice(0));
    rmm::device_buffer buf_a(16);
    {
      RMM_CUDA_TRY(hipSetDevice(1));
      rmm::device_buffer buf_b(16);
      CHECK(buf_b.memory_resource() == rmm::mr::device_async_resource_ref{per_device_pools[1].get()});
    }
    RMM_CUDA_TRY(hipSetDevice(0));
  }
  for (int i = 0; i < N; ++i) rmm::mr::set_per_device_resource(rmm::cuda_device_id{i}, nullptr);
}

void allocators_of_23()
{
  rmm::cuda_stream stream;
  rmm::mr::polymorphic_allocator<int> stream_alloc;

  // Constructs an adaptor that forwards all (de)allocations to `stream_alloc` on `stream`.
  auto adapted = rmm::mr::make_stream_allocator_adaptor(stream_alloc, stream);

  // Allocates 100 bytes using `stream_alloc` on `stream`
  auto p = adapted.allocate(100);
  CHECK(p != nullptr);
  // Deallocates using `stream_alloc` on `stream`
  adapted.deallocate(p, 100);
}

/* What the examples call my_custom_resource. */
class my_custom_resource : public rmm::mr::device_memory_resource
{
public:
  [[nodiscard]] bool supports_streams() const noexcept override
  {
    return true;
  }
  [[nodiscard]] bool supports_get_mem_info() const noexcept override
  {
    return false;
  }
  std::size_t held = 0;

private:
  void *do_allocate(std::size_t bytes, rmm::cuda_stream_view stream) override
  {
    void *ptr = nullptr;
    RMM_CUDA_TRY_ALLOC(cudaMallocAsync(&ptr, bytes, stream.value()));
    held += bytes;
    return ptr;
  }
  void do_deallocate(void *ptr, std::size_t bytes, rmm::cuda_stream_view stream) override
  {
    RMM_ASSERT_CUDA_SUCCESS(cudaFreeAsync(ptr, stream.value()));
    held -= bytes;
  }
  [[nodiscard]] std::pair<std::size_t, std::size_t> do_get_mem_info(rmm::cuda_stream_view) const override
  {
    return {0, 0};
  }
};

void data_structures_of_23()
{
  rmm::cuda_stream owner;
  rmm::cuda_stream_view s{owner};
  auto *custom = new my_custom_resource{};
  rmm::mr::device_memory_resource *mr = custom;
  {
    // Allocates at least 100 bytes on stream `s` using the *default* resource
    rmm::device_buffer b{100, s};
    void *p = b.data();                                  // Raw, untyped pointer to underlying device memory
    RMM_CUDA_TRY(cudaMemsetAsync(p, 7, 100, s.value())); // `b` is only safe to use on `s`

    // Allocates at least 100 bytes on stream `s` using the resource `mr`
    rmm::device_buffer b2{100, s, mr};
    RMM_CUDA_TRY(cudaMemcpyAsync(b2.data(), b.data(), 100, cudaMemcpyDefault, s.value()));
    CHECK(custom->held == 100);
    std::string bytes(100, ' ');
    RMM_CUDA_TRY(cudaMemcpyAsync(&bytes[0], b2.data(), 100, cudaMemcpyDefault, s.value()));
    s.synchronize();
    CHECK(bytes == std::string(100, '\7'));
  }
  {
    // Allocates uninitialized storage for 100 `int32_t` elements on stream `s` using the default resource
    rmm::device_uvector<int32_t> v(100, s);
    // Initializes the elements to 0
    RMM_CUDA_TRY(hipMemsetAsync(v.data(), 0, v.size() * sizeof(int32_t), s.value()));
    CHECK(v.back_element(s) == 0);
    // Allocates uninitialized storage for 100 `int32_t` elements on stream `s` using the resource `mr`
    rmm::device_uvector<int32_t> v2{100, s, mr};
    CHECK(custom->held == 400);
  }
  {
    // Allocates uninitialized storage for a single `int32_t` in device memory
    rmm::device_scalar<int32_t> a{s};
    a.set_value(42, s); // Updates the value in device memory to `42` on stream `s`
    int32_t copied = 0;
    RMM_CUDA_TRY(cudaMemcpyAsync(&copied, a.data(), sizeof copied, cudaMemcpyDeviceToHost, s.value()));
    int32_t v = a.value(s); // Retrieves the value from device to host on stream `s`
    CHECK(v == 42 && copied == 42);
  }
  CHECK(custom->held == 0);
  delete mr;
}

void logging_of_23()
{
  std::string filename{"logs/test1.csv"};
  {
    rmm::mr::cuda_memory_resource upstream;
    rmm::mr::logging_resource_adaptor<rmm::mr::cuda_memory_resource> log_mr{&upstream, filename};
    log_mr.deallocate(log_mr.allocate(100), 100);
  }
  std::ifstream log{filename};
  std::string header;
  CHECK(std::getline(log, header) && header == "Thread,Time,Action,Pointer,Size,Stream");
  rmm::logger().set_level(spdlog::level::trace);
  CHECK(rmm::logger().should_log(spdlog::level::debug));
}

/* ---- RMM 25.10 ---- */

void default_resources_of_25()
{
  rmm::mr::cuda_memory_resource cuda_mr;
  // With the pool initially half of available device memory
  auto initial_size = rmm::percent_of_free_device_memory(50);
  rmm::mr::pool_memory_resource<rmm::mr::cuda_memory_resource> pool_mr{&cuda_mr, initial_size};
  rmm::mr::set_current_device_resource(&pool_mr); // Updates the current device resource pointer to `pool_mr`
  rmm::mr::device_memory_resource *mr = rmm::mr::get_current_device_resource(); // Points to `pool_mr`
  CHECK(mr == &pool_mr && pool_mr.pool_size() >= initial_size);
  rmm::mr::set_current_device_resource(nullptr);
}

void multiple_devices_of_25()
{
  RMM_CUDA_TRY(cudaSetDevice(0));
  auto mr = rmm::mr::cuda_memory_resource{};
  {
    rmm::device_buffer buf(16, rmm::cuda_stream_default, &mr);
    RMM_CUDA_TRY(cudaSetDevice(1));
    // No need to switch back to device 0 before ~buf runs
  }
  RMM_CUDA_TRY(cudaSetDevice(0));
}

using rmm::mr::get_current_device_resource;

std::unique_ptr<rmm::device_buffer> allocate(std::size_t size,
                                             rmm::mr::device_async_resource_ref mr = get_current_device_resource())
{
  return std::make_unique<rmm::device_buffer>(size, rmm::cuda_stream_default, mr);
}

void allocators_of_25()
{
  rmm::cuda_stream stream;
  rmm::mr::polymorphic_allocator<int> stream_alloc;
  auto adapted = rmm::mr::stream_allocator_adaptor(stream_alloc, stream);
  auto p = adapted.allocate(100);
  adapted.deallocate(p, 100);
  rmm::mr::managed_memory_resource managed;
  CHECK(allocate(10)->size() == 10 &&
        allocate(20, &managed)->memory_resource() == rmm::device_async_resource_ref{managed});
}

/* ---- RMM 26.x, whose resources are given by reference ---- */

void resources_of_26()
{
  rmm::mr::cuda_memory_resource cuda_mr;
  auto initial_size = rmm::percent_of_free_device_memory(50);
  rmm::mr::pool_memory_resource pool_mr{cuda_mr, initial_size};
  auto previous = rmm::mr::set_current_device_resource(pool_mr);
  auto mr = rmm::mr::get_current_device_resource_ref();
  CHECK(mr == rmm::device_async_resource_ref{pool_mr} && previous != mr);
  rmm::mr::set_current_device_resource(previous);
}

void data_structures_of_26()
{
  rmm::cuda_stream_view s{};
  rmm::mr::cuda_memory_resource mr;
  rmm::device_buffer b2{100, s, mr};
  rmm::device_uvector<int32_t> v2{100, s, mr};
  CHECK(b2.size() == 100 && v2.size() == 100);
  {
    RMM_CUDA_TRY(cudaSetDevice(0));
    rmm::device_buffer buf(16, rmm::cuda_stream_default, mr);
    RMM_CUDA_TRY(cudaSetDevice(1));
  }
  RMM_CUDA_TRY(cudaSetDevice(0));
  std::string filename{"logs/test2.csv"};
  rmm::mr::cuda_memory_resource upstream;
  rmm::mr::logging_resource_adaptor log_mr{upstream, filename};
  log_mr.deallocate(log_mr.allocate(100), 100);
}

} // namespace

int main()
{
  const test tests[] = {
      {"23.12: default resources", default_resources_of_23},
      {"23.12: multiple devices", multiple_devices_of_23},
      {"23.12: allocators", allocators_of_23},
      {"23.12: device data structures", data_structures_of_23},
      {"23.12: logging", logging_of_23},
      {"25.10: default resources", default_resources_of_25},
      {"25.10: multiple devices", multiple_devices_of_25},
      {"25.10: allocators, and resources as arguments", allocators_of_25},
      {"26.x: default resources", resources_of_26},
      {"26.x: device data structures and logging", data_structures_of_26},
  };
  return run_tests(tests);
}
