// SPDX-License-Identifier: MIT
// Tests of hipmm/cpp/{error,graph,library,resource,stream}.hpp.
#include "test.hpp"

#include <hipmm/hipmm.hpp>
#include <hipmm/torch.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <type_traits>

static_assert(std::is_nothrow_move_constructible_v<hipmm::resource> &&
              std::is_nothrow_copy_constructible_v<hipmm::resource>);
static_assert(std::is_nothrow_move_constructible_v<hipmm::stream> && !std::is_copy_constructible_v<hipmm::stream>);
static_assert(std::is_nothrow_move_assignable_v<hipmm::stream_pool> && !std::is_copy_assignable_v<hipmm::stream_pool>);
static_assert(std::is_nothrow_move_constructible_v<hipmm::library> && !std::is_copy_constructible_v<hipmm::library>);
static_assert(std::is_nothrow_move_assignable_v<hipmm::event> && !std::is_copy_constructible_v<hipmm::event>);
static_assert(std::is_nothrow_move_assignable_v<hipmm::region> && std::is_nothrow_destructible_v<hipmm::mempool>);
static_assert(std::is_nothrow_destructible_v<hipmm::library> && std::is_nothrow_destructible_v<hipmm::device_guard> &&
              std::is_nothrow_destructible_v<hipmm::scoped_resource>);
static_assert(std::is_convertible_v<void *, hipmm::stream_ref> &&
              std::is_convertible_v<hipmm::stream, hipmm::stream_ref>);
static_assert(std::is_base_of_v<std::bad_alloc, hipmm::bad_alloc> &&
              std::is_base_of_v<hipmm::failure, hipmm::bad_alloc>);
static_assert(!std::is_base_of_v<std::bad_alloc, hipmm::error>);

namespace
{

hipmm::graph stack()
{
  hipmm::graph graph;
  graph.add("memory", "device");
  graph.add("pool", "pool", {{"maximum_size", "64MiB"}}).over("memory");
  graph.add("top", "statistics").over("pool");
  graph.use("top");
  return graph;
}

void graph_is_the_text_of_a_file()
{
  hipmm::graph graph;
  graph.set("runtime", "software").set("plugin_path", std::vector<std::string>{"/a", "/b"});
  graph.add("a \"name\"\n", "pool", {{"number", 12}, {"fraction", 0.5}, {"flag", true}}).over("b");
  graph.add("b", "binning", {{"bins", {{{"size", "64KiB"}}, {{"size", 4096U}, {"resource", "c"}}}}});
  graph.use("b").use("c", 3);
  CHECK(graph.json() ==
        R"({"runtime": "software", "plugin_path": ["/a", "/b"], "resources": {"a \"name\"\u000a": {"type": "pool", )"
        R"("number": 12, "fraction": 0.5, "flag": true, "upstream": "b"}, "b": {"type": "binning", "bins": )"
        R"([{"size": "64KiB"}, {"size": 4096, "resource": "c"}]}}, "devices": {"default": "b", "3": "c"}})");
}

void a_resource_may_have_several_below()
{
  hipmm::graph graph = stack();
  graph.add("narrow", "limiting", {{"limit", 1024}}).over("pool");
  graph.add("both", "fallback").over("narrow", "pool");
  graph.use("both", 1);
  const hipmm::library library{graph};
  const hipmm::device_guard guard{1};
  const hipmm::resource both = hipmm::current_resource();
  CHECK(both.name() == "both");
  void *const large = both.allocate(4096);
  CHECK(large != nullptr);
  both.deallocate(large, 4096);
}

void errors_carry_the_record()
{
  try {
    hipmm::library library{hipmm::graph{}.set("runtime", 12)};
    throw std::runtime_error{"the graph was taken"};
  } catch (const hipmm::error &problem) {
    CHECK(problem.code() == HIPMM_E_CONFIG);
    CHECK(std::strcmp(problem.record().path, "/runtime") == 0);
    CHECK(std::strcmp(problem.what(), problem.record().message) == 0);
  }
  CHECK_THROWS(hipmm::error, "no.json", hipmm::library{"no.json"});
}

void want_of_memory_is_bad_alloc()
{
  const hipmm::library library{stack()};
  CHECK_THROWS(std::bad_alloc, "pool: cannot allocate", (void)hipmm::current_resource().allocate(1U << 30U));
  CHECK_THROWS(hipmm::bad_alloc, "64", (void)hipmm::resource{}.allocate(65U << 20U));
}

void reservations_are_released()
{
  hipmm::graph graph;
  graph.add("memory", "device");
  graph.add("pool", "pool").over("memory");
  graph.add("budget", "reserving", {{"limit", "8MiB"}}).over("pool");
  graph.use("budget");
  const hipmm::library library{graph};
  const hipmm::resource budget = hipmm::current_resource();
  const std::vector<std::uint8_t> data(2U << 20U, std::uint8_t{7});
  hipmm::buffer kept;
  {
    hipmm::reservation sort{6U << 20U, std::chrono::seconds{30}, budget, 0, "sort"};
    CHECK(sort.memory().name() == "sort" && budget.query("held_bytes") == 6 << 20);
    kept = hipmm::buffer{data.data(), data.size(), {}, sort.memory()};
    CHECK_THROWS(hipmm::bad_alloc, "holders: sort (6 MiB, 2 MiB of it in use)",
                 hipmm::reservation(4U << 20U, std::chrono::nanoseconds{0}));
    sort.resize(4U << 20U);
    hipmm::reservation second{4U << 20U, hipmm::reservation::for_ever};
    hipmm::reservation moved{std::move(second)};
    moved.release();
    moved.release(); /* has nothing any more */
    CHECK(budget.query("held_bytes") == 4 << 20);
    CHECK_THROWS(hipmm::error, "reservation is NULL", moved.resize(1));
  }
  CHECK(budget.query("held_bytes") == 2 << 20);
  std::vector<std::uint8_t> read(data.size());
  kept.read(read.data(), read.size());
  CHECK(read == data);
  kept = hipmm::buffer{};
  CHECK(budget.query("held_bytes") == 0);
}

void growing_vectors_keep_their_addresses()
{
  hipmm::graph graph;
  graph.add("memory", "device");
  graph.add("pool", "pool", {{"maximum_size", "8MiB"}, {"growth", "mapped"}}).over("memory");
  graph.use("pool");
  const hipmm::library library{graph};
  const hipmm::resource pool = hipmm::current_resource();
  {
    hipmm::growing_vector<std::uint32_t> values{16U << 20U};
    std::uint32_t *const first = values.data();
    CHECK(values.is_empty() && values.capacity() == 0 && values.max_size() == 16U << 20U &&
          pool.query("live_bytes") == 0);
    values.resize(1000);
    values.data()[999] = 77;
    values.resize(2U << 20U);
    CHECK(values.data() == first && first[999] == 77 && values.end() - values.begin() == 2 << 20);
    CHECK_THROWS(hipmm::bad_alloc, "maximum_size 8 MiB", values.resize(4U << 20U));
    CHECK_THROWS(std::length_error, "more elements", values.resize((16U << 20U) + 1));
    CHECK_THROWS(hipmm::error, "1 byte to 64 TiB", hipmm::growing_vector<std::uint32_t>{SIZE_MAX});
    CHECK(values.size() == 2U << 20U && pool.query("live_bytes") == 8 << 20);
    hipmm::growing_vector<std::uint32_t> moved{std::move(values)};
    moved.resize(1000);
    moved.shrink_to_fit();
    moved.shrink_to_fit();
    CHECK(moved.data() == first && first[999] == 77 && moved.memory_resource() == pool);
    CHECK(pool.query("live_bytes") == static_cast<std::int64_t>(moved.capacity() * sizeof(std::uint32_t)));
    moved = hipmm::growing_vector<std::uint32_t>{5};
    CHECK(moved.max_size() == 5 && pool.query("live_bytes") == 0 && pool.query("live_count") == 1);
  }
  CHECK(pool.query("live_count") == 0);
  CHECK_THROWS(hipmm::error, "0 bytes", hipmm::growing_vector<int>{0});
}

void movable_buffers_keep_their_content()
{
  constexpr std::size_t bytes = 4U << 20U;
  hipmm::graph graph;
  graph.add("memory", "device");
  graph.add("pool", "pool", {{"maximum_size", "6MiB"}}).over("memory");
  graph.add("host", "pinned");
  graph.add("movable", "spilling", {{"pinned", "host"}}).over("pool");
  graph.use("movable");
  const hipmm::library library{graph};
  const hipmm::resource top = hipmm::current_resource();
  {
    hipmm::movable first{bytes};
    const hipmm::movable second{bytes};
    CHECK(first.size() == bytes && top.query("live_bytes") == 0);
    {
      hipmm::movable::pinned pin = first.pin();
      std::memset(pin.data(), 7, bytes);
      CHECK_THROWS(hipmm::bad_alloc, "", (void)second.pin());
      const hipmm::movable::pinned moved{std::move(pin)};
      pin.unpin(); /* has nothing any more */
      CHECK_THROWS(hipmm::bad_alloc, "", (void)second.pin());
    }
    std::memset(second.pin().data(), 9, bytes);
    CHECK(top.query("spills") == 1);
    hipmm::movable::pinned pin = first.pin();
    const std::vector<char> expected(bytes, 7);
    CHECK(std::memcmp(pin.data(), expected.data(), bytes) == 0);
    pin.unpin();
    CHECK(pin.data() == nullptr && static_cast<const char *>(second.pin().data())[bytes - 1] == 9);
    hipmm::movable taken{std::move(first)};
    CHECK(static_cast<const char *>(taken.pin().data())[bytes - 1] == 7 && taken.get());
  }
  CHECK(top.query("live_bytes") == 0);
  CHECK(hipmm::movable{0}.pin().data() == nullptr);
  CHECK_THROWS(hipmm::error, "neither it nor a resource below it",
               hipmm::movable(1, hipmm::current_resource().upstreams()[0]));
}

void resources_are_references()
{
  const hipmm::library library{stack()};
  const hipmm::resource top = hipmm::current_resource(), same = hipmm::current_resource(0);
  const hipmm::resource pool = hipmm::named_resource("pool");
  CHECK(top == same && top != pool && top && !hipmm::resource{});
  CHECK(top.name() == "top" && top.type() == "statistics" && pool.device() == 0);

  void *block = top.allocate(1000);
  CHECK(top.statistics().current_bytes == 1000 && top.query("current_bytes") == 1000);
  CHECK(pool.try_deallocate(block, 999) == HIPMM_E_SIZE);
  CHECK(top.statistics().current_count == 1);
  top.deallocate(block, 1000);
  CHECK(top.statistics().current_count == 0);

  hipmm::resource moved = std::move(const_cast<hipmm::resource &>(same));
  CHECK(same == top && moved == top);
  moved = pool;
  CHECK(moved == pool && hipmm::resource::retain(pool.get()) == pool);
}

void memory_outlives_the_library()
{
  auto library = std::make_unique<hipmm::library>(stack());
  const hipmm::resource top = hipmm::current_resource();
  void *block = top.allocate(100);
  library.reset();
  CHECK_THROWS(hipmm::error, "", (void)hipmm::current_resource());
  top.deallocate(block, 100);
}

void scopes_make_resources_current()
{
  const hipmm::library library{stack()};
  const hipmm::resource top = hipmm::current_resource(), pool = hipmm::named_resource("pool");
  {
    const hipmm::scoped_resource outer{pool};
    CHECK(hipmm::current_resource() == pool);
    {
      const hipmm::resource made = hipmm::make_resource(0, "limiting", R"({"limit": 4096})", {pool});
      const hipmm::scoped_resource inner{made};
      CHECK(hipmm::current_resource() == made);
      CHECK_THROWS(hipmm::bad_alloc, "4", (void)hipmm::resource{}.allocate(8192));
    }
    CHECK(hipmm::current_resource() == pool);
  }
  CHECK(hipmm::current_resource() == top);
  CHECK_THROWS(hipmm::error, "no resource", (void)hipmm::named_resource("nothing"));
  CHECK_THROWS(hipmm::error, "limti", (void)hipmm::make_resource(0, "limiting", R"({"limti": 1})", {pool}));
}

void scopes_tag_what_they_allocate()
{
  const hipmm::library library = hipmm::library::from_string(R"({"stack": ["tracking", "device"]})");
  const hipmm::resource top = hipmm::current_resource();
  void *block = nullptr;
  {
    const hipmm::scoped_tag outer{"step 3"}, inner{"layer 7"};
    CHECK_THROWS(hipmm::error, "empty", hipmm::scoped_tag{""});
    block = top.allocate(100);
  }
  CHECK(::hipmm_tag_pop() == HIPMM_E_STATE);
  CHECK(top.report().find("tag: step 3 / layer 7\n") != std::string::npos);
  top.deallocate(block, 100);
}

/* As the runtimes declare their functions. */
void *of_cuda(CUstream_st *stream)
{
  return stream;
}
void *of_hip(ihipStream_t *stream)
{
  return stream;
}

void streams_are_those_of_the_runtimes()
{
  const hipmm::library library{stack()};
  const hipmm::stream stream;
  const hipmm::stream_ref view = stream;
  CHECK(of_cuda(stream) == stream.get() && of_hip(stream) == stream.get());
  CHECK(of_cuda(view) == stream.get() && of_hip(view) == stream.get() && !of_hip(hipmm::stream_ref{}));
  ihipStream_t *const handle = view;
  CHECK(hipmm::stream_ref{handle} == view && view != nullptr && hipmm::stream_ref{} == nullptr);
  static_assert(!std::is_convertible_v<hipmm::stream_ref, int *> && !std::is_convertible_v<hipmm::stream_ref, bool>);
}

void streams_have_owners()
{
  const hipmm::library library{stack()};
  hipmm::stream one{0, hipmm::stream_flags::non_blocking}, other;
  CHECK(one.get() && one.device() == 0 && hipmm::stream_ref{one} != other.view());
  other.wait(one);
  one.synchronize();
  CHECK(one.view().is_done() && !one.view().is_default() && hipmm::default_stream.is_default());
  CHECK(hipmm::legacy_stream.is_default() && hipmm::per_thread_stream.is_per_thread_default());
  hipmm::stream moved{std::move(one)};
  CHECK(moved.get() && !one.get());
  moved = std::move(other);

  hipmm::stream_pool pool{0, 3};
  CHECK(pool.size() == 3 && pool.get_stream(0) == pool.get_stream(3) && pool.get_stream(0) != pool.get_stream(1));
  CHECK_THROWS(hipmm::error, "device", hipmm::stream{99});
}

void guards_switch_the_device()
{
  const hipmm::library library{stack()};
  CHECK(hipmm::device_count() == 2 && hipmm::current_device() == 0);
  {
    const hipmm::device_guard guard{1};
    CHECK(hipmm::current_device() == 1 && hipmm::current_resource().device() == 1);
  }
  CHECK(hipmm::current_device() == 0);
  CHECK_THROWS(hipmm::error, "2", hipmm::device_guard{2});
}

void initialisations_count()
{
  CHECK(!hipmm::is_initialized());
  {
    const hipmm::library library{stack()};
    const hipmm::library again = hipmm::library::if_needed();
    CHECK(hipmm::is_initialized() && hipmm::current_resource().name() == "top");
  }
  CHECK(!hipmm::is_initialized());
}

void stacks_of_other_graphs_stand_beside()
{
  hipmm::resource kept;
  {
    const hipmm::library library{stack()};
    const hipmm::stack mine = hipmm::stack::from_string(1, R"({"stack": ["statistics", "device"]})", "mine");
    CHECK(mine.top().device() == 1 && mine.top() != hipmm::current_resource(1));
    const hipmm::scoped_resource scope{mine};
    CHECK(hipmm::current_resource(1) == mine.top());
    kept = hipmm::stack::from_graph(0, stack()).top();
  }
  void *block = kept.allocate(100);
  CHECK(kept.statistics().current_bytes == 100);
  kept.deallocate(block, 100);
  CHECK_THROWS(hipmm::error, "no.json", (void)hipmm::stack::from_file(0, "no.json"));
  CHECK_THROWS(hipmm::error, "polo", (void)hipmm::stack::from_string(0, R"({"stack": ["polo"]})"));
}

void blocks_can_be_found_zeroed_and_moved()
{
  const hipmm::library library{stack()};
  const hipmm::resource top = hipmm::current_resource(), pinned = hipmm::make_resource(0, "pinned");
  CHECK(!top.is_host_accessible() && top.is_device_accessible() && pinned.is_host_accessible());
  CHECK(top.upstreams().size() == 1 && top.upstreams()[0] == hipmm::named_resource("pool"));

  const hipmm::stream stream;
  auto *block = static_cast<char *>(pinned.allocate_zeroed(1000, stream));
  stream.synchronize();
  CHECK(block[0] == 0 && block[999] == 0);
  block[999] = 'x';
  const hipmm::block found = hipmm::block_of(block + 5);
  CHECK(found.owner == pinned && found.ptr == block && found.bytes == 1000 && found.usable_bytes >= 1000);
  block = static_cast<char *>(pinned.reallocate(block, 1000, 5000, stream));
  stream.synchronize();
  CHECK(block[999] == 'x' && hipmm::block_of(block).bytes == 5000);
  CHECK_THROWS(hipmm::error, "", (void)pinned.reallocate(block, 999, 2000, stream));
  pinned.deallocate(block, 5000, stream);
  CHECK_THROWS(hipmm::error, "", (void)hipmm::block_of(block));
  void *now = top.allocate_sync(64);
  top.deallocate_sync(now, 64);
  CHECK(top.statistics().current_count == 0);
}

void streams_have_priorities()
{
  const hipmm::library library{stack()};
  const hipmm::stream_priorities range = hipmm::priorities_of(0);
  CHECK(range.greatest <= 0 && range.least >= 0);
  const hipmm::stream first{0, hipmm::stream_flags::non_blocking, range.greatest};
  CHECK(first.device() == 0);
  CHECK_THROWS(hipmm::error, "priorit", hipmm::stream(0, hipmm::stream_flags::sync_default, range.greatest - 1));
}

void events_are_points_in_a_stream()
{
  const hipmm::library library{stack()};
  const hipmm::stream writer, reader{1};
  hipmm::event event{0}, other{reader};
  CHECK(event.is_done());
  event.record(writer);
  reader.wait(event); /* of another device */
  hipmm::stream_ref{}.wait(event);
  event.synchronize();
  CHECK(event.is_done());
  CHECK_THROWS(hipmm::error, "device", event.record(reader));
  CHECK_THROWS(hipmm::error, "device", hipmm::event{9});
  const hipmm::event moved = std::move(event);
  CHECK(moved.is_done() && !event.get());
  CHECK_THROWS(hipmm::error, "event is NULL", event.record(writer));
  CHECK_THROWS(hipmm::error, "event is NULL", reader.wait(event));
  other.record(reader);
  event = std::move(other);
  event.synchronize();
}

void graphs_name_memory()
{
  const hipmm::library library{stack()};
  const hipmm::resource device = hipmm::named_resource("memory");
  void *const memory = device.allocate(1U << 20U);
  hipmm::resource kept;
  {
    hipmm::region region{"mine", memory, 1U << 20U};
    const hipmm::region moved = std::move(region);
    CHECK(moved.name() == "mine");
    kept = hipmm::make_resource(0, "fixed_buffer", R"({"region": "mine"})");
    void *block = kept.allocate(1000);
    CHECK(block >= memory && block < static_cast<char *>(memory) + (1U << 20U));
    kept.deallocate(block, 1000);
    CHECK_THROWS(hipmm::bad_alloc, "", (void)kept.allocate(2U << 20U));
  }
  CHECK_THROWS(hipmm::error, "mine", (void)hipmm::make_resource(0, "fixed_buffer", R"({"region": "mine"})"));
  kept = {};
  device.deallocate(memory, 1U << 20U);

  const hipmm::resource async = hipmm::make_resource(0, "async");
  void *handle = nullptr;
  hipmm::check(hipmm_resource_pool_handle(async.get(), &handle));
  const hipmm::mempool pool{"theirs", handle};
  const hipmm::resource view = hipmm::make_resource(0, "async_view", R"({"pool_handle": "theirs"})");
  view.deallocate(view.allocate(100), 100);
  CHECK_THROWS(hipmm::error, "", hipmm::region("", memory, 16));
  CHECK_THROWS(hipmm::error, "", hipmm::mempool("none", nullptr));
}

void graphs_name_functions()
{
  alignas(256) static char memory[4096];
  int allocated = 0, asked = 0, events = 0;
  hipmm::allocator_functions source{"mine",
                                    [&](std::size_t bytes, std::size_t, hipmm::stream_ref) -> void * {
                                      if (bytes == 13) throw std::runtime_error{"unlucky"};
                                      if (bytes > sizeof memory) throw std::bad_alloc{};
                                      allocated++;
                                      return memory;
                                    },
                                    [&](void *, std::size_t, std::size_t, hipmm::stream_ref) {
                                      allocated--;
                                      throw std::runtime_error{"ignored"};
                                    }};
  const hipmm::allocator_functions moved{std::move(source)};
  const hipmm::failure_handler handler{"retry", [&](std::size_t) -> bool {
                                         if (++asked == 2) throw std::runtime_error{"no more"};
                                         return true;
                                       }};
  const hipmm::event_hooks hooks{"count", [&](const ::hipmm_event &) { events++; }, 1U << HIPMM_EVENT_ALLOCATED};
  {
    const hipmm::library library = hipmm::library::from_string(
        R"({"stack": [{"type": "hooks", "hooks": "count"}, {"type": "failure_callback", "callback": "retry"},)"
        R"( {"type": "callback", "allocator": "mine"}]})");
    const hipmm::resource top = hipmm::current_resource();
    void *block = top.allocate(100);
    CHECK(block == memory && allocated == 1 && events == 1);
    top.deallocate(block, 100);
    CHECK(allocated == 0);
    CHECK_THROWS(std::bad_alloc, "", (void)top.allocate(8192));
    CHECK(asked == 2 && events == 1);
    CHECK_THROWS(hipmm::error, "", (void)top.allocate(13));
  }
  CHECK_THROWS(hipmm::error, "name", hipmm::failure_handler("a/b", [](std::size_t) { return false; }));

  hipmm::event_hooks replaced{"same", [](const ::hipmm_event &) {}};
  replaced = hipmm::event_hooks{"same", [&](const ::hipmm_event &) { events++; }}; /* the name stays registered */
  const hipmm::stack over =
      hipmm::stack::from_string(0, R"({"stack": [{"type": "hooks", "hooks": "same"}, "device"]})");
  over.top().deallocate(over.top().allocate(64), 64);
  CHECK(events > 1);
}

/* As PyTorch passes a filter: by value. */
using begin_function = void (*)(int device, ::hipmm_torch_pool pool, std::function<bool(hipmm_stream_t)> filter);

/* Of a private pool of PyTorch's. This one has its state on the heap. */
struct filter {
  std::array<hipmm_stream_t, 8> taken;
  std::shared_ptr<int> asked;

  bool operator()(hipmm_stream_t stream) const
  {
    ++*asked;
    return stream == taken.back();
  }
};

void *torch_block(hipmm_stream_t stream)
{
  void *block = ::hipmm_torch_malloc(1 << 20, 0, stream);
  ::hipmm_torch_free(block, 1 << 20, 0, stream);
  return block;
}

void private_pools_ask_their_filters()
{
  const ::hipmm_torch_pool pools[] = {{0, 1}, {0, 2}};
  const auto asked = std::make_shared<int>();
  const hipmm::library library{stack()};
  const hipmm::stream streams[2];
  void *blocks[2];
  const auto begin =
      reinterpret_cast<begin_function>(reinterpret_cast<std::uintptr_t>(::hipmm_torch_begin_allocate_to_pool));
  for (int i = 0; i < 2; i++) {
    filter of_stream{{}, asked};
    of_stream.taken.back() = streams[i].get();
    begin(0, pools[i], of_stream);
  }
  CHECK(asked.use_count() == 3 && !*asked); /* a copy each, while the pools are begun */
  for (int i = 0; i < 2; i++) blocks[i] = torch_block(streams[i].get());
  CHECK(*asked == 3 && blocks[0] != blocks[1]); /* the pool that was begun last is asked first */
  void *other = torch_block(nullptr);
  CHECK(*asked == 5 && other != blocks[0] && other != blocks[1]);
  for (int i = 0; i < 2; i++) {
    CHECK(torch_block(streams[i].get()) == blocks[i]);
    ::hipmm_torch_end_allocate_to_pool(0, pools[i]);
    void *block = torch_block(streams[i].get());
    CHECK(block != blocks[0] && block != blocks[1]); /* they wait for the release */
  }
  CHECK(asked.use_count() == 1);
  for (const ::hipmm_torch_pool &pool : pools) ::hipmm_torch_release_pool(0, pool);
}

/* The name is that of the object which was registered last, whichever is destroyed first. */
void names_pass_to_the_latest_object()
{
  const hipmm::library library{stack()};
  const auto is_registered = [](const char *options, const char *type, const std::vector<hipmm::resource> &below) {
    try {
      return static_cast<bool>(hipmm::make_resource(0, type, options, below));
    } catch (const hipmm::error &) {
      return false;
    }
  };
  const std::vector<hipmm::resource> below{hipmm::named_resource("memory")};
  const auto has_handler = [&] { return is_registered(R"({"callback": "spill"})", "failure_callback", below); };
  const auto refuse = [](std::size_t) { return false; };
  auto handler = std::make_unique<hipmm::failure_handler>("spill", refuse);
  auto renewed = std::make_unique<hipmm::failure_handler>("spill", refuse);
  handler = std::move(renewed);
  CHECK(has_handler());
  const hipmm::failure_handler again{"spill", refuse};
  *handler = hipmm::failure_handler{"other", refuse};
  CHECK(has_handler() && is_registered(R"({"callback": "other"})", "failure_callback", below));
  handler.reset();
  CHECK(has_handler() && !is_registered(R"({"callback": "other"})", "failure_callback", below));

  alignas(256) static char memory[4096];
  const auto has_region = [&] { return is_registered(R"({"region": "mine"})", "fixed_buffer", {}); };
  auto region = std::make_unique<hipmm::region>("mine", memory, sizeof memory);
  region = std::make_unique<hipmm::region>("mine", memory, sizeof memory);
  CHECK(has_region());
  region.reset();
  CHECK(!has_region());
}

} // namespace

int main()
{
  const test tests[] = {
      {"a graph is the text of a file", graph_is_the_text_of_a_file},
      {"a resource may have several below", a_resource_may_have_several_below},
      {"errors carry the record", errors_carry_the_record},
      {"want of memory is bad_alloc", want_of_memory_is_bad_alloc},
      {"reservations are released", reservations_are_released},
      {"movable buffers keep their content", movable_buffers_keep_their_content},
      {"growing vectors keep their addresses", growing_vectors_keep_their_addresses},
      {"resources are references", resources_are_references},
      {"memory outlives the library", memory_outlives_the_library},
      {"scopes put resources in force", scopes_make_resources_current},
      {"scopes tag what they allocate", scopes_tag_what_they_allocate},
      {"streams are those of the runtimes", streams_are_those_of_the_runtimes},
      {"streams have owners", streams_have_owners},
      {"guards switch the device", guards_switch_the_device},
      {"initialisations count", initialisations_count},
      {"stacks of other graphs stand beside", stacks_of_other_graphs_stand_beside},
      {"blocks can be found, zeroed and moved", blocks_can_be_found_zeroed_and_moved},
      {"streams have priorities", streams_have_priorities},
      {"events are points in a stream", events_are_points_in_a_stream},
      {"graphs name functions", graphs_name_functions},
      {"graphs name memory", graphs_name_memory},
      {"private pools ask their filters", private_pools_ask_their_filters},
      {"names pass to the latest object", names_pass_to_the_latest_object},
  };
  return run_tests(tests);
}
