// SPDX-License-Identifier: MIT
// RMM's containers over hipmm on a GPU: data and stream order with eight threads, errors, equality. Compiled by
// tests/cpp/rmm.sh against RMM 26.x, for a person to run: see tests/lab/gpu/README.md.
#include "../../cpp/test.hpp"

#include <hipmm/hipmm.hpp>
#include <hipmm/rmm.hpp>

#include <rmm/device_buffer.hpp>
#include <rmm/device_uvector.hpp>
#include <rmm/mr/per_device_resource.hpp>

#include <cuda_runtime_api.h>

#include <atomic>
#include <thread>
#include <vector>

namespace
{

constexpr int n_threads = 8, n_rounds = 400;
constexpr std::size_t block_bytes = 1U << 20U;

hipmm::library pool(const char *maximum)
{
  return hipmm::library::from_string(std::string{R"({"stack": ["statistics", {"type": "pool", "maximum_size": ")"} +
                                     maximum + R"("}, "device"]})");
}

void require(cudaError_t status)
{
  if (status != cudaSuccess) throw std::runtime_error{cudaGetErrorString(status)};
}

/* Fills a buffer, copies it into a vector, and frees both at once: the fills delay the stream, so the work is still to be
 * done when the memory is free for others. The last byte and the first of each copy go to pinned memory. Returns the number
 * of wrong bytes. */
std::size_t submit_rounds(int thread, const hipmm::rmm_resource &from)
{
  const hipmm::stream stream{0, hipmm::stream_flags::non_blocking};
  const auto handle = static_cast<cudaStream_t>(stream.get());
  const cuda::stream_ref on{handle};
  const hipmm::host_buffer seen{2U * n_rounds, stream};
  auto *bytes = static_cast<unsigned char *>(seen.data());
  rmm::device_buffer delay{64 * block_bytes, on, from};
  for (int round = 0; round < n_rounds; round++) {
    const int value = 1 + (thread * 31 + round) % 255;
    if (round % 16 == 0) require(cudaMemsetAsync(delay.data(), 0, delay.size(), handle));
    rmm::device_buffer source{block_bytes, on, from};
    require(cudaMemsetAsync(source.data(), value, block_bytes, handle));
    rmm::device_uvector<unsigned char> copy{block_bytes, on, from};
    require(cudaMemcpyAsync(copy.data(), source.data(), block_bytes, cudaMemcpyDeviceToDevice, handle));
    if (round % 3 == 0) source = rmm::device_buffer{0, on, from};
    require(cudaMemcpyAsync(bytes + 2 * round, copy.data(), 1, cudaMemcpyDeviceToHost, handle));
    require(cudaMemcpyAsync(bytes + 2 * round + 1, copy.data() + block_bytes - 1, 1, cudaMemcpyDeviceToHost, handle));
  }
  stream.synchronize();
  std::size_t wrong = 0;
  for (int i = 0; i < 2 * n_rounds; i++) wrong += bytes[i] != 1 + (thread * 31 + i / 2) % 255;
  return wrong;
}

void streams_keep_their_order_in_threads()
{
  const hipmm::library library = pool("2GiB");
  const hipmm::rmm_resource from;
  std::atomic<std::size_t> wrong{0};
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < n_threads; i++)
    threads.emplace_back([&, i] {
      try {
        wrong += submit_rounds(i, from);
      } catch (const std::exception &problem) {
        std::fprintf(stderr, "thread %d: %s\n", i, problem.what());
        failed++;
      }
    });
  for (std::thread &thread : threads) thread.join();
  const hipmm_statistics counters = from.get_resource().statistics();
  std::printf("# %lld allocations, %zu wrong bytes\n", static_cast<long long>(counters.total_count), wrong.load());
  CHECK(!failed && wrong == 0 && counters.current_count == 0);
  CHECK(counters.total_count >= std::int64_t{2} * n_threads * n_rounds);
}

void containers_take_the_current_resource()
{
  const hipmm::library library = pool("1GiB");
  const hipmm::resource top = hipmm::current_resource();
  rmm::mr::set_current_device_resource(hipmm::rmm_resource{});
  {
    const hipmm::stream stream;
    const cuda::stream_ref on{static_cast<cudaStream_t>(stream.get())};
    rmm::device_uvector<int> vector{1000, on};
    const int value = 42;
    vector.set_element_async(999, value, on);
    CHECK(vector.element(999, on) == 42 && top.statistics().current_bytes == 4000);
    vector.resize(100000, on);
    CHECK(vector.element(999, on) == 42);
    const rmm::device_uvector<int> copy{vector, on};
    CHECK(copy.element(999, on) == 42 && copy.data() != vector.data());
  }
  CHECK(top.statistics().current_count == 0);
  rmm::mr::reset_current_device_resource();
}

void want_of_memory_is_rmms()
{
  const hipmm::library library = pool("64MiB");
  const hipmm::rmm_resource from, same;
  const hipmm::rmm_resource lower{"pool"};
  CHECK(from == same && from != lower);
  const cuda::stream_ref on{cudaStream_t{}};
  CHECK_THROWS(rmm::out_of_memory, "pool: cannot allocate", rmm::device_buffer(128U << 20U, on, from));
  CHECK_THROWS(rmm::out_of_memory, "", rmm::device_uvector<double>(std::size_t{1} << 50U, on, from));
  const rmm::device_buffer fits{32U << 20U, on, from};
  CHECK(fits.data() && from.get_resource().statistics().current_bytes == 32U << 20U);
}

} // namespace

int main()
{
  const test tests[] = {
      {"containers take the resource in force", containers_take_the_current_resource},
      {"want of memory is RMM's", want_of_memory_is_rmms},
      {"streams keep their order in threads", streams_keep_their_order_in_threads},
  };
  return run_tests(tests);
}
