// SPDX-License-Identifier: MIT
// Resources in a program of RMM 23.12, through the compatible headers, on two software devices. The argument names a folder
// for logs. The names of RMM are written as such a program writes them.
#include "../cpp/test.hpp"

#include <rmm/cuda_device.hpp>
#include <rmm/cuda_stream_pool.hpp>
#include <rmm/mr/device/aligned_resource_adaptor.hpp>
#include <rmm/mr/device/arena_memory_resource.hpp>
#include <rmm/mr/device/binning_memory_resource.hpp>
#include <rmm/mr/device/callback_memory_resource.hpp>
#include <rmm/mr/device/cuda_async_memory_resource.hpp>
#include <rmm/mr/device/cuda_async_view_memory_resource.hpp>
#include <rmm/mr/device/cuda_memory_resource.hpp>
#include <rmm/mr/device/failure_callback_resource_adaptor.hpp>
#include <rmm/mr/device/fixed_size_memory_resource.hpp>
#include <rmm/mr/device/limiting_resource_adaptor.hpp>
#include <rmm/mr/device/logging_resource_adaptor.hpp>
#include <rmm/mr/device/managed_memory_resource.hpp>
#include <rmm/mr/device/owning_wrapper.hpp>
#include <rmm/mr/device/per_device_resource.hpp>
#include <rmm/mr/device/polymorphic_allocator.hpp>
#include <rmm/mr/device/pool_memory_resource.hpp>
#include <rmm/mr/device/statistics_resource_adaptor.hpp>
#include <rmm/mr/device/thread_safe_resource_adaptor.hpp>
#include <rmm/mr/device/tracking_resource_adaptor.hpp>
#include <rmm/mr/host/new_delete_resource.hpp>
#include <rmm/mr/host/pinned_memory_resource.hpp>

#include <cstdint>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace
{

using base = rmm::mr::device_memory_resource;
using device_memory = rmm::mr::cuda_memory_resource;
using pool = rmm::mr::pool_memory_resource<base>;

constexpr std::size_t KiB = 1024, MiB = 1024 * KiB;

std::string folder = ".";

/* A resource of the program's: counts, and throws what it is told to. */
struct unhappy {
};
class program_memory final : public base
{
public:
  device_memory memory;
  std::size_t held = 0, calls = 0;
  int failures = 0;
  bool is_unhappy = false;

  [[nodiscard]] bool supports_streams() const noexcept override
  {
    return true;
  }
  [[nodiscard]] bool supports_get_mem_info() const noexcept override
  {
    return true;
  }

private:
  void *do_allocate(std::size_t bytes, rmm::cuda_stream_view stream) override
  {
    calls++;
    if (failures > 0) {
      failures--;
      if (is_unhappy) throw unhappy{};
      throw rmm::bad_alloc{"the program says no"};
    }
    held += bytes;
    return memory.allocate(bytes, stream);
  }
  void do_deallocate(void *ptr, std::size_t bytes, rmm::cuda_stream_view stream) override
  {
    held -= bytes;
    memory.deallocate(ptr, bytes, stream);
  }
  [[nodiscard]] std::pair<std::size_t, std::size_t> do_get_mem_info(rmm::cuda_stream_view) const override
  {
    return {64 * MiB, 128 * MiB};
  }
};

std::vector<std::string> types_below(hipmm::resource top)
{
  std::vector<std::string> types{top.type()};
  for (std::vector<hipmm::resource> below = top.upstreams(); !below.empty(); below = below.front().upstreams())
    types.push_back(below.front().type());
  return types;
}

/* ---- One on another ---- */

void is_a_chain_in_hipmm()
{
  const std::string name = folder + "/new/100%.csv";
  device_memory memory;
  pool own{&memory, MiB, 8 * MiB};
  rmm::mr::limiting_resource_adaptor<pool> limited{&own, 2 * MiB};
  rmm::mr::statistics_resource_adaptor<rmm::mr::limiting_resource_adaptor<pool>> counted{&limited};
  {
    rmm::mr::logging_resource_adaptor<base> logged{&counted, name};
    CHECK((types_below(logged.hipmm_resource()) ==
           std::vector<std::string>{"logging", "statistics", "limiting", "pool", "device"}));
    void *block = logged.allocate(1000);
    CHECK(rmm::is_pointer_aligned(block) && own.pool_size() >= MiB);
    CHECK(counted.get_bytes_counter().value == 1000 && counted.get_allocations_counter().total == 1);
    CHECK(limited.get_allocated_bytes() == 1024 && limited.get_mem_info({}).second == 2 * MiB);
    CHECK_THROWS(rmm::out_of_memory, "std::bad_alloc: out_of_memory: ", static_cast<void>(logged.allocate(3 * MiB)));
    logged.deallocate(block, 1000);
    CHECK(counted.get_bytes_counter().value == 0 && counted.get_bytes_counter().peak == 1000);
    CHECK(logged.get_upstream() == &counted && logged.is_equal(own) && logged.supports_streams());
    CHECK(logged.header() == "Thread,Time,Action,Pointer,Size,Stream");
    logged.flush();
  }
  std::ifstream rows{name};
  std::string header, first, second, third;
  std::getline(rows, header) && std::getline(rows, first) && std::getline(rows, second) && std::getline(rows, third);
  CHECK(header == "Thread,Time,Action,Pointer,Size,Stream");
  CHECK(first.find(",allocate,0x") != std::string::npos && first.find(",1000,") != std::string::npos);
  CHECK(second.find(",allocate failure,") != std::string::npos && third.find(",free,0x") != std::string::npos);
}

void logs_to_a_stream()
{
  device_memory memory;
  std::ostringstream output;
  auto logged = rmm::mr::make_logging_adaptor(&memory, output);
  logged.deallocate(logged.allocate(99), 99);
  std::istringstream rows{output.str()};
  std::string header, first, second;
  std::getline(rows, header) && std::getline(rows, first) && std::getline(rows, second);
  CHECK(header == logged.header() && first.find(",99,0x0") != std::string::npos);
  CHECK(first.find(",allocate,0x") != std::string::npos && second.find(",free,0x") != std::string::npos);
  ::unsetenv("RMM_LOG_FILE");
  CHECK_THROWS(rmm::logic_error, "RMM_LOG_FILE", rmm::mr::make_logging_adaptor(&memory));
}

void depends_on_the_programs_resource()
{
  program_memory memory;
  {
    pool own{&memory, 0, 4 * MiB};
    rmm::mr::statistics_resource_adaptor<pool> counted{&own};
    void *block = counted.allocate(100 * KiB);
    CHECK(memory.held >= 100 * KiB && memory.held == own.pool_size());
    CHECK((types_below(counted.hipmm_resource()) == std::vector<std::string>{"statistics", "pool", "callback"}));
    counted.deallocate(block, 100 * KiB);
    rmm::mr::fixed_size_memory_resource<program_memory> blocks{&memory, 1000, 4};
    CHECK(blocks.get_block_size() == 1024 && memory.held == own.pool_size() + 4096);
    CHECK_THROWS(rmm::out_of_memory, "", static_cast<void>(blocks.allocate(1025)));
  }
  CHECK(memory.held == 0);
  pool half{&memory};
  CHECK(half.pool_size() == 64 * MiB && memory.held == 64 * MiB);
}

/* The adaptor's memory is never freed, and the resource below is destroyed: nothing is called any more. */
void survives_the_end_of_the_programs_resource()
{
  auto memory = std::make_unique<program_memory>();
  auto counted = std::make_unique<rmm::mr::statistics_resource_adaptor<base>>(memory.get());
  CHECK(counted->allocate(1000) != nullptr);
  memory.reset();
  CHECK_THROWS(rmm::logic_error, "", static_cast<void>(counted->allocate(1000)));
  counted.reset();
}

/* ---- What fails ---- */

void lets_exceptions_of_the_program_pass()
{
  program_memory memory;
  rmm::mr::statistics_resource_adaptor<program_memory> counted{&memory};
  rmm::mr::limiting_resource_adaptor<base> limited{&counted, MiB};
  memory.failures = 1;
  CHECK_THROWS(rmm::bad_alloc, "the program says no", static_cast<void>(limited.allocate(1000)));
  memory.failures = 1;
  memory.is_unhappy = true;
  bool is_caught = false;
  try {
    static_cast<void>(limited.allocate(1000));
  } catch (const unhappy &) {
    is_caught = true;
  }
  CHECK(is_caught && limited.get_allocated_bytes() == 0 && counted.get_bytes_counter().total == 0);

  /* A pool takes every exception for want of memory. */
  pool own{&memory, 0};
  memory.failures = 1000;
  CHECK_THROWS(rmm::out_of_memory, "pool", static_cast<void>(own.allocate(1000)));
  CHECK_THROWS(rmm::out_of_memory, "pool",
               static_cast<void>(rmm::mr::statistics_resource_adaptor<pool>{&own}.allocate(8)));
}

void calls_back_on_its_exception_alone()
{
  program_memory memory;
  int calls = 0;
  const auto again = [&calls](std::size_t bytes, void *arg) {
    calls += bytes == 1000;
    return calls < *static_cast<int *>(arg);
  };
  int most = 10;
  rmm::mr::failure_callback_resource_adaptor<base, rmm::bad_alloc> on_bad_alloc{&memory, again, &most};
  memory.failures = 3;
  void *block = on_bad_alloc.allocate(1000);
  CHECK(block && calls == 3 && memory.calls == 4);
  on_bad_alloc.deallocate(block, 1000);

  memory.failures = 1;
  memory.is_unhappy = true;
  bool is_caught = false;
  try {
    static_cast<void>(on_bad_alloc.allocate(1000));
  } catch (const unhappy &) {
    is_caught = true;
  }
  CHECK(is_caught && calls == 3);

  rmm::mr::failure_callback_resource_adaptor<base, unhappy> on_unhappy{&memory, again, &most};
  memory.failures = 2;
  on_unhappy.deallocate(on_unhappy.allocate(1000), 1000);
  CHECK(calls == 5);

  /* The callback's own exception, above a pool too. */
  pool own{&memory, 0, MiB};
  const auto throws = [](std::size_t, void *) -> bool { throw std::out_of_range{"gave up"}; };
  rmm::mr::failure_callback_resource_adaptor<pool> over_pool{&own, throws, nullptr};
  CHECK_THROWS(std::out_of_range, "gave up", static_cast<void>(over_pool.allocate(2 * MiB)));
  CHECK(calls == 5);
}

void refuses_wrong_arguments()
{
  device_memory memory;
  base *none = nullptr;
  CHECK_THROWS(rmm::logic_error, "null", pool{none});
  CHECK_THROWS(rmm::logic_error, "null", rmm::mr::tracking_resource_adaptor<base>{none});
  CHECK_THROWS(rmm::logic_error, "null", rmm::mr::binning_memory_resource<base>{none});
  CHECK_THROWS(rmm::logic_error, "multiple of 256", pool{&memory, 1000});
  CHECK_THROWS(rmm::logic_error, "exceeds the maximum", pool{&memory, 2 * MiB, MiB});
  CHECK_THROWS(rmm::logic_error, "power of 2", rmm::mr::aligned_resource_adaptor<base>{&memory, 1000});
  CHECK_THROWS(rmm::logic_error, "Arena size", rmm::mr::arena_memory_resource<base>{&memory, KiB});
  CHECK_THROWS(rmm::logic_error, "must be greater than zero", rmm::cuda_stream_pool{0});
  CHECK_THROWS(rmm::logic_error, "null pool", rmm::mr::cuda_async_view_memory_resource{nullptr});
  CHECK_THROWS(rmm::logic_error, "RMM failure at: ", RMM_EXPECTS(false, "so it says"));
  CHECK_THROWS(rmm::out_of_range, "so it says", RMM_EXPECTS(false, "so it says", rmm::out_of_range));
  CHECK_THROWS(rmm::logic_error, "so it says", RMM_FAIL("so it says"));
  CHECK_THROWS(rmm::bad_alloc, "so it says", RMM_FAIL("so it says", rmm::bad_alloc));
  CHECK_THROWS(rmm::out_of_memory, "", static_cast<void>(memory.allocate(std::size_t{1} << 50)));
}

/* ---- Each kind ---- */

void has_the_other_resources()
{
  device_memory memory;
  rmm::mr::managed_memory_resource managed;
  rmm::mr::arena_memory_resource<base> arena{&memory, 4 * MiB};
  rmm::mr::cuda_async_memory_resource async{MiB, 2 * MiB};
  rmm::mr::cuda_async_view_memory_resource view{async.pool_handle()};
  rmm::mr::thread_safe_resource_adaptor<base> safe{&managed};
  rmm::mr::aligned_resource_adaptor<base> aligned{&memory, 64 * KiB};
  rmm::mr::callback_memory_resource callback{
      [&memory](std::size_t bytes, rmm::cuda_stream_view stream, void *) { return memory.allocate(bytes, stream); },
      [&memory](void *ptr, std::size_t bytes, rmm::cuda_stream_view stream, void *) {
        memory.deallocate(ptr, bytes, stream);
      }};
  auto wrapper = rmm::mr::make_owning_wrapper<rmm::mr::pool_memory_resource>(std::make_shared<device_memory>(), MiB);
  const std::vector<base *> all{&memory, &managed, &arena, &async, &view, &safe, &aligned, &callback, wrapper.get()};
  for (base *each : all) {
    void *block = each->allocate(3000, rmm::cuda_stream_per_thread);
    CHECK(block && rmm::is_pointer_aligned(block) && each->is_equal(*each));
    each->deallocate(block, 3000, rmm::cuda_stream_per_thread);
    CHECK(each->allocate(0) == nullptr);
    each->deallocate(nullptr, 0);
  }
  void *block = aligned.allocate(1000);
  CHECK(rmm::is_pointer_aligned(block, 64 * KiB));
  aligned.deallocate(block, 1000);
  CHECK(memory.is_equal(device_memory{}) && !memory.is_equal(managed) && safe.is_equal(managed));
  CHECK((types_below(wrapper->hipmm_resource()) == std::vector<std::string>{"pool", "device"}));
  CHECK_THROWS(rmm::out_of_memory, "", static_cast<void>(arena.allocate(5 * MiB)));
}

void sends_sizes_to_bins()
{
  program_memory large, small;
  rmm::mr::binning_memory_resource<program_memory> bins{&large};
  bins.add_bin(1000, &small);
  bins.add_bin(64 * KiB);
  const std::size_t preallocated = 128 * 64 * KiB;
  void *blocks[] = {bins.allocate(1024), bins.allocate(1025), bins.allocate(MiB)};
  CHECK(small.held == 1024 && large.held == preallocated + MiB);
  bins.deallocate(blocks[0], 1024);
  bins.deallocate(blocks[1], 1025);
  bins.deallocate(blocks[2], MiB);
  CHECK(small.held == 0 && large.held == preallocated);
  rmm::mr::binning_memory_resource<base> exponents{&large, 18, 19};
  CHECK(large.held == preallocated + 128 * (256 + 512) * KiB);
}

void lists_what_is_outstanding()
{
  device_memory memory;
  for (const bool captures : {false, true}) {
    rmm::mr::tracking_resource_adaptor<device_memory> tracked{&memory, captures};
    void *one = tracked.allocate(100), *two = tracked.allocate(200);
    const auto &list = tracked.get_outstanding_allocations();
    CHECK(list.size() == 2 && list.at(one).allocation_size == 100 && list.at(two).allocation_size == 200);
    CHECK((list.at(one).strace != nullptr) == captures && tracked.get_allocated_bytes() == 300);
    std::ostringstream line;
    line << one << ": 100 B";
    CHECK(tracked.get_outstanding_allocations_str().find(line.str()) != std::string::npos);
    CHECK((tracked.get_outstanding_allocations_str().find("callstack:\n#0 in ") != std::string::npos) == captures);
    tracked.deallocate(one, 100);
    tracked.deallocate(two, 200);
    CHECK(tracked.get_outstanding_allocations().empty());
  }
}

void has_memory_of_the_host()
{
  rmm::mr::new_delete_resource heap;
  rmm::mr::pinned_memory_resource pinned;
  for (rmm::mr::host_memory_resource *each : std::vector<rmm::mr::host_memory_resource *>{&heap, &pinned})
    for (const std::size_t alignment : {std::size_t{8}, std::size_t{4096}, std::size_t{8}}) {
      auto *text = static_cast<char *>(each->allocate(1000, alignment));
      CHECK(text && rmm::is_pointer_aligned(text, alignment));
      text[999] = 1;
      each->deallocate(text, 1000, alignment);
    }
  CHECK(pinned.allocate(0) == nullptr && heap == heap && heap != pinned);
  rmm::mr::pool_memory_resource<rmm::mr::pinned_memory_resource> over{&pinned, MiB};
  auto *text = static_cast<char *>(over.allocate(1000));
  text[999] = 1;
  over.deallocate(text, 1000);
  CHECK((types_below(over.hipmm_resource()) == std::vector<std::string>{"pool", "pinned"}));
}

/* ---- Devices, streams, threads ---- */

void knows_the_resource_of_each_device()
{
  CHECK(rmm::get_num_cuda_devices() == 2 && rmm::get_current_cuda_device() == rmm::cuda_device_id{0});
  base *initial = rmm::mr::get_current_device_resource();
  CHECK(initial->is_equal(device_memory{}) && device_memory{}.is_equal(*initial));
  device_memory memory;
  pool own{&memory, 0};
  CHECK(rmm::mr::set_current_device_resource(&own) == initial && rmm::mr::get_current_device_resource() == &own);
  CHECK(rmm::mr::get_per_device_resource(rmm::cuda_device_id{1}) == initial);
  {
    const rmm::cuda_set_device_raii other{rmm::cuda_device_id{1}};
    CHECK(rmm::mr::get_current_device_resource() == initial);
    void *block = memory.allocate(4096);
    CHECK(hipmm::block_of(block).owner.device() == 1);
    const rmm::cuda_set_device_raii back{rmm::cuda_device_id{0}};
    memory.deallocate(block, 4096); /* the runtime frees memory of each device, whichever is current */
    CHECK_THROWS(hipmm::error, "", static_cast<void>(hipmm::block_of(block)));
  }
  CHECK(rmm::mr::set_current_device_resource(nullptr) == &own && rmm::mr::get_current_device_resource() == initial);
  const auto [free, total] = rmm::available_device_memory();
  CHECK(free <= total && rmm::percent_of_free_device_memory(50) <= total / 2);
}

void allocates_in_eight_threads()
{
  device_memory memory;
  pool own{&memory, 0, 64 * MiB};
  rmm::mr::statistics_resource_adaptor<pool> counted{&own};
  rmm::cuda_stream_pool streams{4};
  std::vector<std::thread> threads;
  for (std::size_t n = 0; n < 8; n++)
    threads.emplace_back([&counted, &streams, n] {
      for (std::size_t i = 1; i <= 50; i++) {
        const rmm::cuda_stream_view stream = streams.get_stream(n);
        counted.deallocate(counted.allocate(i * 100, stream), i * 100, stream);
      }
    });
  for (std::thread &each : threads) each.join();
  CHECK(counted.get_bytes_counter().value == 0 && counted.get_allocations_counter().total == 400);
}

void has_allocators()
{
  rmm::cuda_stream stream;
  rmm::mr::polymorphic_allocator<int> ints;
  auto adapted = rmm::mr::make_stream_allocator_adaptor(ints, stream);
  int *block = adapted.allocate(100);
  adapted.deallocate(block, 100);
  rmm::mr::polymorphic_allocator<double> doubles{ints};
  CHECK(doubles == ints && rmm::mr::make_stream_allocator_adaptor(doubles, stream) == adapted);
}

} // namespace

int main(int argc, char **argv)
{
  if (argc > 1) folder = argv[1];
  const test tests[] = {
      {"is a chain in hipmm", is_a_chain_in_hipmm},
      {"logs to a stream", logs_to_a_stream},
      {"depends on the program's resource", depends_on_the_programs_resource},
      {"survives the end of the program's resource", survives_the_end_of_the_programs_resource},
      {"lets exceptions of the program pass", lets_exceptions_of_the_program_pass},
      {"calls back on its exception alone", calls_back_on_its_exception_alone},
      {"refuses wrong arguments", refuses_wrong_arguments},
      {"has the other resources", has_the_other_resources},
      {"sends sizes to bins", sends_sizes_to_bins},
      {"lists what is outstanding", lists_what_is_outstanding},
      {"has memory of the host", has_memory_of_the_host},
      {"knows the resource of each device", knows_the_resource_of_each_device},
      {"allocates in eight threads", allocates_in_eight_threads},
      {"has allocators", has_allocators},
  };
  return run_tests(tests);
}
