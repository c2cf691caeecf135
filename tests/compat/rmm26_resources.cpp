// SPDX-License-Identifier: MIT
// Resources as values in a program of RMM 26, through the compatible headers, on two software devices. The argument names a
// folder for logs. The names of RMM are written as such a program writes them.
#include "../cpp/test.hpp"

#include <rmm/cuda_device.hpp>
#include <rmm/cuda_stream_pool.hpp>
#include <rmm/detail/aligned.hpp>
#include <rmm/device_scalar.hpp>
#include <rmm/device_uvector.hpp>
#include <rmm/mr/aligned_resource_adaptor.hpp>
#include <rmm/mr/arena_memory_resource.hpp>
#include <rmm/mr/binning_memory_resource.hpp>
#include <rmm/mr/callback_memory_resource.hpp>
#include <rmm/mr/cuda_async_managed_memory_resource.hpp>
#include <rmm/mr/cuda_async_memory_resource.hpp>
#include <rmm/mr/cuda_async_view_memory_resource.hpp>
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/failure_callback_resource_adaptor.hpp>
#include <rmm/mr/fixed_size_memory_resource.hpp>
#include <rmm/mr/limiting_resource_adaptor.hpp>
#include <rmm/mr/logging_resource_adaptor.hpp>
#include <rmm/mr/managed_memory_resource.hpp>
#include <rmm/mr/per_device_resource.hpp>
#include <rmm/mr/pinned_host_memory_resource.hpp>
#include <rmm/mr/polymorphic_allocator.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#include <rmm/mr/prefetch_resource_adaptor.hpp>
#include <rmm/mr/sam_headroom_memory_resource.hpp>
#include <rmm/mr/statistics_resource_adaptor.hpp>
#include <rmm/mr/system_memory_resource.hpp>
#include <rmm/mr/thread_safe_resource_adaptor.hpp>
#include <rmm/mr/tracking_resource_adaptor.hpp>
#include <rmm/process_is_exiting.hpp>

#include <cuda/memory_resource>
#include <cuda/stream>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

/* With a name: clang warns of friends in a namespace without one. */
namespace program
{

using device_memory = rmm::mr::cuda_memory_resource;
using any_device = cuda::mr::any_resource<cuda::mr::device_accessible>;
using any_host_device = cuda::mr::any_resource<cuda::mr::host_accessible, cuda::mr::device_accessible>;

constexpr std::size_t KiB = 1024, MiB = 1024 * KiB;
constexpr std::size_t aligned_to_256 = rmm::CUDA_ALLOCATION_ALIGNMENT;

inline std::string folder = ".";

inline cuda::stream_ref default_stream()
{
  return cuda::stream_ref{decltype(rmm::cuda_stream_view{}.value()){}};
}

/* A resource of the program's, of which all copies count in one place, and that throws what it is told to. */
struct unhappy {
};
struct counts {
  std::size_t held = 0, calls = 0, copies = 0;
  int failures = 0;
  bool is_unhappy = false;
};
class program_memory
{
public:
  explicit program_memory(std::shared_ptr<counts> shared) : shared_{std::move(shared)}
  {
    shared_->copies++;
  }
  program_memory(const program_memory &other) : shared_{other.shared_}
  {
    shared_->copies++;
  }
  program_memory &operator=(const program_memory &other)
  {
    other.shared_->copies++;
    shared_->copies--;
    shared_ = other.shared_;
    return *this;
  }
  ~program_memory()
  {
    shared_->copies--;
  }

  void *allocate(cuda::stream_ref stream, std::size_t bytes, std::size_t alignment = aligned_to_256)
  {
    shared_->calls++;
    if (shared_->failures > 0) {
      shared_->failures--;
      if (shared_->is_unhappy) throw unhappy{};
      throw rmm::out_of_memory{"the program says no"};
    }
    shared_->held += bytes;
    return memory_.allocate(stream, bytes, alignment);
  }
  void deallocate(cuda::stream_ref stream, void *ptr, std::size_t bytes,
                  std::size_t alignment = aligned_to_256) noexcept
  {
    shared_->held -= bytes;
    memory_.deallocate(stream, ptr, bytes, alignment);
  }
  void *allocate_sync(std::size_t bytes, std::size_t alignment = aligned_to_256)
  {
    return allocate(default_stream(), bytes, alignment);
  }
  void deallocate_sync(void *ptr, std::size_t bytes, std::size_t alignment = aligned_to_256) noexcept
  {
    deallocate(default_stream(), ptr, bytes, alignment);
  }

  bool operator==(const program_memory &other) const noexcept
  {
    return shared_ == other.shared_;
  }
  bool operator!=(const program_memory &other) const noexcept
  {
    return shared_ != other.shared_;
  }
  friend constexpr void get_property(const program_memory &, cuda::mr::device_accessible) noexcept
  {
  }

private:
  std::shared_ptr<counts> shared_;
  device_memory memory_;
};

} // namespace program

namespace
{

using namespace program;

/* ---- What the compiler checks ---- */

template <typename Resource>
constexpr bool is_device = cuda::mr::resource_with<Resource, cuda::mr::device_accessible>
    &&cuda::mr::synchronous_resource_with<Resource, cuda::mr::device_accessible>;
template <typename Resource>
constexpr bool is_host = cuda::mr::resource_with<Resource, cuda::mr::host_accessible, cuda::mr::device_accessible>;

static_assert(is_device<rmm::mr::aligned_resource_adaptor> && is_device<rmm::mr::arena_memory_resource> &&
              is_device<rmm::mr::binning_memory_resource> && is_device<rmm::mr::callback_memory_resource> &&
              is_device<rmm::mr::cuda_async_memory_resource> && is_device<rmm::mr::cuda_async_view_memory_resource> &&
              is_device<device_memory> && is_device<rmm::mr::failure_callback_resource_adaptor<>> &&
              is_device<rmm::mr::fixed_size_memory_resource> && is_device<rmm::mr::limiting_resource_adaptor> &&
              is_device<rmm::mr::logging_resource_adaptor> && is_device<rmm::mr::pool_memory_resource> &&
              is_device<rmm::mr::prefetch_resource_adaptor> && is_device<rmm::mr::statistics_resource_adaptor> &&
              is_device<rmm::mr::thread_safe_resource_adaptor> && is_device<rmm::mr::tracking_resource_adaptor> &&
              is_device<program_memory>);
static_assert(is_host<rmm::mr::managed_memory_resource> && is_host<rmm::mr::pinned_host_memory_resource> &&
              is_host<rmm::mr::system_memory_resource> && is_host<rmm::mr::sam_headroom_memory_resource> &&
              is_host<rmm::mr::cuda_async_managed_memory_resource>);
static_assert(!is_host<device_memory> && !is_host<rmm::mr::pool_memory_resource> && !is_host<program_memory>);
static_assert(std::is_constructible_v<rmm::device_async_resource_ref, rmm::host_device_async_resource_ref> &&
              std::is_constructible_v<rmm::host_async_resource_ref, rmm::host_device_async_resource_ref> &&
              std::is_constructible_v<rmm::device_resource_ref, rmm::host_device_resource_ref>);
static_assert(!std::is_constructible_v<any_host_device, device_memory> &&
              std::is_constructible_v<any_host_device, rmm::mr::managed_memory_resource>);
static_assert(std::is_copy_assignable_v<rmm::mr::pool_memory_resource> &&
              std::is_nothrow_move_constructible_v<rmm::mr::pool_memory_resource>);

/* ---- Values ---- */

void shares_one_resource_between_copies()
{
  rmm::mr::pool_memory_resource pool{device_memory{}, MiB, 4 * MiB};
  auto copy = pool;
  rmm::mr::pool_memory_resource other{device_memory{}, MiB, 4 * MiB};
  CHECK(copy == pool && other != pool && copy.hipmm_resource().type() == "pool");
  void *block = copy.allocate(default_stream(), 1000);
  CHECK(reinterpret_cast<std::uintptr_t>(block) % 256 == 0);
  pool.deallocate(default_stream(), block, 1000);
  other = pool;
  CHECK(other == pool && pool.pool_size() >= MiB && pool.get_upstream_resource() == device_memory{});
  rmm::mr::statistics_resource_adaptor counted{pool};
  CHECK(counted.hipmm_resource().upstreams().at(0) == pool.hipmm_resource()); // a chain in hipmm, without a callback
  rmm::mr::statistics_resource_adaptor above{any_device{rmm::device_async_resource_ref{pool}}};
  CHECK(above.hipmm_resource().upstreams().at(0) == pool.hipmm_resource());
}

void erases_types()
{
  auto shared = std::make_shared<counts>();
  program_memory mine{shared};
  any_device any{mine}, empty;
  CHECK(shared->copies == 2 && any.has_value() && !empty.has_value() && any == mine &&
        any != any_device{device_memory{}});
  rmm::device_async_resource_ref ref{mine}, through{any};
  CHECK(ref == through && ref == mine && shared->copies == 2);
  any_device copy{ref};
  CHECK(shared->copies == 3 && copy == any);
  void *block = copy.allocate(default_stream(), 500, aligned_to_256);
  CHECK(shared->held == 500);
  through.deallocate(default_stream(), block, 500, aligned_to_256);
  any_device moved{std::move(copy)};
  CHECK(shared->copies == 3 && !copy.has_value() && moved == mine && shared->held == 0);
  copy = moved;
  moved = device_memory{};
  CHECK(shared->copies == 3 && copy == mine && moved == device_memory{});
  any_host_device pinned{rmm::mr::pinned_host_memory_resource{}};
  any_device narrow{pinned};
  CHECK(narrow == rmm::mr::pinned_host_memory_resource{});
  rmm::host_device_async_resource_ref both{pinned};
  rmm::device_async_resource_ref less{both};
  CHECK(less == narrow);
}

/* A class of the program's over an upstream, whose properties it has. */
struct forwarding : cuda::forward_property<forwarding, rmm::host_device_async_resource_ref> {
  rmm::host_device_async_resource_ref upstream;

  explicit forwarding(rmm::host_device_async_resource_ref from) : upstream{from}
  {
  }
  rmm::host_device_async_resource_ref upstream_resource() const
  {
    return upstream;
  }
  void *allocate(cuda::stream_ref stream, std::size_t bytes, std::size_t alignment)
  {
    return upstream.allocate(stream, bytes, alignment);
  }
  void deallocate(cuda::stream_ref stream, void *ptr, std::size_t bytes, std::size_t alignment) noexcept
  {
    upstream.deallocate(stream, ptr, bytes, alignment);
  }
  void *allocate_sync(std::size_t bytes, std::size_t alignment)
  {
    return upstream.allocate_sync(bytes, alignment);
  }
  void deallocate_sync(void *ptr, std::size_t bytes, std::size_t alignment) noexcept
  {
    upstream.deallocate_sync(ptr, bytes, alignment);
  }
  bool operator==(const forwarding &other) const
  {
    return upstream == other.upstream;
  }
  bool operator!=(const forwarding &other) const
  {
    return upstream != other.upstream;
  }
};
static_assert(is_device<forwarding> && is_host<forwarding>);

void finds_what_was_erased()
{
  rmm::mr::limiting_resource_adaptor limited{device_memory{}, MiB};
  any_device any{limited};
  const any_device &same = any;
  rmm::device_async_resource_ref ref{limited};
  auto *held = cuda::mr::resource_cast<rmm::mr::limiting_resource_adaptor>(&any);
  CHECK(held && held != &limited && *held == limited);
  CHECK(cuda::mr::resource_cast<rmm::mr::limiting_resource_adaptor>(&same) == held);
  CHECK(cuda::mr::resource_cast<rmm::mr::limiting_resource_adaptor>(&ref) == &limited);
  CHECK(!cuda::mr::resource_cast<device_memory>(&any) && !cuda::mr::resource_cast<device_memory>(&ref));

  rmm::mr::pinned_host_memory_resource pinned;
  any_host_device over{forwarding{rmm::host_device_async_resource_ref{pinned}}};
  auto *bytes = static_cast<unsigned char *>(over.allocate(default_stream(), 100, aligned_to_256));
  bytes[99] = 1;
  over.deallocate(default_stream(), bytes, 100, aligned_to_256);
}

void is_an_upstream_by_value()
{
  auto shared = std::make_shared<counts>();
  {
    std::optional<rmm::mr::pool_memory_resource> pool{std::in_place, program_memory{shared}, MiB};
    CHECK(shared->held >= MiB && shared->copies > 0);
    rmm::mr::statistics_resource_adaptor counted{*pool};
    rmm::device_uvector<int> vector{100, default_stream(), counted};
    pool.reset(); // the adaptor and the vector go on
    vector.set_element(99, 7, default_stream());
    vector.resize(2000, default_stream());
    CHECK(vector.element(99, default_stream()) == 7 && counted.get_bytes_counter().value == 8000);
  }
  CHECK(shared->held == 0 && shared->copies == 0);
}

void outlives_its_resources()
{
  auto shared = std::make_shared<counts>();
  std::optional<rmm::device_buffer> buffer;
  std::optional<rmm::device_scalar<int>> scalar;
  {
    const program_memory mine{shared};
    rmm::mr::limiting_resource_adaptor limit{mine, MiB};
    buffer.emplace(1000, default_stream(), limit);
    const int value = 5;
    scalar.emplace(value, default_stream(), mine);
    rmm::mr::set_current_device_resource(limit);
  }
  std::optional<rmm::device_buffer> other{std::in_place, std::size_t{2000}, default_stream()};
  CHECK_THROWS(rmm::out_of_memory, "limit", rmm::device_buffer(2 * MiB, default_stream()));
  rmm::mr::reset_current_device_resource();
  buffer->resize(3000, default_stream());
  CHECK(shared->held > 5000 && scalar->value(default_stream()) == 5);
  rmm::device_buffer taken{std::move(*other)};
  buffer.reset();
  scalar.reset();
  CHECK(shared->held == 2000);
  taken = rmm::device_buffer{};
  other.reset(); // which was moved from, and could be used again
  CHECK(shared->held == 0 && shared->copies == 0);
}

void survives_moves()
{
  rmm::mr::pool_memory_resource pool{device_memory{}, MiB};
  rmm::mr::pool_memory_resource taken{std::move(pool)};
  void *block = pool.allocate(default_stream(), 100); // a moved-from value still shares the resource
  taken.deallocate(default_stream(), block, 100);
  CHECK(pool == taken);

  any_device any{taken}, target{std::move(any)};
  CHECK_THROWS(rmm::logic_error, "moved from", rmm::mr::statistics_resource_adaptor{any});
  CHECK_THROWS(rmm::logic_error, "moved from", rmm::device_buffer(100, default_stream(), any));
  CHECK_THROWS(rmm::logic_error, "moved from", rmm::mr::set_current_device_resource(any));
  CHECK(rmm::mr::get_current_device_resource_ref() == device_memory{});

  rmm::device_buffer buffer{100, default_stream(), target}, other{std::move(buffer)};
  CHECK(buffer.size() == 0 && buffer.alignment() == 1 && !buffer.data() && buffer.capacity() == 0 &&
        other.size() == 100);
  buffer.resize(50, default_stream()); // a moved-from buffer may be used again
  CHECK(buffer.size() == 50 && buffer.memory_resource() == taken && other.memory_resource() == taken);
  rmm::device_uvector<int> vector{10, default_stream()}, stolen{std::move(vector)};
  CHECK(vector.is_empty() && stolen.size() == 10);
  CHECK_THROWS(rmm::out_of_range, "out of bounds", static_cast<void>(vector.element(0, default_stream())));
  rmm::mr::cuda_async_view_memory_resource none;
  CHECK_THROWS(rmm::logic_error, "no memory", static_cast<void>(none.allocate(default_stream(), 100)));
}

/* ---- Exceptions and arguments ---- */

void lets_exceptions_of_the_program_pass()
{
  auto shared = std::make_shared<counts>();
  rmm::mr::statistics_resource_adaptor counted{program_memory{shared}};
  shared->failures = 2;
  CHECK_THROWS(rmm::out_of_memory, "the program says no", static_cast<void>(counted.allocate(default_stream(), 100)));
  shared->is_unhappy = true;
  bool is_thrown = false;
  try {
    rmm::device_buffer buffer{100, default_stream(), counted};
  } catch (const unhappy &) {
    is_thrown = true;
  }
  CHECK(is_thrown && counted.get_bytes_counter().value == 0);
}

void calls_back_on_its_exception_alone()
{
  auto shared = std::make_shared<counts>();
  int called = 0;
  const auto again = [](std::size_t bytes, void *arg) {
    CHECK(bytes == 100);
    return ++*static_cast<int *>(arg) < 3;
  };
  rmm::mr::failure_callback_resource_adaptor<> retrying{program_memory{shared}, again, &called};
  shared->failures = 2;
  retrying.deallocate(default_stream(), retrying.allocate(default_stream(), 100), 100);
  CHECK(called == 2 && shared->calls == 3);
  rmm::mr::failure_callback_resource_adaptor<rmm::cuda_error> other{program_memory{shared}, again, &called};
  shared->failures = 1;
  CHECK_THROWS(rmm::out_of_memory, "says no", static_cast<void>(other.allocate(default_stream(), 100)));
  shared->failures = 9;
  CHECK_THROWS(rmm::out_of_memory, "says no", static_cast<void>(retrying.allocate(default_stream(), 100)));
  CHECK(called == 3);
}

void refuses_wrong_arguments()
{
  device_memory memory;
  CHECK_THROWS(rmm::logic_error, "multiple of 256", rmm::mr::pool_memory_resource(memory, 1000));
  CHECK_THROWS(rmm::logic_error, "exceeds", rmm::mr::pool_memory_resource(memory, 2 * MiB, MiB));
  CHECK_THROWS(rmm::logic_error, "Arena size", rmm::mr::arena_memory_resource(memory, 1000));
  CHECK_THROWS(rmm::logic_error, "power of 2", rmm::mr::aligned_resource_adaptor(memory, 1000));
  CHECK_THROWS(rmm::logic_error, "alignment", rmm::mr::limiting_resource_adaptor(memory, MiB, 512));
  CHECK_THROWS(rmm::logic_error, "null pool", rmm::mr::cuda_async_view_memory_resource(nullptr));
  CHECK_THROWS(rmm::logic_error, "RMM_LOG_FILE", rmm::mr::logging_resource_adaptor{memory});
  for (std::size_t alignment : {std::size_t{0}, std::size_t{100}, std::size_t{512}})
    CHECK_THROWS(rmm::bad_alloc, "align", static_cast<void>(memory.allocate(default_stream(), 100, alignment)));
  CHECK_THROWS(rmm::invalid_argument, "power of two", rmm::device_buffer(100, 3, default_stream()));
  CHECK_THROWS(rmm::bad_alloc, "256", rmm::device_buffer(100, 4096, default_stream()));
  CHECK_THROWS(rmm::invalid_argument, "overflows", rmm::device_uvector<double>(SIZE_MAX / 2, default_stream()));
  CHECK_THROWS(rmm::logic_error, "nullptr", rmm::device_buffer(nullptr, 100, default_stream()));
  CHECK_THROWS(rmm::out_of_memory, "", rmm::device_buffer(std::size_t{1} << 50, default_stream()));
}

/* ---- Each resource ---- */

void has_the_other_resources()
{
  rmm::mr::pinned_host_memory_resource pinned;
  auto *bytes = static_cast<unsigned char *>(pinned.allocate_sync(100));
  bytes[99] = 1;
  pinned.deallocate_sync(bytes, 100);
  for (any_device each :
       {any_device{rmm::mr::managed_memory_resource{}}, any_device{rmm::mr::system_memory_resource{}},
        any_device{rmm::mr::sam_headroom_memory_resource{MiB}}, any_device{rmm::mr::cuda_async_memory_resource{MiB}},
        any_device{rmm::mr::cuda_async_managed_memory_resource{}},
        any_device{rmm::mr::thread_safe_resource_adaptor{device_memory{}}},
        any_device{rmm::mr::prefetch_resource_adaptor{rmm::mr::managed_memory_resource{}}},
        any_device{rmm::mr::arena_memory_resource{device_memory{}, 4 * MiB}},
        any_device{rmm::mr::fixed_size_memory_resource{device_memory{}, 4 * KiB, 4}}}) {
    rmm::device_uvector<int> vector{100, default_stream(), each};
    vector.set_element(50, 42, default_stream());
    CHECK(vector.element(50, default_stream()) == 42 && vector.memory_resource() == each);
  }
  rmm::mr::cuda_async_memory_resource own;
  rmm::mr::cuda_async_view_memory_resource view{own.pool_handle()};
  CHECK(view.pool_handle() && view == rmm::mr::cuda_async_view_memory_resource{own.pool_handle()});
  rmm::device_buffer of_view{1000, default_stream(), view};
  CHECK(rmm::mr::sam_headroom_memory_resource{MiB} == rmm::mr::sam_headroom_memory_resource{MiB});
  rmm::mr::fixed_size_memory_resource fixed{device_memory{}, 1000, 2};
  CHECK(fixed.get_block_size() == KiB);
  CHECK_THROWS(rmm::out_of_memory, "", static_cast<void>(fixed.allocate(default_stream(), 2 * KiB)));
}

void aligns_more()
{
  rmm::mr::aligned_resource_adaptor wide{device_memory{}, 4096, 1000};
  void *block = wide.allocate(default_stream(), 5000, 512);
  CHECK(reinterpret_cast<std::uintptr_t>(block) % 4096 == 0);
  wide.deallocate(default_stream(), block, 5000, 512);
  rmm::device_buffer buffer{5000, 4096, default_stream(), wide};
  CHECK(buffer.alignment() == 4096 && reinterpret_cast<std::uintptr_t>(buffer.data()) % 4096 == 0);

  /* Other resources align to what their upstream can. */
  rmm::mr::statistics_resource_adaptor counted{wide}, narrow{device_memory{}};
  block = counted.allocate(default_stream(), 100, 1024);
  CHECK(reinterpret_cast<std::uintptr_t>(block) % 1024 == 0 && counted.get_bytes_counter().value == 100);
  counted.deallocate(default_stream(), block, 100, 1024);
  CHECK(counted.get_bytes_counter().value == 0);
  CHECK_THROWS(rmm::bad_alloc, "cannot align", static_cast<void>(narrow.allocate(default_stream(), 100, 512)));
  CHECK_THROWS(rmm::bad_alloc, "powers of two", static_cast<void>(counted.allocate(default_stream(), 100, 100)));

  struct alignas(512) wide_type {
    char bytes[512];
  };
  rmm::device_uvector<wide_type> vector{3, default_stream(), wide};
  CHECK(reinterpret_cast<std::uintptr_t>(vector.data()) % 512 == 0);
  CHECK_THROWS(rmm::bad_alloc, "256", rmm::device_uvector<wide_type>(3, default_stream(), device_memory{}));
  rmm::device_uvector<wide_type> empty{0, default_stream(), device_memory{}};
  CHECK_THROWS(rmm::bad_alloc, "256", empty.resize(3, default_stream()));
  CHECK_THROWS(rmm::bad_alloc, "256", rmm::device_buffer(buffer, default_stream(), device_memory{}));

  /* Memory of the host, by functions of the program. */
  for (std::size_t alignment : {std::size_t{1}, std::size_t{64}, std::size_t{4096}}) {
    void *start = nullptr;
    auto *host = static_cast<char *>(rmm::detail::aligned_host_allocate(
        100, alignment, [&](std::size_t size) { return start = std::malloc(size); }));
    CHECK(host && reinterpret_cast<std::uintptr_t>(host) % alignment == 0);
    host[0] = host[99] = 1;
    rmm::detail::aligned_host_deallocate(host, 100, alignment, [&](void *ptr) {
      CHECK(ptr == start);
      std::free(ptr);
    });
  }
  CHECK_THROWS(std::bad_alloc, "",
               rmm::detail::aligned_host_allocate(SIZE_MAX - 8, 64, [](std::size_t) -> void * { return nullptr; }));
}

void sends_sizes_to_bins()
{
  auto shared = std::make_shared<counts>();
  rmm::mr::statistics_resource_adaptor large{program_memory{shared}};
  rmm::mr::binning_memory_resource bins{device_memory{}};
  void *early = bins.allocate(default_stream(), 4 * KiB); // of the upstream, before there is a bin
  bins.add_bin(4 * KiB);
  bins.add_bin(MiB, large);
  bins.add_bin(MiB);
  void *small = bins.allocate(default_stream(), 3 * KiB), *big = bins.allocate(default_stream(), 500 * KiB);
  CHECK(shared->held == 500 * KiB && large.get_allocations_counter().value == 1);
  for (auto [block, bytes] : {std::pair<void *, std::size_t>{early, 4 * KiB}, {small, 3 * KiB}, {big, 500 * KiB}})
    bins.deallocate(default_stream(), block, bytes);
  CHECK(shared->held == 0 && bins.get_upstream_resource() == device_memory{});
  rmm::mr::binning_memory_resource powers{device_memory{}, 10, 12};
  rmm::device_buffer buffer{4 * KiB, default_stream(), powers};
  CHECK(powers.hipmm_resource().query("bins") == 3 && powers.hipmm_resource().query("bins_live_count") == 1);
}

void has_callbacks()
{
  int frees = 0;
  device_memory memory;
  rmm::mr::callback_memory_resource callbacks{[&](std::size_t bytes, cuda::stream_ref stream, void *arg) {
                                                CHECK(arg == &frees);
                                                return memory.allocate(stream, bytes);
                                              },
                                              [&](void *ptr, std::size_t bytes, rmm::cuda_stream_view stream, void *) {
                                                frees++;
                                                memory.deallocate(stream, ptr, bytes);
                                              },
                                              &frees};
  auto copy = callbacks;
  copy.deallocate(default_stream(), callbacks.allocate(default_stream(), 100), 100);
  CHECK(frees == 1 && copy == callbacks);
}

void counts_and_tracks()
{
  rmm::mr::statistics_resource_adaptor counted{device_memory{}};
  rmm::mr::tracking_resource_adaptor tracked{counted, true};
  void *one = tracked.allocate(default_stream(), 100);
  const auto outer = counted.push_counters();
  CHECK(outer.first.value == 100 && counted.get_bytes_counter().total == 0);
  void *other = tracked.allocate(default_stream(), 200);
  CHECK(counted.pop_counters().first.peak == 200 && counted.get_bytes_counter().value == 300);
  CHECK_THROWS(std::out_of_range, "pop", counted.pop_counters());
  const auto &live = tracked.get_outstanding_allocations();
  CHECK(live.size() == 2 && live.at(other).allocation_size == 200 && live.at(one).strace);
  CHECK(tracked.get_allocated_bytes() == 300 &&
        tracked.get_outstanding_allocations_str().find("callstack") != std::string::npos);
  tracked.deallocate(default_stream(), one, 100);
  tracked.deallocate(default_stream(), other, 200);
  CHECK(tracked.get_allocated_bytes() == 0);
  rmm::mr::limiting_resource_adaptor limit{device_memory{}, MiB};
  rmm::device_buffer half{MiB / 2, default_stream(), limit};
  CHECK(limit.get_allocated_bytes() == MiB / 2 && limit.get_allocation_limit() == MiB);
}

void logs()
{
  const std::string file = folder + "/log26/events.csv";
  std::ostringstream stream;
  {
    rmm::mr::logging_resource_adaptor to_file{device_memory{}, file}, to_stream{to_file, stream};
    auto sink = std::make_shared<rapids_logger::basic_file_sink_mt>(folder + "/log26/sink.csv", true);
    rmm::mr::logging_resource_adaptor to_sink{to_stream, {sink}};
    rmm::device_buffer buffer{777, default_stream(), to_sink};
    to_sink.flush();
    to_stream.flush();
    CHECK(to_file.header() == "Thread,Time,Action,Pointer,Size,Stream" && to_file != to_stream);
  }
  std::ifstream first{file}, last{folder + "/log26/sink.csv"};
  for (std::istream *each : {static_cast<std::istream *>(&first), static_cast<std::istream *>(&last)}) {
    std::string text{std::istreambuf_iterator<char>{*each}, {}};
    CHECK(text.find("allocate,0x") != std::string::npos && text.find(",777,") != std::string::npos);
  }
  CHECK(stream.str().find("free,0x") != std::string::npos);
}

/* ---- Devices, threads, the end ---- */

void knows_the_resource_of_each_device()
{
  const rmm::cuda_device_id second{1};
  CHECK(rmm::cuda_device_id{} == rmm::get_current_cuda_device());
  rmm::mr::statistics_resource_adaptor counted = [&] {
    const rmm::cuda_set_device_raii on_second{second};
    return rmm::mr::statistics_resource_adaptor{device_memory{}};
  }();
  any_device before = rmm::mr::set_per_device_resource(second, counted);
  CHECK(before == device_memory{} && rmm::mr::get_per_device_resource_ref(second) == counted &&
        rmm::mr::get_current_device_resource_ref() == device_memory{});
  rmm::device_buffer buffer;
  {
    const rmm::cuda_set_device_raii on_second{second};
    buffer = rmm::device_buffer{100, default_stream()};
    CHECK(counted.get_bytes_counter().value == 100 && counted.hipmm_resource().device() == 1);
  }
  CHECK(rmm::mr::reset_per_device_resource(second) == counted);
  buffer.resize(200, default_stream()); // still of the second device
  CHECK(counted.get_bytes_counter().value == 200);
  rmm::mr::polymorphic_allocator<int> ints{counted};
  CHECK(rmm::mr::polymorphic_allocator<double>{ints} == ints && ints != rmm::mr::polymorphic_allocator<int>{});
}

void allocates_in_eight_threads()
{
  rmm::mr::statistics_resource_adaptor counted{rmm::mr::pool_memory_resource{device_memory{}, 8 * MiB}};
  rmm::mr::set_current_device_resource(counted);
  rmm::cuda_stream_pool streams{4};
  std::vector<std::thread> threads;
  for (std::size_t n = 0; n < 8; n++)
    threads.emplace_back([&streams, n] {
      for (std::size_t i = 1; i <= 50; i++) rmm::device_buffer buffer{i * 100, streams.get_stream(n)};
    });
  for (std::thread &each : threads) each.join();
  rmm::mr::reset_current_device_resource();
  CHECK(counted.get_bytes_counter().value == 0 && counted.get_allocations_counter().total == 400);
}

/* Whether the process is exiting, as a destructor of static storage sees it, and memory that lives until then. */
struct at_the_end {
  std::optional<rmm::device_buffer> buffer;
  ~at_the_end()
  {
    if (!rmm::process_is_exiting()) std::_Exit(3);
    buffer.reset();
  }
};
at_the_end last;

void knows_the_end_of_the_process()
{
  CHECK(!rmm::process_is_exiting());
  rmm::mr::pool_memory_resource pool{device_memory{}, MiB};
  rmm::mr::set_current_device_resource(pool);
  last.buffer.emplace(1000, default_stream());
}

} // namespace

int main(int argc, char **argv)
{
  if (argc > 1) folder = argv[1];
  const test tests[] = {
      {"shares one resource between copies", shares_one_resource_between_copies},
      {"erases types", erases_types},
      {"finds what was erased", finds_what_was_erased},
      {"is an upstream by value", is_an_upstream_by_value},
      {"outlives its resources", outlives_its_resources},
      {"survives moves", survives_moves},
      {"lets exceptions of the program pass", lets_exceptions_of_the_program_pass},
      {"calls back on its exception alone", calls_back_on_its_exception_alone},
      {"refuses wrong arguments", refuses_wrong_arguments},
      {"has the other resources", has_the_other_resources},
      {"aligns more", aligns_more},
      {"sends sizes to bins", sends_sizes_to_bins},
      {"has callbacks", has_callbacks},
      {"counts and tracks", counts_and_tracks},
      {"logs", logs},
      {"knows the resource of each device", knows_the_resource_of_each_device},
      {"allocates in eight threads", allocates_in_eight_threads},
      {"knows the end of the process", knows_the_end_of_the_process},
  };
  return run_tests(tests);
}
