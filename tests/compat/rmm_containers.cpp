// SPDX-License-Identifier: MIT
// Containers, streams and the log in a program of RMM 23.12, through the compatible headers, on two software devices. With an
// argument "graph" the program runs under a graph, whose resource is the initial one.
#include "../cpp/test.hpp"

#include <rmm/cuda_stream.hpp>
#include <rmm/cuda_stream_pool.hpp>
#include <rmm/device_buffer.hpp>
#include <rmm/device_scalar.hpp>
#include <rmm/device_uvector.hpp>
#include <rmm/logger.hpp>
#include <rmm/mr/device/per_device_resource.hpp>
#include <rmm/mr/device/pool_memory_resource.hpp>
#include <rmm/mr/device/statistics_resource_adaptor.hpp>
#include <rmm/mr/host/pinned_memory_resource.hpp>

#include <cstdint>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

namespace
{

using device_memory = rmm::mr::cuda_memory_resource;
using statistics = rmm::mr::statistics_resource_adaptor<device_memory>;

/* Kernels are replaced by copies: to a host vector, which is what a program would check. */
template <typename T> std::vector<T> host_copy(const rmm::device_uvector<T> &from)
{
  std::vector<T> values;
  for (std::size_t i = 0; i < from.size(); i++) values.push_back(from.element(i, from.stream()));
  return values;
}

std::string text_of(const rmm::device_buffer &buffer, std::size_t count)
{
  std::string text(count, '?');
  const ::hipmm_status status =
      ::hipmm_buffer_read(buffer.hipmm_buffer(), 0, count, hipmm::compat::to_hipmm(buffer.stream()), &text[0]);
  return status == HIPMM_OK ? text : ::hipmm_last_error_message();
}

void keeps_bytes_through_all_changes()
{
  device_memory memory;
  statistics counted{&memory};
  rmm::cuda_stream one, two;
  {
    const std::string text = "twelve bytes";
    rmm::device_buffer buffer{text.data(), text.size(), one, &counted};
    CHECK(buffer.size() == 12 && buffer.capacity() == 12 && buffer.ssize() == 12 && !buffer.is_empty());
    CHECK(buffer.stream() == one.view() && buffer.memory_resource() == rmm::device_async_resource_ref{&counted});
    buffer.resize(6, one);
    CHECK(buffer.size() == 6 && buffer.capacity() == 12);
    buffer.reserve(100, one);
    CHECK(buffer.size() == 6 && buffer.capacity() == 100 && text_of(buffer, 6) == "twelve");
    buffer.resize(12, two); /* up to the capacity the contents stay */
    CHECK(buffer.stream() == two.view() && buffer.capacity() == 100);
    buffer.resize(7, two);
    buffer.shrink_to_fit(two);
    CHECK(buffer.capacity() == 7 && text_of(buffer, 6) == "twelve" && counted.get_bytes_counter().value == 7);

    rmm::device_buffer copy{buffer, two, &counted};
    rmm::device_buffer moved{std::move(buffer)};
    CHECK(buffer.data() == nullptr && buffer.size() == 0 && buffer.capacity() == 0);
    CHECK(buffer.stream() == rmm::cuda_stream_default && counted.get_bytes_counter().value == 14);
    copy = std::move(moved);
    CHECK(counted.get_bytes_counter().value == 7 && text_of(copy, 6) == "twelve" && moved.is_empty());
    moved.resize(1000, one);
    CHECK(counted.get_bytes_counter().value == 1007);
    moved.set_stream(two);
    CHECK(moved.stream() == two.view());
  }
  CHECK(counted.get_bytes_counter().value == 0);
  CHECK_THROWS(rmm::logic_error, "nullptr", rmm::device_buffer{nullptr, 10, one, &counted});
  CHECK(rmm::device_buffer(1, one, &counted).memory_resource() == &counted);
  CHECK(&memory != rmm::device_buffer(1, one, &counted).memory_resource());
  const rmm::device_buffer empty;
  CHECK(empty.is_empty() && !empty.data() && empty.memory_resource() == rmm::mr::get_current_device_resource_ref());
}

void holds_elements()
{
  rmm::cuda_stream stream;
  rmm::device_uvector<std::int32_t> vector{3, stream};
  const std::int32_t seven = 7;
  vector.set_element_async(0, seven, stream);
  vector.set_element(1, 8, stream);
  vector.set_element_to_zero_async(2, stream);
  CHECK(host_copy(vector) == (std::vector<std::int32_t>{7, 8, 0}));
  CHECK(vector.front_element(stream) == 7 && vector.back_element(stream) == 0 && vector.ssize() == 3);
  CHECK(vector.end() - vector.begin() == 3 && vector.element_ptr(2) == vector.data() + 2 &&
        vector.rend() - vector.rbegin() == 3);
  CHECK_THROWS(rmm::out_of_range, "out of bounds", vector.set_element(3, 1, stream));
  CHECK_THROWS(rmm::out_of_range, "out of bounds", static_cast<void>(vector.element(3, stream)));
  vector.resize(1000, stream);
  CHECK(vector.element(1, stream) == 8 && vector.capacity() == 1000);
  rmm::device_uvector<std::int32_t> copy{vector, stream};
  const rmm::device_buffer bytes = vector.release();
  CHECK(bytes.size() == 4000 && vector.is_empty() && copy.element(0, stream) == 7);
  CHECK_THROWS(rmm::out_of_range, "", static_cast<void>(vector.front_element(stream)));

  rmm::device_scalar<double> scalar{1.5, stream};
  CHECK(scalar.value(stream) == 1.5 && scalar.data() && scalar.stream() == stream.view());
  scalar.set_value(2.5, stream);
  rmm::device_scalar<double> other{scalar, stream};
  scalar.set_value_to_zero_async(stream);
  CHECK(scalar.value(stream) == 0 && other.value(stream) == 2.5);
}

/* The device of a container is the one where it was made, and so is its memory when it is destroyed elsewhere. */
void stays_on_its_device()
{
  const auto in_use = [] {
    std::size_t free = 0, total = 0;
    return ::hipmm_device_memory(1, &free, &total) == HIPMM_OK ? total - free : 0;
  };
  const std::size_t before = in_use();
  std::vector<rmm::device_buffer> buffers;
  {
    const rmm::cuda_set_device_raii other{rmm::cuda_device_id{1}};
    buffers.emplace_back(1 << 20, rmm::cuda_stream_view{});
  }
  CHECK(rmm::get_current_cuda_device().value() == 0 && in_use() >= before + (1 << 20));
  buffers.front().resize(2 << 20, rmm::cuda_stream_view{});
  CHECK(hipmm::block_of(buffers.front().data()).owner.device() == 1 && in_use() >= before + (2 << 20));
  buffers.clear();
  CHECK(in_use() == before);
}

void takes_resources_of_other_classes()
{
  rmm::mr::pinned_memory_resource pinned;
  rmm::cuda_stream stream;
  rmm::device_uvector<int> vector{100, stream, &pinned};
  vector.set_element(99, 3, stream);
  CHECK(vector.element(99, stream) == 3 && vector.data()[99] == 3);

  rmm::device_async_resource_ref moved{pinned}; /* as allocators are moved with their containers */
  {
    const rmm::device_async_resource_ref taken{std::move(moved)};
    CHECK(moved == taken);
  }
  rmm::device_uvector<int> later{100, stream, moved};
  later.data()[99] = 4;
  CHECK(later.element(99, stream) == 4 && later.memory_resource() == moved);
#ifdef HIPMM_COMPAT_OWN_CUDA_MR
  const auto make = [&stream](cuda::mr::async_resource_ref<cuda::mr::device_accessible> from) {
    return rmm::device_buffer{10, stream, from};
  };
  device_memory memory;
  CHECK(make(&memory).size() == 10 && make(pinned).size() == 10);
#endif
}

/* A pool that is destroyed before its container: hipmm keeps what is behind it. */
void outlives_its_resource()
{
  rmm::cuda_stream stream;
  device_memory memory;
  auto own = std::make_unique<rmm::mr::pool_memory_resource<device_memory>>(&memory, 0);
  rmm::device_uvector<int> vector{10, stream, own.get()};
  own.reset();
  vector.set_element(0, 5, stream);
  CHECK(vector.element(0, stream) == 5);
}

void has_streams()
{
  rmm::cuda_stream one;
  CHECK(one.is_valid() && one.view() == one && !one.view().is_default());
  rmm::cuda_stream two{std::move(one)};
  CHECK(!one.is_valid() && two.is_valid());
  rmm::cuda_stream three;
  three = std::move(two);
  CHECK(!two.is_valid());
  three.synchronize();
  three.synchronize_no_throw();
  CHECK(rmm::cuda_stream_default.is_default() && rmm::cuda_stream_legacy.is_default());
  CHECK(rmm::cuda_stream_per_thread.is_per_thread_default() && !rmm::cuda_stream_per_thread.is_default());
  rmm::cuda_stream_view{}.synchronize();
  std::ostringstream text;
  text << rmm::cuda_stream_view{};
  CHECK(text.str() == "0");
  const rmm::cuda_stream_pool pool{3};
  CHECK(pool.get_pool_size() == 3 && pool.get_stream(1) == pool.get_stream(4) &&
        pool.get_stream() != pool.get_stream());
}

void writes_the_log()
{
  const std::string name = rmm::detail::default_log_filename();
  rmm::logger().set_level(spdlog::level::debug);
  RMM_LOG_INFO("{} of {:p}: {}", 1, "two", rmm::detail::bytes{2048});
  RMM_LOG_TRACE("left out: {}", 1);
  CHECK(!rmm::logger().should_log(spdlog::level::trace));
  try {
    device_memory memory;
    static_cast<void>(statistics{&memory}.allocate(std::size_t{1} << 50));
  } catch (const rmm::out_of_memory &) {
  }
  rmm::default_logger().flush();
  std::ifstream file{name};
  const std::string lines{std::istreambuf_iterator<char>{file}, {}};
  CHECK(lines.find("][info  ] ----- RMM LOG BEGIN") != std::string::npos);
  CHECK(lines.find("][info  ] 1 of two: 2 KiB\n") != std::string::npos);
  CHECK(lines.find("][debug ] statistics: ") != std::string::npos && lines.find("left out") == std::string::npos);
}

/* Under {"stack": ["statistics", "pool", "device"]}. */
void begins_with_the_graph()
{
  rmm::device_uvector<int> vector{1000, rmm::cuda_stream_view{}};
  rmm::mr::device_memory_resource *initial = rmm::mr::get_current_device_resource();
  CHECK(initial->hipmm_resource().type() == "statistics" &&
        hipmm::current_resource().statistics().current_bytes == 4000);
  CHECK(!initial->is_equal(device_memory{}) && device_memory{}.hipmm_resource().type() == "device");
}

} // namespace

int main(int argc, char **argv)
{
  if (argc > 1 && argv[1] == std::string{"graph"})
    return run_tests({test{"begins with the graph", begins_with_the_graph}});
  const test tests[] = {
      {"keeps bytes through all changes", keeps_bytes_through_all_changes},
      {"holds elements", holds_elements},
      {"stays on its device", stays_on_its_device},
      {"takes resources of other classes", takes_resources_of_other_classes},
      {"outlives its resource", outlives_its_resource},
      {"has streams", has_streams},
      {"writes the log", writes_the_log},
  };
  return run_tests(tests);
}
