/* SPDX-License-Identifier: MIT */
/* Tests of core/container/buffer.c and storage.c: contents through every change of size, on the stream
 * and the device that is meant; what is refused; and what is left when a call fails. */
#include "../support/both_schedulers.h"
#include "../support/graph_functions.h"
#include "../support/stream_watch.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char pool[] = "'stack': ['pool', 'device']";

static void drop_stream(hipmm_stream_t stream)
{
  assert_ok(hipmm_stream_destroy(stream));
}

/* A buffer whose contents tell where they belong. */
static struct hipmm_buffer *make(struct hipmm_resource *resource, size_t bytes, unsigned seed, hipmm_stream_t stream)
{
  struct hipmm_buffer *buffer = NULL;
  unsigned char *contents = malloc(bytes + 1);
  both_write(contents, bytes, seed);
  assert_ok(hipmm_buffer_create_from(resource, contents, bytes, stream, &buffer));
  memset(contents, 0xee, bytes); /* pageable memory is the caller's again */
  free(contents);
  return buffer;
}

/* The first `bytes` are those that make() wrote. */
static void assert_contents(const struct hipmm_buffer *buffer, size_t bytes, unsigned seed)
{
  unsigned char *contents = calloc(1, bytes + 1);
  assert_ok(hipmm_buffer_read(buffer, 0, bytes, hipmm_buffer_stream(buffer), contents));
  size_t good = both_good(contents, bytes, seed);
  free(contents);
  assert_int_equal(good, bytes);
}

static void assert_shape(const struct hipmm_buffer *buffer, size_t bytes, size_t capacity_bytes, hipmm_stream_t stream)
{
  assert_int_equal(hipmm_buffer_bytes(buffer), bytes);
  assert_int_equal(hipmm_buffer_capacity_bytes(buffer), capacity_bytes);
  assert_ptr_equal(hipmm_buffer_stream(buffer), stream);
  assert_true(!hipmm_buffer_data(buffer) == !capacity_bytes);
}

/* ---- Life ---- */

static void remembers_resource_stream_and_device(void **state)
{
  struct hipmm_resource *resource;
  int device = -1;
  both_start(state, pool);
  needs_devices(2);
  assert_ok(hipmm_resource_get_for_device(1, &resource));
  hipmm_stream_t stream = both_stream(1);
  struct hipmm_buffer *buffer = make(resource, 100000, 1, stream);
  assert_ptr_equal(hipmm_buffer_resource(buffer), resource);
  assert_int_equal(hipmm_buffer_device(buffer), 1);
  assert_shape(buffer, 100000, 100000, stream);
  assert_contents(buffer, 100000, 1);
  assert_ok(hipmm_buffer_destroy(buffer));
  assert_ok(hipmm_device_current(&device));
  assert_int_equal(device, 0);
  hipmm_resource_release(resource);
  drop_stream(stream);
}

static void zero_bytes_have_no_block(void **state)
{
  struct hipmm_buffer *buffer = NULL, *copy = NULL;
  int64_t count = -1;
  both_start(state, "'stack': ['statistics', 'device']");
  assert_ok(hipmm_buffer_create(NULL, 0, NULL, &buffer));
  assert_shape(buffer, 0, 0, NULL);
  assert_ok(hipmm_buffer_copy(buffer, NULL, NULL, &copy));
  assert_ok(hipmm_buffer_resize(buffer, 0, NULL));
  assert_ok(hipmm_buffer_shrink_to_fit(buffer, NULL));
  assert_ok(hipmm_buffer_write(buffer, 0, NULL, 0, NULL));
  assert_ok(hipmm_buffer_fill(buffer, 0, 1, 0, NULL));
  assert_ok(hipmm_buffer_destroy(copy));
  assert_ok(hipmm_buffer_create_from(NULL, NULL, 0, NULL, &copy));
  assert_ok(hipmm_resource_query(hipmm_buffer_resource(buffer), "total_count", &count));
  assert_int_equal(count, 0);
  assert_ok(hipmm_buffer_resize(buffer, 1000, NULL)); /* grows all the same */
  assert_shape(buffer, 1000, 1000, NULL);
  assert_ok(hipmm_buffer_destroy(buffer));
  assert_ok(hipmm_buffer_destroy(copy));
}

static void copies_pinned_memory_later(void **state)
{
  struct hipmm_host_buffer *pinned = NULL;
  struct hipmm_buffer *buffer = NULL;
  enum { BYTES = 300000 };
  both_start(state, pool);
  hipmm_stream_t stream = both_stream(0);
  assert_ok(hipmm_host_buffer_create(NULL, 2 * BYTES, stream, &pinned));
  unsigned char *host = hipmm_host_buffer_data(pinned);
  both_write(host, BYTES, 3);
  memset(host + BYTES, 0, BYTES);
  assert_ok(hipmm_buffer_create_from(NULL, host, BYTES, stream, &buffer));
  assert_ok(hipmm_buffer_fill(buffer, 1000, 5, 10, stream));
  assert_ok(hipmm_buffer_write_async(buffer, 2000, host, 10, stream));
  assert_ok(hipmm_buffer_read_async(buffer, 0, BYTES, stream, host + BYTES));
  assert_ok(hipmm_buffer_destroy(buffer)); /* behind the copies */
  assert_ok(hipmm_stream_synchronize(0, stream));
  for (size_t i = 0; i < BYTES; i++) {
    unsigned char wanted = i >= 1000 && i < 1010 ? 5 : i >= 2000 && i < 2010 ? host[i - 2000] : host[i];
    if (host[BYTES + i] != wanted) fail_msg("byte %zu", i);
  }
  assert_ok(hipmm_host_buffer_destroy(pinned));
  drop_stream(stream);
}

/* ---- Size ---- */

static void changes_only_the_size_up_to_the_capacity(void **state)
{
  needs_software();
  both_start(state, pool);
  struct hipmm_buffer *buffer = make(NULL, 50000, 4, NULL);
  void *data = hipmm_buffer_data(buffer);
  software()->reset_calls();
  assert_ok(hipmm_buffer_resize(buffer, 10, NULL));
  assert_shape(buffer, 10, 50000, NULL);
  assert_ok(hipmm_buffer_resize(buffer, 0, NULL));
  assert_ok(hipmm_buffer_resize(buffer, 50000, NULL));
  assert_ok(hipmm_buffer_reserve(buffer, 49999, NULL));
  assert_shape(buffer, 50000, 50000, NULL);
  assert_ptr_equal(hipmm_buffer_data(buffer), data);
  assert_int_equal(software()->calls("hipMemcpyAsync"), 0);
  assert_contents(buffer, 50000, 4);
  assert_ok(hipmm_buffer_destroy(buffer));
}

static void keeps_its_contents_when_it_grows(void **state)
{
  both_start(state, pool);
  hipmm_stream_t stream = both_stream(0);
  struct hipmm_buffer *buffer = make(NULL, 1000, 5, stream), *others[20];
  for (size_t i = 0; i < 20; i++) {
    size_t bytes = 1000 + (i + 1) * 7777;
    assert_ok(hipmm_buffer_resize(buffer, bytes, stream));
    assert_shape(buffer, bytes, bytes, stream);
    /* What gets the old block must not disturb the copy from it. */
    assert_ok(hipmm_buffer_create(NULL, 1000 + i * 7777, stream, &others[i]));
    assert_ok(hipmm_buffer_fill(others[i], 0, 0xaa, 1000 + i * 7777, stream));
  }
  assert_contents(buffer, 1000, 5);
  for (size_t i = 0; i < 20; i++) assert_ok(hipmm_buffer_destroy(others[i]));
  assert_ok(hipmm_buffer_destroy(buffer));
  drop_stream(stream);
}

static void reserves_and_shrinks(void **state)
{
  both_start(state, pool);
  hipmm_stream_t stream = both_stream(0), other = both_stream(0);
  struct hipmm_buffer *buffer = make(NULL, 3000, 6, stream);
  assert_ok(hipmm_buffer_reserve(buffer, 70000, stream));
  assert_shape(buffer, 3000, 70000, stream);
  assert_contents(buffer, 3000, 6);
  assert_ok(hipmm_stream_wait(0, other, 0, stream));
  assert_ok(hipmm_buffer_shrink_to_fit(buffer, other));
  assert_shape(buffer, 3000, 3000, other);
  assert_contents(buffer, 3000, 6);
  assert_ok(hipmm_buffer_resize(buffer, 0, other));
  assert_ok(hipmm_buffer_shrink_to_fit(buffer, other));
  assert_shape(buffer, 0, 0, other);
  assert_ok(hipmm_buffer_destroy(buffer));
  drop_stream(stream);
  drop_stream(other);
}

/* ---- The stream that a block is freed on ---- */

static hipmm_stream_t freed_on;

static enum hipmm_status note_allocate(void *arg, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out)
{
  (void)arg, (void)alignment, (void)stream;
  return fixture_hip()->Malloc(ptr_out, bytes) ? HIPMM_E_OUT_OF_MEMORY : HIPMM_OK;
}

static void note_deallocate(void *arg, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  (void)arg, (void)bytes, (void)alignment;
  freed_on = stream;
  fixture_hip()->StreamSynchronize(stream);
  fixture_hip()->Free(ptr);
}

static void frees_on_the_stream_that_it_has_last(void **state)
{
  struct hipmm_allocator allocator = {sizeof allocator, note_allocate, note_deallocate, NULL};
  assert_ok(hipmm_allocator_register("noting", &allocator));
  both_start(state, "'stack': [{'type': 'callback', 'allocator': 'noting'}]");
  hipmm_stream_t first = both_stream(0), second = both_stream(0), third = both_stream(0);
  struct hipmm_buffer *buffer = make(NULL, 1000, 7, first);
  assert_ok(hipmm_stream_synchronize(0, first));
  assert_ok(hipmm_buffer_resize(buffer, 2000, second));
  assert_ptr_equal(freed_on, second); /* where the copy from it runs */
  assert_ok(hipmm_buffer_resize(buffer, 10, third));
  assert_ptr_equal(freed_on, second);
  assert_shape(buffer, 10, 2000, third);
  assert_ok(hipmm_buffer_set_stream(buffer, first));
  assert_ok(hipmm_buffer_destroy(buffer));
  assert_ptr_equal(freed_on, first);
  drop_stream(first);
  drop_stream(second);
  drop_stream(third);
  assert_ok(hipmm_finalize());
  assert_ok(hipmm_allocator_register("noting", NULL));
}

static void outlives_its_stream(void **state)
{
  both_start(state, pool);
  hipmm_stream_t stream = both_stream(0);
  struct hipmm_buffer *buffer = make(NULL, 100000, 16, stream), *other = make(NULL, 100000, 17, stream);
  assert_ok(hipmm_buffer_fill(buffer, 0, 1, 100000, stream));
  drop_stream(stream);
  if (on_software()) assert_status(hipmm_buffer_fill(other, 0, 1, 1, stream), HIPMM_E_ARGUMENT);
  assert_ok(hipmm_buffer_destroy(buffer)); /* against the contract, but nothing comes of it */
  if (on_software()) assert_int_equal(software()->pending(), 0);
  assert_ok(hipmm_buffer_set_stream(other, NULL));
  assert_contents(other, 100000, 17);
  assert_ok(hipmm_buffer_destroy(other));
}

/* ---- Calls that are served at once or not at all ---- */

/* After this the pool has memory, and the thread has a cache. */
/* A source frees nothing then, and a destructor could do nothing about a refusal. */
static void frees_a_block_after_the_capture_of_its_stream(void **state)
{
  enum { LATER_NEW, LATER_DESTROY, LATER_FINALIZE, WAYS };
  for (int way = 0; way < WAYS; way++) {
    struct graph_functions graphs;
    struct hipmm_buffer *buffer, *other;
    void *graph = NULL;
    both_start(state, "'stack': ['statistics', 'device']");
    assert_true(graph_functions_find(&graphs));
    hipmm_stream_t stream = fixture_stream();
    assert_ok(hipmm_buffer_create(NULL, MIB, stream, &buffer));
    assert_ok(hipmm_buffer_create(NULL, MIB, NULL, &other));
    assert_int_equal(graphs.begin(stream, GRAPH_MODE_GLOBAL), 0);
    assert_int_equal(fixture_hip()->MemsetAsync(hipmm_buffer_data(buffer), 1, MIB, stream), 0);
    assert_ok(hipmm_buffer_destroy(buffer));
    assert_status(hipmm_buffer_destroy(buffer), HIPMM_E_POINTER);
    assert_ok(hipmm_buffer_destroy(other));
    assert_ok(hipmm_buffer_create(NULL, MIB, NULL, &other));
    assert_int_equal(fixture_held_bytes(), 2 * MIB);
    assert_int_equal(graphs.end(stream, &graph), 0);
    assert_int_equal(graphs.destroy_graph(graph), 0);
    if (way == LATER_NEW) {
      assert_true(hipmm_buffer_create(NULL, SIZE_MAX, NULL, &buffer) != HIPMM_OK);
      assert_message("cannot allocate");
      assert_int_equal(fixture_held_bytes(), MIB);
    }
    assert_ok(hipmm_buffer_destroy(other));
    if (way == LATER_DESTROY) assert_int_equal(fixture_held_bytes(), 0);
    assert_ok(hipmm_finalize());
    assert_string_equal(logged(), "");
    fixture_drop_stream(stream);
  }
  both_start(state, "'stack': ['device']"); /* for the teardown */
}

/* Calls beside a long capture do not try to free each block that waits for its end. */
static void asks_for_few_of_many_waiting_blocks(void **state)
{
  enum { BLOCKS = 1000 };
  struct graph_functions graphs;
  struct hipmm_buffer *buffers[BLOCKS], *other;
  void *graph = NULL;
  both_start(state, "'stack': ['device']");
  assert_true(graph_functions_find(&graphs));
  hipmm_stream_t stream = fixture_stream();
  for (int i = 0; i < BLOCKS; i++) assert_ok(hipmm_buffer_create(NULL, 256, stream, &buffers[i]));
  assert_int_equal(graphs.begin(stream, GRAPH_MODE_GLOBAL), 0);
  for (int i = 0; i < BLOCKS; i++) assert_ok(hipmm_buffer_destroy(buffers[i]));
  if (on_software()) software()->reset_calls();
  for (int i = 0; i < BLOCKS; i++) {
    assert_ok(hipmm_buffer_create(NULL, 256, NULL, &other));
    assert_ok(hipmm_buffer_destroy(other));
  }
  if (on_software()) assert_in_range(software()->calls("hipStreamIsCapturing"), 1, 300 * BLOCKS);
  assert_int_equal(fixture_held_bytes(), 256 * BLOCKS);
  assert_int_equal(graphs.end(stream, &graph), 0);
  assert_int_equal(graphs.destroy_graph(graph), 0);
  for (int i = 0; i < BLOCKS / 32 && fixture_held_bytes(); i++) {
    assert_ok(hipmm_buffer_create(NULL, 256, NULL, &other));
    assert_ok(hipmm_buffer_destroy(other));
  }
  assert_int_equal(fixture_held_bytes(), 0);
  fixture_drop_stream(stream);
}

/* hipmm's own stream may end before the block that waits for the end of its capture: then no call names the stream, and the
 * free waits for the device. */
static void frees_no_waiting_block_in_a_capture(void **state)
{
  struct graph_functions graphs;
  struct hipmm_buffer *buffer, *other;
  void *graph = NULL;
  both_start(state, "'stack': ['device']");
  watch_begin();
  assert_true(graph_functions_find(&graphs));
  hipmm_stream_t stream, next = fixture_stream();
  assert_ok(hipmm_stream_create(0, HIPMM_STREAM_NON_BLOCKING, &stream));
  assert_ok(hipmm_buffer_create(NULL, MIB, stream, &buffer));
  assert_int_equal(graphs.begin(stream, GRAPH_MODE_GLOBAL), 0);
  assert_ok(hipmm_buffer_destroy(buffer));
  assert_int_equal(graphs.end(stream, &graph), 0);
  assert_int_equal(graphs.destroy_graph(graph), 0);
  drop_stream(stream);
  watch_stream(stream);
  assert_int_equal(graphs.begin(next, GRAPH_MODE_GLOBAL), 0);
  assert_ok(hipmm_buffer_create(NULL, MIB, next, &buffer));
  assert_ok(hipmm_buffer_destroy(buffer));
  assert_int_equal(fixture_held_bytes(), 2 * MIB);
  assert_int_equal(graphs.end(next, &graph), 0);
  assert_int_equal(graphs.destroy_graph(graph), 0);
  assert_ok(hipmm_buffer_create(NULL, 1, NULL, &other));
  assert_ok(hipmm_buffer_destroy(other));
  assert_int_equal(fixture_held_bytes(), 0);
  assert_int_equal(watch_count(), 0);
  fixture_take_hip_back();
  fixture_drop_stream(next);
}

/* A new stack is told of all streams of hipmm. */
static void builds_stacks_beside_captures(void **state)
{
  struct graph_functions graphs;
  struct hipmm_resource *resource;
  hipmm_stream_t stream;
  void *graph = NULL, *ptr;
  both_start(state, "'stack': ['device']");
  assert_true(graph_functions_find(&graphs));
  assert_ok(hipmm_stream_create(0, HIPMM_STREAM_NON_BLOCKING, &stream));
  assert_int_equal(graphs.begin(stream, GRAPH_MODE_GLOBAL), 0);
  assert_ok(hipmm_stack_build_from_string(0, "beside", "{\"stack\": [\"pool\", \"device\"]}", &resource));
  assert_ok(hipmm_allocate(resource, MIB, stream, &ptr));
  assert_ok(hipmm_deallocate(resource, ptr, MIB, stream));
  assert_int_equal(graphs.end(stream, &graph), 0);
  assert_int_equal(graphs.destroy_graph(graph), 0);
  hipmm_resource_release(resource);
  assert_ok(hipmm_stream_destroy(stream));
}

static void warm_up(size_t bytes, hipmm_stream_t stream)
{
  struct hipmm_buffer *buffer = NULL;
  assert_ok(hipmm_buffer_create(NULL, bytes, stream, &buffer));
  assert_ok(hipmm_buffer_destroy(buffer));
}

static void is_served_at_once(size_t bytes, hipmm_stream_t stream)
{
  struct hipmm_buffer *buffer = NULL;
  uint64_t calls = on_software() ? fixture_all_calls() : 0;
  assert_true(hipmm_buffer_try_create(NULL, bytes, stream, &buffer));
  assert_shape(buffer, bytes, bytes, stream);
  assert_int_equal(fixture_value("statistics", "current_bytes"), bytes);
  assert_true(hipmm_buffer_try_destroy(buffer));
  assert_int_equal(fixture_value("statistics", "current_count"), 0);
  if (on_software()) assert_true(fixture_all_calls() <= calls + 1); /* the current device */
  assert_false(hipmm_buffer_try_destroy(buffer));
  assert_status(hipmm_buffer_destroy(buffer), HIPMM_E_POINTER);
}

static void is_not_served_at_once(struct hipmm_resource *resource, size_t bytes, hipmm_stream_t stream)
{
  struct hipmm_buffer *buffer = NULL;
  assert_false(hipmm_buffer_try_create(resource, bytes, stream, &buffer));
  assert_null(buffer);
}

static void serves_at_once_what_the_pool_has(void **state)
{
  both_start(state, "'stack': ['statistics', 'pool', 'device']");
  hipmm_stream_t streams[] = {NULL, both_stream(0)};
  for (size_t i = 0; i < 2; i++) {
    warm_up(500000, streams[i]);
    for (size_t bytes = 1; bytes < 500000; bytes = bytes * 5 + 3) is_served_at_once(bytes, streams[i]);
  }
  is_not_served_at_once(NULL, 1 << 26, NULL);
  is_not_served_at_once(NULL, SIZE_MAX, NULL);
  is_not_served_at_once(NULL, 0, NULL);
  is_not_served_at_once((struct hipmm_resource *)&streams, 100, NULL);
  assert_false(hipmm_buffer_try_create(NULL, 100, NULL, NULL));
  assert_false(hipmm_buffer_try_destroy(NULL));
  drop_stream(streams[1]);
  is_not_served_at_once(NULL, 100, streams[1]);
}

static void serves_at_once_on_no_stack_that_cannot(void **state)
{
  struct hipmm_buffer *buffer = NULL;
  both_start(state, "'stack': ['device']");
  assert_ok(hipmm_buffer_create(NULL, 100, NULL, &buffer));
  is_not_served_at_once(NULL, 100, NULL);
  assert_false(hipmm_buffer_try_destroy(buffer));
  assert_shape(buffer, 100, 100, NULL);
  assert_ok(hipmm_finalize());
  is_not_served_at_once(NULL, 100, NULL);
  is_not_served_at_once(hipmm_buffer_resource(buffer), 100, NULL);
  assert_false(hipmm_buffer_try_destroy(buffer)); /* takes the stack down, which may wait */
  assert_ok(hipmm_buffer_destroy(buffer));
}

/* Of a stack that the program made, and that goes with its last reference. */
static void destroys_no_stack_at_once(void **state)
{
  struct hipmm_buffer *buffer = NULL, *other = NULL;
  struct hipmm_resource *device = NULL, *pool_made = NULL;
  both_start(state, "'stack': ['device']");
  assert_ok(hipmm_resource_get_current(&device));
  assert_ok(hipmm_resource_create(0, "pool", NULL, &device, 1, &pool_made));
  hipmm_resource_release(device);
  assert_ok(hipmm_buffer_create(pool_made, 5000, NULL, &buffer));
  assert_ok(hipmm_buffer_create(pool_made, 5000, NULL, &other));
  assert_true(hipmm_buffer_try_destroy(other));
  assert_true(hipmm_buffer_try_destroy(buffer));
  assert_true(hipmm_buffer_try_create(pool_made, 5000, NULL, &buffer));
  assert_true(hipmm_buffer_try_create(pool_made, 300, NULL, &other) ||
              !hipmm_buffer_create(pool_made, 300, NULL, &other));
  hipmm_resource_release(pool_made);
  assert_true(hipmm_buffer_try_destroy(other));
  assert_false(hipmm_buffer_try_destroy(buffer));
  assert_shape(buffer, 0, 0, NULL);
  size_t held = fixture_held_bytes();
  assert_true(held > 0);
  assert_ok(hipmm_buffer_destroy(buffer));
  assert_int_equal(fixture_held_bytes(), 0);
}

static void serves_nothing_at_once_where_the_log_wants_each_call(void **state)
{
  struct hipmm_buffer *buffer = NULL;
  enum hipmm_log_level before = hipmm_log_get_level();
  both_start(state, "'stack': ['statistics', 'pool', 'device']");
  warm_up(100, NULL);
  assert_true(hipmm_buffer_try_create(NULL, 100, NULL, &buffer));
  assert_ok(hipmm_log_set_level(HIPMM_LOG_DEBUG));
  is_not_served_at_once(NULL, 100, NULL);
  assert_false(hipmm_buffer_try_destroy(buffer));
  assert_ok(hipmm_log_set_level(before));
  assert_true(hipmm_buffer_try_destroy(buffer));
}

/* A caller may look at the ops twice, and find them exchanged in between: what is there stays there. */
static void has_the_same_ops_at_every_log_level(void **state)
{
  enum hipmm_log_level before = hipmm_log_get_level();
  struct hipmm_resource *resource;
  both_start(state, "'stack': ['statistics', 'pool', 'device']");
  assert_ok(hipmm_resource_get_by_name(0, "pool", &resource));
  for (int i = 0; i < 2; i++) {
    assert_non_null(resource->ops->try_allocate);
    assert_non_null(resource->ops->try_deallocate);
    assert_ok(hipmm_log_set_level(i ? before : HIPMM_LOG_DEBUG));
  }
  hipmm_resource_release(resource);
}

static void serves_nothing_at_once_while_suspended(void **state)
{
  struct hipmm_buffer *buffer = NULL;
  needs_software();
  both_start(state, "'stack': ['statistics', {'type': 'pool', 'growth': 'mapped'}, 'device']");
  warm_up(5000, NULL);
  assert_true(hipmm_buffer_try_create(NULL, 5000, NULL, &buffer));
  assert_ok(hipmm_resource_suspend(NULL, HIPMM_CONTENT_KEEP));
  is_not_served_at_once(NULL, 100, NULL);
  is_not_served_at_once(NULL, 5000, NULL);
  assert_ok(hipmm_resource_resume(NULL));
  assert_true(hipmm_buffer_try_destroy(buffer));
}

static sem_t is_inside, may_go_on;

static enum hipmm_status wait_in_allocate(void *arg, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                          void **ptr_out)
{
  if (bytes > 1 << 25) {
    sem_post(&is_inside);
    sem_wait(&may_go_on);
  }
  return note_allocate(arg, bytes, alignment, stream, ptr_out);
}

static void *use_much(void *status_out)
{
  struct hipmm_buffer *buffer = NULL;
  enum hipmm_status status = hipmm_buffer_create(NULL, 1 << 26, NULL, &buffer);
  *(enum hipmm_status *)status_out = status ? status : hipmm_buffer_destroy(buffer);
  return NULL;
}

/* Another thread is in a function of the program, and holds the pool's lock. The calls here return nevertheless. */
static void waits_for_no_thread(void **state)
{
  struct hipmm_allocator allocator = {sizeof allocator, wait_in_allocate, note_deallocate, NULL};
  struct hipmm_buffer *buffer = NULL;
  enum hipmm_status status = HIPMM_E_INTERNAL;
  pthread_t thread;
  sem_init(&is_inside, 0, 0);
  sem_init(&may_go_on, 0, 0);
  assert_ok(hipmm_allocator_register("waiting", &allocator));
  both_start(state, "'stack': ['pool', {'type': 'callback', 'allocator': 'waiting'}]");
  warm_up(9000, NULL);
  assert_true(hipmm_buffer_try_create(NULL, 5000, NULL, &buffer));
  assert_int_equal(pthread_create(&thread, NULL, use_much, &status), 0);
  sem_wait(&is_inside);
  is_not_served_at_once(NULL, 5000, NULL);
  assert_false(hipmm_buffer_try_destroy(buffer));
  assert_shape(buffer, 5000, 5000, NULL);
  sem_post(&may_go_on);
  pthread_join(thread, NULL);
  assert_ok(status);
  assert_true(hipmm_buffer_try_destroy(buffer));
  assert_ok(hipmm_finalize());
  assert_ok(hipmm_allocator_register("waiting", NULL));
}

/* ---- Copies ---- */

static void copies_what_it_holds_and_no_more(void **state)
{
  struct hipmm_buffer *copy = NULL;
  both_start(state, pool);
  hipmm_stream_t stream = both_stream(0);
  struct hipmm_buffer *buffer = make(NULL, 9000, 8, stream);
  assert_ok(hipmm_buffer_resize(buffer, 5000, stream));
  assert_ok(hipmm_buffer_copy(buffer, NULL, stream, &copy));
  assert_shape(copy, 5000, 5000, stream);
  assert_ptr_not_equal(hipmm_buffer_data(copy), hipmm_buffer_data(buffer));
  assert_ok(hipmm_buffer_fill(buffer, 0, 0, 5000, stream));
  assert_ok(hipmm_buffer_destroy(buffer));
  assert_contents(copy, 5000, 8);
  assert_ok(hipmm_buffer_destroy(copy));
  drop_stream(stream);
}

/* From device 0 to device 1, while device 0 is current. */
static void copy_to_device_1(size_t bytes)
{
  struct hipmm_resource *resource;
  struct hipmm_buffer *copy = NULL;
  int device = -1;
  assert_ok(hipmm_resource_get_for_device(1, &resource));
  hipmm_stream_t from = both_stream(0), to = both_stream(1);
  struct hipmm_buffer *buffer = make(NULL, bytes, 9, from);
  assert_ok(hipmm_stream_wait(1, to, 0, from));
  assert_ok(hipmm_buffer_copy(buffer, resource, to, &copy));
  assert_ok(hipmm_stream_wait(0, from, 1, to));
  assert_ok(hipmm_buffer_fill(buffer, 0, 0, bytes, from));
  assert_ok(hipmm_buffer_destroy(buffer));
  assert_int_equal(hipmm_buffer_device(copy), 1);
  assert_shape(copy, bytes, bytes, to);
  assert_contents(copy, bytes, 9);
  assert_ok(hipmm_buffer_destroy(copy));
  assert_ok(hipmm_device_current(&device));
  assert_int_equal(device, 0);
  hipmm_resource_release(resource);
  drop_stream(from);
  drop_stream(to);
}

static void copies_between_devices(void **state)
{
  both_start(state, pool);
  needs_devices(2);
  copy_to_device_1(100001);
  assert_ok(hipmm_finalize());
  both_start(state, "'stack': ['device']");
  copy_to_device_1(100001);
}

static void goes_through_the_host_where_devices_cannot_copy(void **state)
{
  needs_software();
  both_start(state, pool);
  struct hipmm_hip *table = fixture_lend_hip();
  table->MemcpyPeerAsync = NULL;
  software()->reset_calls();
  copy_to_device_1(((size_t)9 << 20) + 5); /* in three pieces */
  assert_int_equal(software()->calls("hipMemcpyPeerAsync"), 0);
  fixture_take_hip_back();
  assert_int_equal(software()->calls("hipMemcpy"), 3);
  fixture_fail_call("hipMemcpyPeerAsync", 1, HIPMM_HIP_ERROR_NOT_SUPPORTED);
  copy_to_device_1(1000);
  assert_int_equal(software()->calls("hipMemcpyPeerAsync"), 1);
  assert_int_equal(software()->calls("hipMemcpy"), 4);
}

/* ---- Release and adopt ---- */

static void hands_its_memory_over_and_takes_it_back(void **state)
{
  struct hipmm_memory memory = {.struct_size = sizeof memory};
  both_start(state, pool);
  hipmm_stream_t stream = both_stream(0);
  struct hipmm_buffer *buffer = make(NULL, 4000, 10, stream);
  void *data = hipmm_buffer_data(buffer);
  assert_ok(hipmm_buffer_resize(buffer, 3000, stream));
  assert_ok(hipmm_buffer_release(buffer, &memory));
  assert_status(hipmm_buffer_destroy(buffer), HIPMM_E_POINTER);
  assert_ptr_equal(memory.ptr, data);
  assert_int_equal(memory.bytes, 3000);
  assert_int_equal(memory.capacity_bytes, 4000);
  assert_ptr_equal(memory.stream, stream);
  assert_ok(hipmm_buffer_adopt(&memory, &buffer));
  assert_shape(buffer, 3000, 4000, stream);
  assert_contents(buffer, 3000, 10);
  assert_ok(hipmm_buffer_release(buffer, &memory));
  assert_ok(hipmm_finalize()); /* its reference keeps the stack */
  assert_ok(hipmm_deallocate(memory.resource, memory.ptr, memory.capacity_bytes, memory.stream));
  hipmm_resource_release(memory.resource);
  drop_stream(stream);
}

static void minds_what_it_adopts(void **state)
{
  struct hipmm_memory memory = {.struct_size = sizeof memory}, wrong;
  struct hipmm_buffer *adopted = NULL;
  both_start(state, pool);
  struct hipmm_buffer *buffer = make(NULL, 4000, 10, NULL);
  memory.struct_size = sizeof memory - 1;
  assert_status(hipmm_buffer_release(buffer, &memory), HIPMM_E_ARGUMENT);
  assert_message("set it to sizeof(struct hipmm_memory)");
  assert_status(hipmm_buffer_release(buffer, NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_buffer_adopt(NULL, &adopted), HIPMM_E_ARGUMENT);
  memory.struct_size = sizeof memory;
  assert_status(hipmm_buffer_release(NULL, &memory), HIPMM_E_ARGUMENT);
  assert_ok(hipmm_buffer_release(buffer, &memory));
  assert_status(hipmm_buffer_adopt(&memory, NULL), HIPMM_E_ARGUMENT);
  wrong = memory, wrong.resource = NULL;
  assert_status(hipmm_buffer_adopt(&wrong, &adopted), HIPMM_E_ARGUMENT);
  wrong = memory, wrong.ptr = NULL;
  assert_status(hipmm_buffer_adopt(&wrong, &adopted), HIPMM_E_ARGUMENT);
  wrong = memory, wrong.bytes = 4001;
  assert_status(hipmm_buffer_adopt(&wrong, &adopted), HIPMM_E_ARGUMENT);
  wrong = memory, wrong.ptr = (char *)memory.ptr + 256;
  assert_status(hipmm_buffer_adopt(&wrong, &adopted), HIPMM_E_POINTER);
  wrong = memory, wrong.capacity_bytes = 4096;
  assert_status(hipmm_buffer_adopt(&wrong, &adopted), HIPMM_E_SIZE);
  assert_message("is of 3.91 KiB, not 4 KiB");
  assert_null(adopted);
  assert_ok(hipmm_buffer_adopt(&memory, &adopted));
  assert_ok(hipmm_buffer_destroy(adopted));
}

/* Memory of no bytes, and memory of a resource that cannot tell of its blocks. */
static void adopts_what_no_resource_knows(void **state)
{
  static const struct {
    const char *stack;
    size_t bytes;
  } cases[] = {{"'stack': ['pool', 'device']", 0}, {"'stack': ['mute']", 1000}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct hipmm_memory memory = {.struct_size = sizeof memory};
    struct hipmm_buffer *buffer = NULL, *adopted = NULL;
    both_start(state, cases[i].stack);
    assert_ok(hipmm_buffer_create(NULL, cases[i].bytes, NULL, &buffer));
    assert_ok(hipmm_buffer_release(buffer, &memory));
    assert_ok(hipmm_buffer_adopt(&memory, &adopted));
    assert_shape(adopted, cases[i].bytes, cases[i].bytes, NULL);
    assert_ok(hipmm_buffer_destroy(adopted));
    assert_ok(hipmm_finalize());
  }
}

/* More stacks than a thread's shard counts: each object of the others has a reference of its own. */
static void keeps_any_number_of_stacks(void **state)
{
  enum { MANY = 20 };
  struct hipmm_buffer *buffers[MANY][2];
  both_start(state, pool);
  for (int i = 0; i < MANY; i++) {
    struct hipmm_resource *resource = NULL;
    assert_ok(hipmm_resource_create(0, "host", NULL, NULL, 0, &resource));
    for (int n = 0; n < 2; n++) assert_ok(hipmm_buffer_create(resource, 100, NULL, &buffers[i][n]));
    hipmm_resource_release(resource);
  }
  for (int i = 0; i < MANY; i++) assert_ok(hipmm_buffer_destroy(buffers[i][0]));
  for (int i = 0; i < MANY; i++) {
    assert_shape(buffers[i][1], 100, 100, NULL);
    assert_ok(hipmm_buffer_destroy(buffers[i][1]));
  }
}

/* The pattern is there when the call returns: no device can write it later. */
static void fills_memory_that_only_the_host_reaches(void **state)
{
  struct graph_functions graphs;
  struct hipmm_resource *resource = NULL;
  struct hipmm_buffer *buffer = NULL;
  void *graph = NULL;
  both_start(state, pool);
  assert_true(graph_functions_find(&graphs));
  hipmm_stream_t stream = both_stream(0);
  assert_ok(hipmm_resource_create(0, "host", NULL, NULL, 0, &resource));
  assert_ok(hipmm_buffer_create(resource, 5000, stream, &buffer));
  assert_ok(hipmm_buffer_fill(buffer, 0, 6, 5000, stream));
  const unsigned char *data = hipmm_buffer_data(buffer);
  for (int i = 0; i < 5000; i++) assert_int_equal(data[i], 6);
  assert_int_equal(graphs.begin(stream, GRAPH_MODE_GLOBAL), 0);
  assert_status(hipmm_buffer_fill(buffer, 0, 7, 5000, stream), HIPMM_E_STATE);
  assert_int_equal(graphs.end(stream, &graph), 0);
  assert_int_equal(graphs.destroy_graph(graph), 0);
  assert_int_equal(data[0], 6);
  assert_ok(hipmm_buffer_destroy(buffer));
  hipmm_resource_release(resource);
  drop_stream(stream);
}

/* ---- What is refused ---- */

static void refuses_ranges_outside_its_size(void **state)
{
  static const size_t wrong[][2] = {{1001, 0},     {0, 1001},     {1000, 1},           {500, 501},
                                    {SIZE_MAX, 2}, {2, SIZE_MAX}, {SIZE_MAX, SIZE_MAX}};
  unsigned char bytes[10] = {0};
  both_start(state, pool);
  struct hipmm_buffer *buffer = make(NULL, 2000, 11, NULL);
  assert_ok(hipmm_buffer_resize(buffer, 1000, NULL));
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    size_t offset = wrong[i][0], n = wrong[i][1];
    assert_status(hipmm_buffer_write(buffer, offset, bytes, n, NULL), HIPMM_E_ARGUMENT);
    assert_status(hipmm_buffer_write_async(buffer, offset, bytes, n, NULL), HIPMM_E_ARGUMENT);
    assert_status(hipmm_buffer_read(buffer, offset, n, NULL, bytes), HIPMM_E_ARGUMENT);
    assert_status(hipmm_buffer_read_async(buffer, offset, n, NULL, bytes), HIPMM_E_ARGUMENT);
    assert_status(hipmm_buffer_fill(buffer, offset, 1, n, NULL), HIPMM_E_ARGUMENT);
    assert_message("are not within the size, 1000 bytes");
  }
  assert_status(hipmm_buffer_write(buffer, 0, NULL, 1, NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_buffer_read(buffer, 0, 1, NULL, NULL), HIPMM_E_ARGUMENT);
  assert_ok(hipmm_buffer_write(buffer, 1000, bytes, 0, NULL));
  assert_contents(buffer, 1000, 11);
  assert_ok(hipmm_buffer_destroy(buffer));
}

static void refuses_sizes_that_no_memory_has(void **state)
{
  static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 255, SIZE_MAX / 2, (size_t)1 << 47};
  struct hipmm_buffer *none = NULL;
  both_start(state, pool);
  hipmm_stream_t stream = both_stream(0);
  struct hipmm_buffer *buffer = make(NULL, 1000, 12, NULL);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    assert_status(hipmm_buffer_create(NULL, sizes[i], NULL, &none), HIPMM_E_OUT_OF_MEMORY);
    assert_status(hipmm_buffer_create_from(NULL, buffer, sizes[i], NULL, &none), HIPMM_E_OUT_OF_MEMORY);
    assert_status(hipmm_buffer_resize(buffer, sizes[i], stream), HIPMM_E_OUT_OF_MEMORY);
    assert_status(hipmm_buffer_reserve(buffer, sizes[i], stream), HIPMM_E_OUT_OF_MEMORY);
    assert_string_not_equal(hipmm_last_error_message(), "");
    assert_shape(buffer, 1000, 1000, NULL);
  }
  assert_null(none);
  assert_contents(buffer, 1000, 12);
  assert_ok(hipmm_buffer_destroy(buffer));
  drop_stream(stream);
}

static void refuses_another_devices_stream(void **state)
{
  struct hipmm_buffer *none = NULL;
  unsigned char byte = 1;
  needs_software();
  both_start(state, pool);
  hipmm_stream_t ours = both_stream(1), foreign, gone = both_stream(0);
  drop_stream(gone);
  assert_ok(hipmm_device_set(1));
  foreign = fixture_stream();
  assert_ok(hipmm_device_set(0));
  const hipmm_stream_t wrong[] = {ours, foreign, gone};
  struct hipmm_buffer *buffer = make(NULL, 1000, 13, NULL);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_status(hipmm_buffer_create(NULL, 10, wrong[i], &none), HIPMM_E_ARGUMENT);
    assert_status(hipmm_buffer_copy(buffer, NULL, wrong[i], &none), HIPMM_E_ARGUMENT);
    assert_status(hipmm_buffer_resize(buffer, 5000, wrong[i]), HIPMM_E_ARGUMENT);
    assert_status(hipmm_buffer_resize(buffer, 5, wrong[i]), HIPMM_E_ARGUMENT);
    assert_status(hipmm_buffer_reserve(buffer, 5000, wrong[i]), HIPMM_E_ARGUMENT);
    assert_status(hipmm_buffer_shrink_to_fit(buffer, wrong[i]), HIPMM_E_ARGUMENT);
    assert_status(hipmm_buffer_write(buffer, 0, &byte, 1, wrong[i]), HIPMM_E_ARGUMENT);
    assert_status(hipmm_buffer_read(buffer, 0, 1, wrong[i], &byte), HIPMM_E_ARGUMENT);
    assert_status(hipmm_buffer_fill(buffer, 0, 1, 1, wrong[i]), HIPMM_E_ARGUMENT);
    assert_status(hipmm_buffer_set_stream(buffer, wrong[i]), HIPMM_E_ARGUMENT);
    assert_shape(buffer, 1000, 1000, NULL);
  }
  assert_null(none);
  assert_contents(buffer, 1000, 13);
  assert_ok(hipmm_buffer_destroy(buffer));
  drop_stream(ours);
  fixture_drop_stream(foreign);
}

static void refuses_what_is_no_buffer(void **state)
{
  struct hipmm_buffer *buffer = NULL, *none = NULL;
  struct hipmm_host_buffer *host = NULL;
  both_start(state, pool);
  assert_ok(hipmm_buffer_destroy(NULL));
  assert_ok(hipmm_buffer_create(NULL, 100, NULL, &buffer));
  assert_ok(hipmm_buffer_destroy(buffer));
  assert_ok(hipmm_host_buffer_create(NULL, 8, NULL, &host));
  struct hipmm_buffer *const wrong[] = {NULL, buffer, (struct hipmm_buffer *)host};
  for (size_t i = 0; i < 3; i++) {
    enum hipmm_status status = i ? HIPMM_E_POINTER : HIPMM_E_ARGUMENT;
    if (i) assert_status(hipmm_buffer_destroy(wrong[i]), status);
    if (i) assert_message("not a buffer, or already destroyed");
    assert_status(hipmm_buffer_resize(wrong[i], 10, NULL), status);
    assert_status(hipmm_buffer_reserve(wrong[i], 10, NULL), status);
    assert_status(hipmm_buffer_shrink_to_fit(wrong[i], NULL), status);
    assert_status(hipmm_buffer_write(wrong[i], 0, "a", 1, NULL), status);
    assert_status(hipmm_buffer_fill(wrong[i], 0, 1, 1, NULL), status);
    assert_status(hipmm_buffer_set_stream(wrong[i], NULL), status);
    assert_status(hipmm_buffer_copy(wrong[i], NULL, NULL, &none), status);
    assert_shape(wrong[i], 0, 0, NULL);
    assert_int_equal(hipmm_buffer_device(wrong[i]), -1);
    assert_null(hipmm_buffer_resource(wrong[i]));
  }
  assert_status(hipmm_buffer_create(NULL, 1, NULL, NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_buffer_create_from(NULL, NULL, 1, NULL, &none), HIPMM_E_ARGUMENT);
  assert_null(none);
  assert_ok(hipmm_host_buffer_destroy(host));
}

/* The stack of device 1 would show every block that was asked of the wrong one. */
static void keeps_its_device_while_another_is_current(void **state)
{
  int device = -1;
  both_start(state, "'stack': ['statistics', 'pool', 'device']");
  needs_devices(2);
  struct hipmm_buffer *buffer = make(NULL, 128, 15, NULL);
  struct hipmm_statistics of_0 = {0};
  assert_ok(hipmm_device_set(1));
  assert_ok(hipmm_buffer_resize(buffer, 100000, NULL));
  assert_shape(buffer, 100000, 100000, NULL);
  assert_contents(buffer, 128, 15);
  assert_ok(hipmm_buffer_resize(buffer, 64, NULL));
  assert_ok(hipmm_buffer_shrink_to_fit(buffer, NULL));
  assert_shape(buffer, 64, 64, NULL);
  assert_contents(buffer, 64, 15);
  assert_int_equal(hipmm_buffer_device(buffer), 0);
  assert_ok(hipmm_statistics_get(hipmm_buffer_resource(buffer), &of_0));
  assert_int_equal(of_0.current_bytes, 64);
  assert_int_equal(of_0.total_count, 3);
  if (on_software()) {
    uint64_t count;
    assert_true(software()->live(1, &count, NULL));
    assert_int_equal(count, 0);
  }
  assert_ok(hipmm_buffer_destroy(buffer));
  assert_ok(hipmm_device_current(&device));
  assert_int_equal(device, 1);
  assert_ok(hipmm_device_set(0));
}

/* ---- Ends ---- */

static void works_past_finalize(void **state)
{
  struct hipmm_buffer *copy = NULL, *none = NULL;
  both_start(state, pool);
  hipmm_stream_t stream = both_stream(0);
  struct hipmm_buffer *buffer = make(NULL, 1000, 14, stream);
  assert_ok(hipmm_finalize());
  assert_ok(hipmm_buffer_resize(buffer, 100000, stream));
  assert_contents(buffer, 1000, 14);
  assert_ok(hipmm_buffer_copy(buffer, hipmm_buffer_resource(buffer), stream, &copy));
  assert_status(hipmm_buffer_create(NULL, 10, NULL, &none), HIPMM_E_STATE);
  assert_ok(hipmm_buffer_destroy(buffer));
  assert_contents(copy, 1000, 14);
  assert_ok(hipmm_buffer_destroy(copy)); /* takes the stack down */
  assert_int_equal(live_on_all_devices(), 0);
  drop_stream(stream);
}

static int use_in_child(const void *argument)
{
  struct hipmm_buffer *buffer = (struct hipmm_buffer *)(uintptr_t)argument, *none = NULL;
  struct hipmm_memory memory = {.struct_size = sizeof memory};
  int wrong = 0;
  wrong += hipmm_buffer_create(hipmm_buffer_resource(buffer), 10, NULL, &none) != HIPMM_E_STATE;
  wrong += hipmm_buffer_copy(buffer, NULL, NULL, &none) != HIPMM_E_STATE;
  wrong += hipmm_buffer_resize(buffer, 10, NULL) != HIPMM_E_STATE;
  wrong += hipmm_buffer_shrink_to_fit(buffer, NULL) != HIPMM_E_STATE;
  wrong += hipmm_buffer_write(buffer, 0, "a", 1, NULL) != HIPMM_E_STATE;
  wrong += hipmm_buffer_read(buffer, 0, 1, NULL, &memory) != HIPMM_E_STATE;
  wrong += hipmm_buffer_set_stream(buffer, NULL) != HIPMM_E_STATE;
  wrong += hipmm_buffer_release(buffer, &memory) != HIPMM_E_STATE;
  wrong += hipmm_buffer_adopt(&memory, &none) != HIPMM_E_STATE;
  wrong += hipmm_buffer_destroy(buffer) != HIPMM_E_STATE;
  wrong += hipmm_buffer_try_create(NULL, 10, NULL, &none) || hipmm_buffer_try_destroy(buffer);
  wrong += hipmm_buffer_bytes(buffer) != 1000; /* looking is harmless */
  return wrong;
}

static void refuses_all_in_the_child_of_a_fork(void **state)
{
  needs_software();
  both_start(state, pool);
  struct hipmm_buffer *buffer = make(NULL, 1000, 15, NULL);
  struct outcome outcome = run_forked(use_in_child, buffer);
  assert_int_equal(outcome.status, 0);
  assert_contents(buffer, 1000, 15);
  assert_ok(hipmm_buffer_destroy(buffer));
}

/* The handle of the stream that is gone names another stream by then, which is not behind the work on the buffer. */
static void a_stream_with_the_handle_of_the_stored_one_is_another(const char *graph)
{
  needs_software();
  for (int seed = 1; seed <= 5; seed++) {
    char options[60];
    snprintf(options, sizeof options, "'scheduler': 'stepped', 'seed': %d", seed);
    fixture_start_with(options, graph);
    for (int round = 0; round < 10; round++) {
      hipmm_stream_t old, next;
      struct hipmm_buffer *buffer = NULL, *other = NULL;
      assert_ok(hipmm_stream_create(0, HIPMM_STREAM_NON_BLOCKING, &old));
      assert_ok(hipmm_buffer_create(NULL, 1 << 20, old, &buffer));
      assert_ok(hipmm_buffer_fill(buffer, 0, 0x11, 1 << 20, old));
      drop_stream(old);
      assert_ok(hipmm_stream_create(0, HIPMM_STREAM_NON_BLOCKING, &next));
      assert_ptr_equal(next, old);
      assert_ok(hipmm_buffer_destroy(buffer));
      assert_ok(hipmm_buffer_create(NULL, 1 << 20, next, &other));
      assert_ok(hipmm_buffer_fill(other, 0, 0x22, 1 << 20, next));
      assert_int_equal(fixture_hip()->DeviceSynchronize(), 0);
      assert_true(fixture_holds(hipmm_buffer_data(other), 0x22, 1 << 20));
      assert_ok(hipmm_buffer_destroy(other));
      drop_stream(next);
    }
    assert_int_equal(faults_on_all_devices(), 0);
    assert_ok(hipmm_finalize());
  }
}

static void survives_a_handle_that_is_used_again(void **state)
{
  static const char *const graphs[] = {"'stack': ['async']", "'stack': [{'type': 'async', 'release_threshold': 0}]",
                                       "'stack': ['device']", "'stack': ['pool', 'device']",
                                       "'stack': ['arena', 'device']"};
  (void)state;
  for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++)
    a_stream_with_the_handle_of_the_stored_one_is_another(graphs[i]);
  fixture_start(pool); /* for the teardown */
}

int main(void)
{
  use_test_plugins();
  static const struct CMUnitTest tests[] = {
      BOTH(remembers_resource_stream_and_device),
      BOTH(zero_bytes_have_no_block),
      BOTH(copies_pinned_memory_later),
      BOTH(changes_only_the_size_up_to_the_capacity),
      BOTH(keeps_its_contents_when_it_grows),
      BOTH(reserves_and_shrinks),
      BOTH(frees_on_the_stream_that_it_has_last),
      BOTH(outlives_its_stream),
      BOTH(frees_a_block_after_the_capture_of_its_stream),
      BOTH(asks_for_few_of_many_waiting_blocks),
      BOTH(frees_no_waiting_block_in_a_capture),
      BOTH(builds_stacks_beside_captures),
      BOTH(serves_at_once_what_the_pool_has),
      BOTH(serves_at_once_on_no_stack_that_cannot),
      BOTH(destroys_no_stack_at_once),
      BOTH(serves_nothing_at_once_where_the_log_wants_each_call),
      BOTH(has_the_same_ops_at_every_log_level),
      BOTH(serves_nothing_at_once_while_suspended),
      BOTH(waits_for_no_thread),
      {"survives_a_handle_that_is_used_again", survives_a_handle_that_is_used_again, fixture_setup, fixture_teardown,
       NULL},
      BOTH(copies_what_it_holds_and_no_more),
      BOTH(copies_between_devices),
      BOTH(goes_through_the_host_where_devices_cannot_copy),
      BOTH(hands_its_memory_over_and_takes_it_back),
      BOTH(minds_what_it_adopts),
      BOTH(adopts_what_no_resource_knows),
      BOTH(keeps_any_number_of_stacks),
      BOTH(fills_memory_that_only_the_host_reaches),
      BOTH(refuses_ranges_outside_its_size),
      BOTH(refuses_sizes_that_no_memory_has),
      BOTH(refuses_another_devices_stream),
      BOTH(refuses_what_is_no_buffer),
      BOTH(keeps_its_device_while_another_is_current),
      BOTH(works_past_finalize),
      BOTH(refuses_all_in_the_child_of_a_fork),
  };
  return cmocka_run_group_tests_name("buffer", tests, NULL, NULL);
}
