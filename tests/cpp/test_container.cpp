// SPDX-License-Identifier: MIT
// Tests of hipmm/cpp/{buffer,vector,allocator}.hpp: the data, and that nothing is left in the resource.
#include "test.hpp"

#include <hipmm/hipmm.hpp>

#include <array>
#include <cstdint>
#include <map>
#include <numeric>
#include <type_traits>

static_assert(std::is_nothrow_move_constructible_v<hipmm::buffer> && !std::is_copy_constructible_v<hipmm::buffer>);
static_assert(std::is_nothrow_move_assignable_v<hipmm::vector<int>> &&
              !std::is_copy_constructible_v<hipmm::vector<int>>);
static_assert(std::is_nothrow_move_constructible_v<hipmm::scalar<double>>);
static_assert(std::is_nothrow_move_assignable_v<hipmm::host_buffer> &&
              std::is_nothrow_destructible_v<hipmm::host_buffer>);
static_assert(std::is_same_v<hipmm::vector<int>::iterator, int *>);

namespace
{

/* A stack whose allocations are counted; at its end none may be left. */
class counted_stack
{
public:
  counted_stack() : library_{hipmm::library::from_string(R"({"stack": ["statistics", "pool", "device"]})")}
  {
  }
  ~counted_stack() noexcept(false)
  {
    if (top_.statistics().current_count != 0 && std::uncaught_exceptions() == 0)
      throw std::runtime_error{"something is left in the resource"};
  }
  [[nodiscard]] const hipmm::resource &top() const
  {
    return top_;
  }

private:
  hipmm::library library_;
  hipmm::resource top_ = hipmm::current_resource();
};

/* A stream argument may be left out: it is the default stream. But where that would make a copy constructor. */
void the_default_stream_is_the_default()
{
  const counted_stack stack;
  hipmm::buffer buffer{100};
  const hipmm::buffer none{0};
  const auto made = []() -> hipmm::buffer { return {70, hipmm::stream_ref{}}; }();
  CHECK(buffer.size() == 100 && none.size() == 0 && made.size() == 70 && buffer.stream() == hipmm::stream_ref{});
  const std::array<char, 4> bytes{1, 2, 3, 4};
  std::array<char, 4> back{};
  buffer.write(bytes.data(), 4);
  buffer.resize(200);
  buffer.read(back.data(), 4);
  CHECK(back == bytes);
  buffer.fill(0);
  hipmm::vector<int> vector{10};
  vector.set_element(9, 4);
  vector.resize(20);
  CHECK(vector.size() == 20 && vector.element(9) == 4);
  const hipmm::scalar<int> scalar{5};
  CHECK(scalar.value() == 5);
  const hipmm::host_buffer host{30};
  CHECK(host.size() == 30);
}

void buffers_hold_bytes()
{
  const counted_stack stack;
  const hipmm::stream stream;
  std::vector<std::uint8_t> bytes(5000), back(5000);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{});

  hipmm::buffer buffer{bytes.data(), bytes.size(), stream};
  CHECK(buffer.size() == 5000 && buffer.stream() == stream.view() && buffer.memory_resource() == stack.top());
  buffer.resize(9000, stream);
  buffer.read(back.data(), back.size(), stream);
  CHECK(back == bytes);

  const hipmm::buffer copy{buffer, stream, hipmm::named_resource("pool")};
  CHECK(copy.size() == 9000 && copy.data() != buffer.data() && copy.memory_resource().name() == "pool");
  buffer.fill(7, stream);
  copy.read(back.data(), back.size(), stream);
  CHECK(back == bytes);
  CHECK_THROWS(hipmm::error, "8999", buffer.write(back.data(), 2, stream, 8999));

  void *const data = buffer.data();
  hipmm::buffer moved{std::move(buffer)};
  CHECK(moved.data() == data && !buffer.data() && buffer.is_empty());
  buffer.resize(10, stream);
  CHECK(buffer.size() == 10);
  moved = std::move(buffer);
  CHECK(moved.size() == 10);
  const hipmm::buffer adopted = hipmm::buffer::adopt(moved.release());
  CHECK(adopted.size() == 10 && !moved.data());
}

void vectors_hold_elements()
{
  const counted_stack stack;
  const hipmm::stream stream;
  hipmm::vector<double> vector{{1.0, 2.0, 3.0}, stream};
  CHECK(vector.size() == 3 && vector.front_element(stream) == 1.0 && vector.back_element(stream) == 3.0);
  vector.resize(1000, stream);
  vector.set_element(999, 9.5, stream);
  const double value = 4.5;
  vector.set_element_async(1, value, stream);
  vector.set_element_to_zero_async(0, stream);
  const std::vector<double> host = vector.to_host(stream);
  CHECK(host[0] == 0.0 && host[1] == 4.5 && host[2] == 3.0 && host[999] == 9.5);
  CHECK(vector.end() - vector.begin() == 1000 && vector.element_ptr(2) == vector.data() + 2);

  CHECK_THROWS(hipmm::error, "8000", (void)vector.element(1000, stream));
  CHECK_THROWS(hipmm::error, "", (void)vector.element(SIZE_MAX, stream));
  CHECK_THROWS(std::bad_alloc, "", vector.resize(SIZE_MAX / 8 + 1, stream));
  CHECK(vector.size() == 1000);

  hipmm::buffer bytes = vector.release();
  CHECK(vector.is_empty() && bytes.size() == 8000);
  CHECK_THROWS(hipmm::error, "", (void)vector.front_element(stream));
  hipmm::vector<double> again{std::move(bytes)};
  CHECK(again.element(999, stream) == 9.5);
  hipmm::buffer odd{7, stream};
  CHECK_THROWS(std::invalid_argument, "whole number", hipmm::vector<double>{std::move(odd)});
}

void device_vectors_have_values()
{
  const counted_stack stack;
  const hipmm::stream stream;
  for (const std::size_t count : {0U, 1U, 2U, 3U, 1000U, 1024U, 4097U}) {
    hipmm::device_vector<int> vector(count, 7, stream);
    CHECK(vector.to_host(stream) == std::vector<int>(count, 7));
    vector.resize(count + 5, 3, stream);
    std::vector<int> expected(count, 7);
    expected.resize(count + 5, 3);
    CHECK(vector.to_host(stream) == expected);
  }
  CHECK(hipmm::device_vector<int>(3).to_host({}) == std::vector<int>(3));
}

void scalars_hold_one()
{
  const counted_stack stack;
  const hipmm::stream stream;
  hipmm::scalar<long> scalar{42, stream};
  CHECK(scalar.value(stream) == 42);
  scalar.set_value_to_zero_async(stream);
  CHECK(scalar.value(stream) == 0);
  scalar.set_value(-1, stream);
  const hipmm::scalar<long> copy{scalar, stream};
  const hipmm::scalar<long> moved{std::move(scalar)};
  CHECK(copy.value(stream) == -1 && moved.value(stream) == -1);
  CHECK_THROWS(hipmm::error, "", (void)scalar.value(stream));
}

void host_buffers_are_for_the_host()
{
  const counted_stack stack;
  const hipmm::stream stream;
  const hipmm::vector<int> vector{{1, 2, 3}, stream};
  const hipmm::host_buffer host{vector.data(), 12, stream};
  CHECK(static_cast<const int *>(host.data())[2] == 3);
  CHECK_THROWS(hipmm::error, "host cannot", hipmm::host_buffer(10, stream, stack.top()));
}

void standard_containers_use_resources()
{
  const counted_stack stack;
  const hipmm::stream stream;
  const hipmm::resource pinned = hipmm::make_resource(
      0, "statistics", "{}", {hipmm::make_resource(0, "pool", "{}", {hipmm::make_resource(0, "pinned")})});
  {
    hipmm::pmr_resource memory{pinned, stream};
    std::pmr::map<int, std::pmr::string> map{&memory};
    for (int i = 0; i < 200; i++) map[i] = std::pmr::string(100, static_cast<char>('a' + i % 26));
    CHECK(map[27] == std::pmr::string(100, 'b') && pinned.statistics().current_count == 400);
    CHECK(memory.is_equal(hipmm::pmr_resource{pinned, stream}) && !memory.is_equal(hipmm::pmr_resource{pinned}));
    void *const empty = memory.allocate(0, 1), *const other_empty = memory.allocate(0, 1); /* never null, nor equal */
    CHECK(empty && other_empty && empty != other_empty && pinned.statistics().current_count == 402);
    memory.deallocate(empty, 0, 1);
    memory.deallocate(other_empty, 0, 1);
  }
  CHECK(pinned.statistics().current_count == 0);
  CHECK_THROWS(std::invalid_argument, "host cannot", hipmm::pmr_resource{stack.top()});

  using bound = hipmm::stream_allocator_adaptor<hipmm::polymorphic_allocator<int>>;
  const bound allocator{hipmm::polymorphic_allocator<int>{pinned}, stream};
  std::vector<int, bound> numbers(100, 5, allocator);
  numbers.resize(1000, 6);
  CHECK(numbers[99] == 5 && numbers[999] == 6 && pinned.statistics().current_bytes >= 4000);
  CHECK(allocator != bound(hipmm::polymorphic_allocator<int>{stack.top()}, stream));
  CHECK_THROWS(std::bad_array_new_length, "",
               (void)hipmm::polymorphic_allocator<int>{pinned}.allocate(SIZE_MAX / 2, stream));
}

void unique_pointers_free()
{
  const counted_stack stack;
  const hipmm::stream stream;
  {
    const auto one = hipmm::make_unique<double>(stream);
    const auto many = hipmm::make_unique<double[]>(stream, stack.top(), 100);
    CHECK(one && many && stack.top().statistics().current_bytes == 808);
  }
  CHECK(stack.top().statistics().current_bytes == 0);
}

void moved_objects_are_refused_or_empty()
{
  const counted_stack stack;
  const hipmm::stream stream;
  char byte = 1;
  hipmm::buffer buffer{10, stream};
  const hipmm::buffer taken{std::move(buffer)};
  CHECK_THROWS(hipmm::error, "", buffer.write(&byte, 1, stream));
  CHECK_THROWS(hipmm::error, "", buffer.read(&byte, 1, stream));
  CHECK(buffer.capacity() == 0 && buffer.device() == -1 && hipmm::buffer(buffer, stream).is_empty());

  hipmm::host_buffer host{10, stream};
  const hipmm::host_buffer host_taken{std::move(host)};
  CHECK(!host.data() && host.size() == 0 && host_taken.size() == 10);
  CHECK_THROWS(hipmm::error, "", host.resize(20, stream));

  hipmm::stream_pool pool{0, 2};
  const hipmm::stream_pool pool_taken{std::move(pool)};
  CHECK(pool.size() == 0 && pool.device() == -1 && pool_taken.size() == 2);
  CHECK_THROWS(hipmm::error, "", (void)pool.get_stream());

  auto one = hipmm::make_unique<int>(stream), other = std::move(one);
  CHECK(!one && other);
}

/* What the target of an assignment had is freed by the assignment, not when the source ends. */
void assignments_free_what_was_there()
{
  const counted_stack stack;
  const hipmm::stream stream;
  hipmm::buffer buffer{1000, stream}, other{2000, stream};
  buffer = std::move(other);
  CHECK(buffer.size() == 2000 && !other.data() && other.is_empty() && stack.top().statistics().current_bytes == 2000);
  hipmm::vector<int> vector{{1, 2}, stream};
  vector = hipmm::vector<int>{{3}, stream};
  CHECK(vector.element(0, stream) == 3 && stack.top().statistics().current_bytes == 2004);
  hipmm::buffer &same = buffer;
  buffer = std::move(same);
  CHECK(buffer.size() == 2000);

  hipmm::stream first, second;
  const hipmm::stream_ref gone = first;
  first = std::move(second);
  CHECK(!second.get() && first.get() && first.get() != gone.get());
  CHECK_THROWS(hipmm::error, "", gone.synchronize());
}

/* Destructors do not throw, and memory is not lost, when the stream has died before its container. */
void containers_outlive_their_stream()
{
  const counted_stack stack;
  hipmm::stream stream;
  const hipmm::buffer buffer{1000, stream};
  hipmm::vector<int> vector{{1, 2, 3}, stream};
  stream = hipmm::stream{};
  CHECK_THROWS(hipmm::error, "stream", vector.resize(100, buffer.stream()));
  vector.set_stream({});
  CHECK(vector.element(2, {}) == 3);
}

void unequal_allocators_copy()
{
  const counted_stack stack;
  const hipmm::resource pinned = hipmm::make_resource(0, "pinned"), managed = hipmm::make_resource(0, "managed");
  const hipmm::resource first = hipmm::make_resource(0, "statistics", "{}", {pinned});
  const hipmm::resource second = hipmm::make_resource(0, "statistics", "{}", {managed});
  {
    using bound = hipmm::stream_allocator_adaptor<hipmm::polymorphic_allocator<int>>;
    std::vector<int, bound> one(100, 5, bound{hipmm::polymorphic_allocator<int>{first}, {}});
    std::vector<int, bound> other(bound{hipmm::polymorphic_allocator<int>{second}, {}});
    other = std::move(one);
    CHECK(other.size() == 100 && other[99] == 5 && second.statistics().current_bytes == 400);

    hipmm::pmr_resource from{first}, to{second};
    std::pmr::vector<int> pmr_one(50, 6, &from), pmr_other{&to};
    pmr_other = std::move(pmr_one);
    CHECK(pmr_other[49] == 6 && second.statistics().current_bytes == 600);
  }
  CHECK(first.statistics().current_count == 0 && second.statistics().current_count == 0);
}

/* The standard wants a moved-from allocator to equal its copy. The same holds for all that names a resource. */
void moved_allocators_keep_their_resource()
{
  const counted_stack stack;
  const hipmm::resource own = hipmm::make_resource(0, "statistics", "{}", {hipmm::make_resource(0, "managed")});
  {
    using bound = hipmm::stream_allocator_adaptor<hipmm::polymorphic_allocator<int>>;
    std::vector<int, bound> one(100, 5, bound{hipmm::polymorphic_allocator<int>{own}, {}}), other{std::move(one)};
    CHECK(one.get_allocator() == other.get_allocator());
    one.resize(1000, 6);
    CHECK(other[99] == 5 && own.statistics().current_bytes == 4400);
    const hipmm::scoped_resource scope{hipmm::named_resource("pool")}; /* frees do not depend on what is in force */
    std::vector<int, bound>{one.get_allocator()}.swap(one);
    CHECK(own.statistics().current_bytes == 400);

    hipmm::pmr_resource from{own}, to{std::move(from)};
    std::pmr::vector<int> numbers(50, 7, &from);
    CHECK(from.is_equal(to) && own.statistics().current_bytes == 600);

    hipmm::unique_ptr<int[]> first = hipmm::make_unique<int[]>({}, own, 10), second{std::move(first)};
    CHECK(own.statistics().current_bytes == 640);
    first.reset(second.release());
    first.reset();
    CHECK(own.statistics().current_bytes == 600);
  }
  CHECK(own.statistics().current_count == 0 && stack.top().statistics().total_count == 0);
}

/* An allocator without a resource of its own takes the one in force once, not at each call. */
void allocators_stay_with_one_resource()
{
  const counted_stack stack;
  const hipmm::polymorphic_allocator<int> allocator{hipmm::resource{}};
  int *const block = allocator.allocate(100, {});
  const hipmm::scoped_resource scope{hipmm::make_resource(0, "statistics", "{}", {hipmm::make_resource(0, "managed")})};
  allocator.deallocate(block, 100, {});
  CHECK(allocator.get_resource() == stack.top() && stack.top().statistics().current_count == 0);

  hipmm::pmr_resource memory{hipmm::resource{}};
  const hipmm::resource managed = hipmm::current_resource();
  void *const bytes = memory.allocate(100);
  const hipmm::scoped_resource other{stack.top()};
  memory.deallocate(bytes, 100);
  CHECK(memory.get_resource() == managed && managed.statistics().current_count == 0);
}

void other_devices_and_dead_streams_are_refused()
{
  const counted_stack stack;
  const hipmm::resource far = hipmm::current_resource(1);
  CHECK_THROWS(hipmm::error, "device", hipmm::set_current_resource(far, 0));
  CHECK(hipmm::current_resource(0) == stack.top());
  {
    const hipmm::buffer buffer{64, {}, far};
    CHECK(buffer.device() == 1);
  }
  hipmm::stream_ref dead;
  {
    const hipmm::stream stream;
    dead = stream;
  }
  CHECK_THROWS(hipmm::error, "", (void)dead.device());
  CHECK_THROWS(hipmm::error, "", dead.synchronize());
  CHECK_THROWS(hipmm::error, "", dead.wait({}));
}

} // namespace

int main()
{
  const test tests[] = {
      {"the default stream is the default", the_default_stream_is_the_default},
      {"buffers hold bytes", buffers_hold_bytes},
      {"vectors hold elements", vectors_hold_elements},
      {"device vectors have values", device_vectors_have_values},
      {"scalars hold one", scalars_hold_one},
      {"host buffers are for the host", host_buffers_are_for_the_host},
      {"standard containers use resources", standard_containers_use_resources},
      {"unique pointers free", unique_pointers_free},
      {"moved objects are refused or empty", moved_objects_are_refused_or_empty},
      {"assignments free what was there", assignments_free_what_was_there},
      {"containers outlive their stream", containers_outlive_their_stream},
      {"unequal allocators copy", unequal_allocators_copy},
      {"moved allocators keep their resource", moved_allocators_keep_their_resource},
      {"allocators stay with one resource", allocators_stay_with_one_resource},
      {"other devices and dead streams are refused", other_devices_and_dead_streams_are_refused},
  };
  return run_tests(tests);
}
