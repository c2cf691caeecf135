// SPDX-License-Identifier: MIT
// hipmm/rmm.hpp with the RMM that the compiler finds, on the software device: allocation, RMM's exceptions, equality, and
// RMM's table of devices. RMM's containers need a GPU: see tests/lab/gpu/rmm_containers.cpp.
#include "test.hpp"

#include <hipmm/hipmm.hpp>
#include <hipmm/rmm.hpp>

#if __has_include(<rmm/mr/per_device_resource.hpp>)
#include <rmm/mr/per_device_resource.hpp>
#include <rmm/resource_ref.hpp>
#else
#include <rmm/mr/device/per_device_resource.hpp>
#endif

namespace
{

hipmm::library two_pools()
{
  return hipmm::library::from_string(R"({"resources": {"memory": {"type": "device"},)"
                                     R"( "main": {"type": "pool", "upstream": "memory", "maximum_size": "8MiB"},)"
                                     R"( "counted": {"type": "statistics", "upstream": "main"},)"
                                     R"( "weights": {"type": "limiting", "upstream": "counted", "limit": "1MiB"}},)"
                                     R"( "devices": {"default": "counted"}})");
}

#if __has_include(<rmm/mr/device/device_memory_resource.hpp>)
using over_hipmm = hipmm::rmm_device_resource;

void *allocate(over_hipmm &from, std::size_t bytes)
{
  return from.allocate(bytes, rmm::cuda_stream_view{});
}
void deallocate(over_hipmm &from, void *ptr, std::size_t bytes)
{
  from.deallocate(ptr, bytes, rmm::cuda_stream_view{});
}
bool is_equal(const over_hipmm &one, const over_hipmm &other)
{
  return one.is_equal(other);
}

void serves_what_asks_rmm(over_hipmm &main)
{
  const rmm::cuda_device_id device{0};
  rmm::mr::device_memory_resource *before = rmm::mr::set_per_device_resource(device, &main);
  rmm::mr::device_memory_resource *current = rmm::mr::get_per_device_resource(device);
  CHECK(current == &main);
  void *block = current->allocate(4096, rmm::cuda_stream_view{});
  CHECK(main.get_resource().statistics().current_bytes == 4096);
  current->deallocate(block, 4096, rmm::cuda_stream_view{});
  rmm::mr::set_per_device_resource(device, before);
}
#else
using over_hipmm = hipmm::rmm_resource;

void *allocate(over_hipmm &from, std::size_t bytes)
{
  return from.allocate(cuda::stream_ref{cudaStream_t{}}, bytes);
}
void deallocate(over_hipmm &from, void *ptr, std::size_t bytes)
{
  from.deallocate(cuda::stream_ref{cudaStream_t{}}, ptr, bytes);
}
bool is_equal(const over_hipmm &one, const over_hipmm &other)
{
  return one == other;
}

void serves_what_asks_rmm(over_hipmm &main)
{
  const rmm::cuda_device_id device{0};
  rmm::mr::set_per_device_resource(device, main);
  auto current = rmm::mr::get_per_device_resource_ref(device);
  const cuda::stream_ref stream{cudaStream_t{}};
  void *block = current.allocate(stream, 4096, 256);
  CHECK(main.get_resource().statistics().current_bytes == 4096);
  current.deallocate(stream, block, 4096, 256);

  const std::size_t largest = hipmm::rmm_resource::is_alignment_limited ? 256 : 512;
  void *now = main.allocate_sync(100, largest);
  main.deallocate_sync(now, 100, largest);
  if constexpr (hipmm::rmm_resource::is_alignment_limited) {
    for (const std::size_t wrong : {0, 3, 512, 768}) {
      const std::string message = "align to " + std::to_string(wrong) + " bytes";
      CHECK_THROWS(rmm::bad_alloc, message, (void)main.allocate(stream, 100, wrong));
      CHECK_THROWS(rmm::bad_alloc, message, (void)main.allocate_sync(100, wrong));
      CHECK(main.allocate(stream, 0, wrong) == nullptr);
      main.deallocate(stream, nullptr, 0, wrong);
    }
  } else {
    CHECK_THROWS(rmm::logic_error, "alignment", (void)main.allocate(stream, 100, 768));
  }
  rmm::mr::reset_per_device_resource(device); /* it owns a reference to the stack */
}
#endif

void resources_serve_rmm()
{
  const hipmm::library library = two_pools();
  over_hipmm main, same, weights{"weights"};
  CHECK(is_equal(main, same) && !is_equal(main, weights) && weights.get_resource().name() == "weights");
  void *block = allocate(main, 1000);
  CHECK(block && main.get_resource().statistics().current_count == 1);
  deallocate(same, block, 1000);
  CHECK(main.get_resource().statistics().current_count == 0);
  serves_what_asks_rmm(main);
  const over_hipmm taken{std::move(weights)};
  CHECK(is_equal(weights, taken));
  CHECK(main.get_resource().statistics().current_count == 0);
}

void exceptions_are_those_of_rmm()
{
  const hipmm::library library = two_pools();
  over_hipmm main, weights{"weights"};
  CHECK_THROWS(rmm::out_of_memory, "main: cannot allocate", (void)allocate(main, 16U << 20U));
  CHECK_THROWS(rmm::out_of_memory, "weights", (void)allocate(weights, 2U << 20U));
  CHECK_THROWS(hipmm::error, "nothing", over_hipmm{"nothing"});
}

#if !__has_include(<rmm/mr/device/device_memory_resource.hpp>)
/* Memory of the host and the device, as cuDF wants its pinned resource. */
void host_resources_say_so()
{
  const hipmm::library library = two_pools();
  static_assert(!cuda::mr::resource_with<hipmm::rmm_resource, cuda::mr::host_accessible>);
  hipmm::rmm_host_resource pinned{hipmm::make_resource(0, "pool", "{}", {hipmm::make_resource(0, "pinned")})};
  rmm::host_device_async_resource_ref ref{pinned};
  const cuda::stream_ref stream{cudaStream_t{}};
  auto *block = static_cast<char *>(ref.allocate(stream, 1000, 256));
  block[999] = 'x';
  CHECK(hipmm::block_of(block).owner == pinned.get_resource() && block[999] == 'x');
  ref.deallocate(stream, block, 1000, 256);
  const hipmm::rmm_host_resource same{pinned.get_resource()};
  CHECK(same == pinned);
  CHECK_THROWS(rmm::logic_error, "the host cannot access memory of \"counted\"", hipmm::rmm_host_resource{});
  CHECK_THROWS(rmm::logic_error, "weights", hipmm::rmm_host_resource{"weights"});
}
#endif

void stacks_stand_over_rmm()
{
  const hipmm::library library = two_pools();
  over_hipmm below;
  const hipmm::resource counted = below.get_resource();
  {
    const hipmm::allocator_functions rmm = hipmm::functions_of("rmm", below);
    const hipmm::stack stack =
        hipmm::stack::from_string(0, R"({"stack": ["pool", {"type": "callback", "allocator": "rmm"}]})");
    void *block = stack.top().allocate(5000);
    CHECK(counted.statistics().current_bytes >= 5000);
    stack.top().deallocate(block, 5000);
    CHECK_THROWS(std::bad_alloc, "", (void)stack.top().allocate(16U << 20U));
  }
  CHECK(counted.statistics().current_count == 0);
}

} // namespace

int main()
{
  const test tests[] = {
    {"resources serve RMM", resources_serve_rmm},
    {"exceptions are those of RMM", exceptions_are_those_of_rmm},
    {"stacks stand over RMM", stacks_stand_over_rmm},
#if !__has_include(<rmm/mr/device/device_memory_resource.hpp>)
    {"host resources say so", host_resources_say_so},
#endif
  };
  return run_tests(tests);
}
