/* SPDX-License-Identifier: MIT */
/* Tests of what all containers and streams have in common: every HIP call that they make fails once, each in turn, and
 * what the call was for is as it was before and can be done when it is tried again; and threads that use containers of
 * their own on the same resource and the same streams. */
#include "../../core/call/handle.h"
#include "../support/both_schedulers.h"

#include <hipmm/vector.h>

#include <hipmm/inspect.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Steps: on device 1 while device 0 is current, save where it says otherwise ---- */

enum { BYTES = 30000, ELEMENTS = 500 };

static struct {
  struct hipmm_resource *resource, *other;
  struct hipmm_stream_pool *pool;
  hipmm_stream_t stream, second, third;
  struct hipmm_buffer *buffer, *copy, *far;
  struct hipmm_vector vector;
  struct hipmm_buffer *scalar;
  struct hipmm_host_buffer *host;
  unsigned char contents[BYTES], seen[BYTES];
  uint32_t numbers[ELEMENTS];
} now;

static char failure[500]; /* the first thing that must not be; empty if none */

static void note(const char *format, ...) HIPMM_PRINTF(1, 2);

static void note(const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  if (!failure[0]) vsnprintf(failure, sizeof failure, format, arguments);
  va_end(arguments);
}

static enum hipmm_status get_resource(void)
{
  return hipmm_resource_get_for_device(1, &now.resource);
}
static enum hipmm_status get_other(void)
{
  return hipmm_resource_get_for_device(0, &now.other);
}
static enum hipmm_status make_stream(void)
{
  return hipmm_stream_create(1, HIPMM_STREAM_NON_BLOCKING, &now.stream);
}
static enum hipmm_status make_pool(void)
{
  return hipmm_stream_pool_create(1, 3, HIPMM_STREAM_SYNC_DEFAULT, &now.pool);
}
static enum hipmm_status get_second(void)
{
  return hipmm_stream_pool_get_at(now.pool, 1, &now.second);
}
static enum hipmm_status get_third(void)
{
  return hipmm_stream_create(0, HIPMM_STREAM_NON_BLOCKING, &now.third);
}
static enum hipmm_status make_buffer(void)
{
  both_write(now.contents, BYTES, 1);
  return hipmm_buffer_create_from(now.resource, now.contents, BYTES, now.stream, &now.buffer);
}
static enum hipmm_status grow_buffer(void)
{
  return hipmm_buffer_resize(now.buffer, 3 * BYTES, now.stream);
}
static enum hipmm_status wait_for_stream(void)
{
  return hipmm_stream_wait(1, now.second, 1, now.stream);
}
static enum hipmm_status reserve_buffer(void)
{
  return hipmm_buffer_reserve(now.buffer, 9 * BYTES, now.second);
}
static enum hipmm_status cut_buffer(void)
{
  return hipmm_buffer_resize(now.buffer, BYTES, now.second);
}
static enum hipmm_status shrink_buffer(void)
{
  return hipmm_buffer_shrink_to_fit(now.buffer, now.second);
}
static enum hipmm_status fill_buffer(void)
{
  return hipmm_buffer_fill(now.buffer, 100, 0, 200, now.second);
}
static enum hipmm_status write_buffer(void)
{
  return hipmm_buffer_write(now.buffer, 100, now.contents + 100, 200, now.second);
}
static enum hipmm_status copy_buffer(void)
{
  return hipmm_buffer_copy(now.buffer, now.resource, now.second, &now.copy);
}
static enum hipmm_status wait_far(void)
{
  return hipmm_stream_wait(0, now.third, 1, now.second);
}
static enum hipmm_status copy_far(void)
{
  return hipmm_buffer_copy(now.buffer, now.other, now.third, &now.far);
}
static enum hipmm_status wait_near(void)
{
  return hipmm_stream_wait(1, now.second, 0, now.third);
}
static enum hipmm_status check_contents(enum hipmm_status status, const char *what)
{
  if (!status && both_good(now.seen, BYTES, 1) != BYTES) note("%s lost its contents", what);
  return status;
}
static enum hipmm_status read_buffer(void)
{
  return check_contents(hipmm_buffer_read(now.buffer, 0, BYTES, now.second, now.seen), "the buffer");
}
static enum hipmm_status read_copy(void)
{
  return check_contents(hipmm_buffer_read(now.copy, 0, BYTES, now.second, now.seen), "the copy");
}
static enum hipmm_status read_far(void)
{
  return check_contents(hipmm_buffer_read(now.far, 0, BYTES, now.third, now.seen), "the copy on device 0");
}
static enum hipmm_status make_vector(void)
{
  for (uint32_t i = 0; i < ELEMENTS; i++) now.numbers[i] = i * i;
  return hipmm_vector_create_from(now.resource, sizeof *now.numbers, now.numbers, ELEMENTS, now.stream, &now.vector);
}
static enum hipmm_status grow_vector(void)
{
  return hipmm_vector_resize(&now.vector, 4 * ELEMENTS, now.stream);
}
static enum hipmm_status set_element(void)
{
  uint32_t value = 77;
  return hipmm_vector_set(&now.vector, 4 * ELEMENTS - 1, &value, now.stream);
}
static enum hipmm_status get_element(void)
{
  uint32_t value = 0, last = 0;
  enum hipmm_status status = hipmm_vector_get(&now.vector, ELEMENTS - 1, now.stream, &value);
  if (!status) status = hipmm_vector_get(&now.vector, 4 * ELEMENTS - 1, now.stream, &last);
  if (!status && (value != (ELEMENTS - 1) * (ELEMENTS - 1) || last != 77)) note("elements are %u and %u", value, last);
  return status;
}
static enum hipmm_status make_scalar(void)
{
  return hipmm_buffer_create_from(now.resource, "scalar", 7, now.second, &now.scalar);
}
static enum hipmm_status get_scalar(void)
{
  char value[7] = "";
  enum hipmm_status status = hipmm_scalar_get(now.scalar, now.second, value);
  if (!status && memcmp(value, "scalar", 7) != 0) note("the scalar is lost");
  return status;
}
static enum hipmm_status make_host(void)
{
  return hipmm_host_buffer_create_from(NULL, now.contents, BYTES, NULL, &now.host);
}
static enum hipmm_status grow_host(void)
{
  return hipmm_host_buffer_resize(now.host, 2 * BYTES, NULL);
}
static enum hipmm_status look_at_host(void)
{
  if (both_good(hipmm_host_buffer_data(now.host), BYTES, 1) != BYTES) note("the host buffer lost its contents");
  return HIPMM_OK;
}
static enum hipmm_status look_at_device(void)
{
  size_t bytes;
  return hipmm_device_percent_of_free_memory(1, 50, &bytes);
}
static enum hipmm_status destroy_buffer(void)
{
  return hipmm_buffer_destroy(now.buffer);
}
static enum hipmm_status destroy_copy(void)
{
  return hipmm_buffer_destroy(now.copy);
}
static enum hipmm_status destroy_far(void)
{
  return hipmm_buffer_destroy(now.far);
}
static enum hipmm_status destroy_vector(void)
{
  return hipmm_buffer_destroy(now.vector.buffer);
}
static enum hipmm_status destroy_scalar(void)
{
  return hipmm_buffer_destroy(now.scalar);
}
static enum hipmm_status destroy_host(void)
{
  return hipmm_host_buffer_destroy(now.host);
}
static enum hipmm_status destroy_pool(void)
{
  return hipmm_stream_pool_destroy(now.pool);
}
static enum hipmm_status destroy_stream(void)
{
  return hipmm_stream_destroy(now.stream);
}
static enum hipmm_status destroy_third(void)
{
  return hipmm_stream_destroy(now.third);
}

struct step {
  const char *name;
  enum hipmm_status (*run)(void);
};

static const struct step steps[] = {
    {"make_stream", make_stream},
    {"get_resource", get_resource},
    {"get_other", get_other},
    {"make_pool", make_pool},
    {"get_second", get_second},
    {"get_third", get_third},
    {"make_buffer", make_buffer},
    {"grow_buffer", grow_buffer},
    {"wait_for_stream", wait_for_stream},
    {"reserve_buffer", reserve_buffer},
    {"cut_buffer", cut_buffer},
    {"shrink_buffer", shrink_buffer},
    {"fill_buffer", fill_buffer},
    {"write_buffer", write_buffer},
    {"copy_buffer", copy_buffer},
    {"wait_far", wait_far},
    {"copy_far", copy_far},
    {"wait_near", wait_near},
    {"read_buffer", read_buffer},
    {"make_vector", make_vector},
    {"grow_vector", grow_vector},
    {"set_element", set_element},
    {"get_element", get_element},
    {"make_scalar", make_scalar},
    {"get_scalar", get_scalar},
    {"make_host", make_host},
    {"grow_host", grow_host},
    {"look_at_host", look_at_host},
    {"look_at_device", look_at_device},
    {"destroy_buffer", destroy_buffer},
    {"read_copy", read_copy},
    {"read_far", read_far},
    {"destroy_copy", destroy_copy},
    {"destroy_far", destroy_far},
    {"destroy_vector", destroy_vector},
    {"destroy_scalar", destroy_scalar},
    {"destroy_host", destroy_host},
    {"destroy_pool", destroy_pool},
    {"destroy_stream", destroy_stream},
    {"destroy_third", destroy_third},
};

/* ---- The sweep ---- */

struct shape {
  void *data[2];
  size_t sizes[4];
  hipmm_stream_t stream;
};

static struct shape shape(void)
{
  struct shape shape = {
      .data = {hipmm_buffer_data(now.buffer), hipmm_buffer_data(now.vector.buffer)},
      .sizes = {hipmm_buffer_bytes(now.buffer), hipmm_buffer_capacity_bytes(now.buffer),
                hipmm_host_buffer_capacity_bytes(now.host), hipmm_vector_count(&now.vector)},
      .stream = hipmm_buffer_stream(now.buffer),
  };
  return shape;
}

static bool is_same(const struct shape *one, const struct shape *other)
{
  return !memcmp(one->data, other->data, sizeof one->data) && !memcmp(one->sizes, other->sizes, sizeof one->sizes) &&
         one->stream == other->stream;
}

static unsigned failed_steps;

static void run_step(const struct step *step)
{
  struct shape before = shape();
  size_t handles = handle_count();
  int device = -1;
  if (step->run() != HIPMM_OK) {
    struct shape after = shape();
    failed_steps++;
    if (!*hipmm_last_error_message()) note("%s fails without a word", step->name);
    if (!is_same(&before, &after) || handles != handle_count()) note("%s fails and leaves a change", step->name);
    if (step->run() != HIPMM_OK) note("%s, tried again: %s", step->name, hipmm_last_error_message());
  }
  if (fixture_hip()->GetDevice(&device) && fixture_hip()->GetDevice(&device)) note("hipGetDevice");
  if (device != 0) note("%s leaves device %d current", step->name, device);
}

static void run_steps(void)
{
  memset(&now, 0, sizeof now);
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) run_step(&steps[i]);
  hipmm_resource_release(now.resource);
  hipmm_resource_release(now.other);
  if (handle_count()) note("%zu objects are left", handle_count());
}

static void sweep(void **state, const char *graph)
{
  failure[0] = '\0';
  failed_steps = 0;
  unsigned calls = fixture_fail_each_call(*state, graph, run_steps);
  assert_string_equal(failure, "");
  assert_in_range(calls, 50, 100000);
  assert_in_range(failed_steps, 20, calls);
}

static void a_call_that_fails_changes_nothing_over_a_source(void **state)
{
  needs_software();
  sweep(state, "'stack': ['device']");
}

static void a_call_that_fails_changes_nothing_over_a_pool(void **state)
{
  needs_software();
  sweep(state, "'stack': ['statistics', {'type': 'pool', 'growth': 'segments', 'initial_size': 0}, 'device']");
}

/* Where memory is short the whole step is refused, at whatever size. */
static void a_limit_changes_nothing(void **state)
{
  struct hipmm_buffer *buffer = NULL, *copy = NULL;
  unsigned char byte = 1, seen = 0;
  both_start(state, "'stack': [{'type': 'limiting', 'limit': '64KiB'}, 'device']");
  assert_ok(hipmm_buffer_create_from(NULL, &byte, 1, NULL, &buffer));
  assert_ok(hipmm_buffer_resize(buffer, 40 << 10, NULL));
  void *data = hipmm_buffer_data(buffer);
  assert_status(hipmm_buffer_resize(buffer, 50 << 10, HIPMM_LEGACY_STREAM), HIPMM_E_LIMIT); /* both at once */
  assert_status(hipmm_buffer_copy(buffer, NULL, NULL, &copy), HIPMM_E_LIMIT);
  assert_ptr_equal(hipmm_buffer_data(buffer), data);
  assert_int_equal(hipmm_buffer_bytes(buffer), 40 << 10);
  assert_null(hipmm_buffer_stream(buffer));
  assert_ok(hipmm_buffer_read(buffer, 0, 1, NULL, &seen));
  assert_int_equal(seen, 1);
  assert_int_equal(fixture_value("limiting", "allocated_bytes"), 40 << 10);
  assert_ok(hipmm_buffer_destroy(buffer));
}

/* ---- Threads ---- */

enum { THREADS = 6, ROUNDS = 25 };

static struct hipmm_stream_pool *shared_pool;
static atomic_bool gate;

/* Grows a buffer, copies it to a vector, and looks whether all is there. */
static bool use_containers(unsigned seed, hipmm_stream_t stream)
{
  size_t bytes = 1000 + seed % 7 * 5000;
  unsigned char *contents = malloc(bytes), *seen = calloc(1, bytes);
  struct hipmm_buffer *buffer = NULL, *copy = NULL;
  struct hipmm_vector vector = {NULL, 0};
  both_write(contents, bytes, seed);
  bool good = !hipmm_buffer_create_from(NULL, contents, bytes, stream, &buffer) &&
              !hipmm_buffer_resize(buffer, 2 * bytes, stream) && !hipmm_buffer_copy(buffer, NULL, stream, &copy) &&
              !hipmm_vector_create_from(NULL, bytes, hipmm_buffer_data(copy), 2, stream, &vector) &&
              !hipmm_buffer_destroy(buffer) && !hipmm_buffer_destroy(copy) &&
              !hipmm_vector_get(&vector, 0, stream, seen) && both_good(seen, bytes, seed) == bytes &&
              !hipmm_buffer_destroy(vector.buffer);
  free(contents);
  free(seen);
  return good;
}

/* Buffers that are served at once, or else as usual, keep their contents too. */
static bool use_buffers_at_once(unsigned seed, hipmm_stream_t stream)
{
  enum { SMALL = 500 };
  unsigned char contents[SMALL], seen[SMALL] = {0};
  bool good = true;
  both_write(contents, SMALL, seed);
  for (size_t bytes = 1000; good && bytes < 100000; bytes *= 3) {
    struct hipmm_buffer *buffer = NULL;
    good = hipmm_buffer_try_create(NULL, bytes, stream, &buffer) || !hipmm_buffer_create(NULL, bytes, stream, &buffer);
    good = good && !hipmm_buffer_write(buffer, bytes - SMALL, contents, SMALL, stream) &&
           !hipmm_buffer_read(buffer, bytes - SMALL, SMALL, stream, seen) && both_good(seen, SMALL, seed) == SMALL;
    good = good && (hipmm_buffer_try_destroy(buffer) || !hipmm_buffer_destroy(buffer));
  }
  return good;
}

static void *work(void *argument)
{
  intptr_t failures = 0;
  for (unsigned i = 0; i < ROUNDS; i++) {
    hipmm_stream_t stream = NULL;
    unsigned seed = i + 100 * (unsigned)(intptr_t)argument;
    if (hipmm_stream_pool_get(shared_pool, &stream) || !use_containers(seed, stream) ||
        !use_buffers_at_once(seed, stream))
      failures++;
  }
  return (void *)failures;
}

static void threads_use_one_resource_and_the_same_streams(void **state)
{
  pthread_t threads[THREADS];
  both_start(state, "'stack': ['statistics', 'pool', 'device']");
  assert_ok(hipmm_stream_pool_create(0, 4, HIPMM_STREAM_NON_BLOCKING, &shared_pool));
  for (intptr_t i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)i), 0);
  for (int i = 0; i < THREADS; i++) {
    void *failures = NULL;
    pthread_join(threads[i], &failures);
    assert_null(failures);
  }
  assert_int_equal(fixture_value("statistics", "current_count"), 0);
  assert_int_equal(handle_count(), 1);
  assert_ok(hipmm_stream_pool_destroy(shared_pool));
}

static struct hipmm_buffer *contended;
static atomic_int destroyed;

static void *destroy_contended(void *argument)
{
  (void)argument;
  if (!hipmm_buffer_destroy(contended)) atomic_fetch_add(&destroyed, 1);
  return NULL;
}

static void of_threads_that_destroy_one_buffer_one_succeeds(void **state)
{
  both_start(state, "'stack': ['pool', 'device']");
  for (int round = 0; round < 20; round++) {
    pthread_t threads[2];
    atomic_store(&destroyed, 0);
    assert_ok(hipmm_buffer_create(NULL, 1000, NULL, &contended));
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, destroy_contended, NULL), 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&destroyed), 1);
  }
}

enum { BUFFERS = 40 };

struct owner {
  struct hipmm_buffer *buffers[BUFFERS];
};

static struct hipmm_buffer *released;
static atomic_int rounds_begun, releases, n_released;

enum { RELEASE_ROUNDS = 2000 };

static void given_back(struct hipmm_memory *memory)
{
  if (!hipmm_deallocate(memory->resource, memory->ptr, memory->capacity_bytes, memory->stream))
    atomic_fetch_add(&releases, 1);
  hipmm_resource_release(memory->resource);
}

static void *release_each(void *argument)
{
  for (int round = 1; round <= RELEASE_ROUNDS; round++) {
    struct hipmm_memory memory = {.struct_size = sizeof memory};
    while (atomic_load(&rounds_begun) < round) continue;
    if (!hipmm_buffer_release(released, &memory)) given_back(&memory);
    atomic_fetch_add(&n_released, 1);
  }
  return argument;
}

/* The other would own the same memory. */
static void of_threads_that_release_one_buffer_one_succeeds(void **state)
{
  both_start(state, "'stack': ['pool', 'device']");
  pthread_t thread;
  unsigned twice = 0;
  atomic_store(&rounds_begun, 0);
  atomic_store(&n_released, 0);
  assert_int_equal(pthread_create(&thread, NULL, release_each, NULL), 0);
  for (int round = 1; round <= RELEASE_ROUNDS; round++) {
    struct hipmm_memory memory = {.struct_size = sizeof memory};
    assert_ok(hipmm_buffer_create(NULL, 40, NULL, &released));
    atomic_store(&releases, 0);
    atomic_store(&rounds_begun, round);
    if (!hipmm_buffer_release(released, &memory)) given_back(&memory);
    while (atomic_load(&n_released) < round) continue;
    twice += atomic_load(&releases) != 1;
  }
  pthread_join(thread, NULL);
  assert_int_equal(twice, 0);
}

static void *destroy_all(void *argument)
{
  struct owner *owner = argument;
  intptr_t failures = 0;
  while (!atomic_load(&gate)) sched_yield();
  for (int i = 0; i < BUFFERS; i++)
    if (hipmm_buffer_destroy(owner->buffers[i])) failures++;
  return (void *)failures;
}

static void threads_may_destroy_containers_while_hipmm_is_finalized(void **state)
{
  for (int round = 0; round < 10; round++) {
    struct owner owners[THREADS];
    pthread_t threads[THREADS];
    both_start(state, "'stack': ['pool', 'device']");
    for (int i = 0; i < THREADS * BUFFERS; i++)
      assert_ok(hipmm_buffer_create(NULL, 5000, NULL, &owners[i / BUFFERS].buffers[i % BUFFERS]));
    atomic_store(&gate, false);
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, destroy_all, &owners[i]), 0);
    atomic_store(&gate, true);
    assert_ok(hipmm_finalize());
    for (int i = 0; i < THREADS; i++) {
      void *failures = NULL;
      pthread_join(threads[i], &failures);
      assert_null(failures);
    }
    if (on_software()) assert_int_equal(live_on_all_devices(), 0); /* the last one took the stack down */
  }
}

/* ---- A device that cannot be made the current one ---- */

static int refuse_device_1(int device)
{
  return device == 1 ? HIPMM_HIP_ERROR_INVALID_VALUE : fixture_usual_hip()->SetDevice(device);
}

/* How many of the calls that move data were made. */
static uint64_t moved(void)
{
  static const char *const names[] = {"hipMemcpy", "hipMemcpyAsync", "hipMemcpyPeerAsync", "hipMemsetAsync",
                                      "hipDeviceSynchronize"};
  uint64_t n = 0;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) n += software()->calls(names[i]);
  return n;
}

static void moves_nothing_on_another_device_than_its_own(void **state)
{
  struct hipmm_resource *far = NULL;
  struct hipmm_buffer *buffer = NULL, *orphan = NULL, *copy = NULL, *from = NULL;
  char bytes[100] = "contents";
  needs_software();
  both_start(state, "'stack': ['pool', 'device']");
  assert_ok(hipmm_resource_get_for_device(1, &far));
  hipmm_stream_t gone = both_stream(1);
  assert_ok(hipmm_buffer_create(NULL, 100, NULL, &from));
  assert_ok(hipmm_buffer_create_from(far, bytes, 100, NULL, &buffer));
  assert_ok(hipmm_buffer_create(far, 100, gone, &orphan));
  assert_ok(hipmm_stream_destroy(gone));
  software()->reset_calls();
  for (int peers = 1; peers >= 0; peers--) {
    struct hipmm_hip *table = fixture_lend_hip();
    if (!peers) table->MemcpyPeerAsync = NULL;
    table->SetDevice = refuse_device_1;
    const enum hipmm_status statuses[] = {
        hipmm_buffer_read(buffer, 0, 100, NULL, bytes),
        hipmm_buffer_write(buffer, 0, bytes, 100, NULL),
        hipmm_buffer_fill(buffer, 0, 1, 100, NULL),
        hipmm_buffer_read_async(buffer, 0, 100, NULL, bytes),
        hipmm_buffer_write_async(buffer, 0, bytes, 100, NULL),
        hipmm_buffer_copy(from, far, NULL, &copy),
        hipmm_buffer_copy(buffer, far, NULL, &copy),
        hipmm_buffer_destroy(orphan),
    };
    uint64_t calls = moved();
    fixture_take_hip_back();
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
      if (statuses[i] != HIPMM_E_HIP) fail_msg("call %zu: status %d", i, (int)statuses[i]);
    assert_int_equal(calls, 0);
  }
  assert_null(copy);
  assert_string_equal(bytes, "contents");
  assert_ok(hipmm_buffer_destroy(orphan));
  assert_ok(hipmm_buffer_destroy(buffer));
  assert_ok(hipmm_buffer_destroy(from));
  hipmm_resource_release(far);
}

static int sets_left; /* how often a device can still be made the current one */

static int refuse_after_some(int device)
{
  return device == 1 && sets_left-- <= 0 ? HIPMM_HIP_ERROR_INVALID_VALUE : fixture_usual_hip()->SetDevice(device);
}

/* Each time that the device is to become the current one fails once: nothing is copied on the other, and the call fails. */
static void copies_through_the_host_on_the_devices_of_the_blocks(void **state)
{
  struct hipmm_resource *far = NULL;
  struct hipmm_buffer *from = NULL, *copy = NULL;
  enum hipmm_status status = HIPMM_E_HIP;
  needs_software();
  both_start(state, "'stack': ['device']");
  assert_ok(hipmm_resource_get_for_device(1, &far));
  assert_ok(hipmm_buffer_create_from(far, "contents", 9, NULL, &from));
  for (int sets = 0; sets < 20 && status; sets++) {
    struct hipmm_hip *table = fixture_lend_hip();
    table->MemcpyPeerAsync = NULL;
    table->SetDevice = refuse_after_some;
    sets_left = sets;
    software()->reset_calls();
    status = hipmm_buffer_copy(from, NULL, NULL, &copy);
    uint64_t copies = software()->calls("hipMemcpy");
    fixture_take_hip_back();
    if (status) assert_int_equal(copies, 0);
    if (!status) assert_true(sets_left >= 0);
  }
  assert_ok(status);
  assert_ok(hipmm_buffer_destroy(copy));
  assert_ok(hipmm_buffer_destroy(from));
  hipmm_resource_release(far);
}

static void moves_nothing_of_no_bytes(void **state)
{
  struct hipmm_resource *far = NULL;
  struct hipmm_buffer *buffer = NULL, *copy = NULL;
  char byte = 7;
  needs_software();
  both_start(state, "'stack': ['device']");
  assert_ok(hipmm_resource_get_for_device(1, &far));
  assert_ok(hipmm_buffer_create(NULL, 100, NULL, &buffer));
  software()->reset_calls();
  assert_ok(hipmm_buffer_write_async(buffer, 100, &byte, 0, NULL));
  assert_ok(hipmm_buffer_read_async(buffer, 0, 0, NULL, &byte));
  assert_ok(hipmm_buffer_fill(buffer, 50, 1, 0, NULL));
  assert_ok(hipmm_buffer_resize(buffer, 0, NULL));
  assert_ok(hipmm_buffer_copy(buffer, far, NULL, &copy)); /* to another device */
  assert_int_equal(moved(), 0);
  assert_int_equal(byte, 7);
  assert_ok(hipmm_buffer_destroy(copy));
  assert_ok(hipmm_buffer_destroy(buffer));
  hipmm_resource_release(far);
}

/* The pool could give the memory to a later stream of the same handle, before the work of the stream that is gone. */
static void frees_at_once_on_no_stream_that_is_gone(void **state)
{
  struct hipmm_buffer *buffer = NULL, *other = NULL;
  needs_software();
  both_start(state, "'stack': ['pool', 'device']");
  hipmm_stream_t stream = both_stream(0);
  for (int i = 0; i < 2; i++) { /* the first leaves the pool with memory of the stream */
    if (buffer) assert_true(hipmm_buffer_try_destroy(buffer));
    assert_ok(hipmm_buffer_create(NULL, 1000, stream, &buffer));
  }
  assert_ok(hipmm_stream_destroy(stream));
  hipmm_stream_t next = both_stream(0);
  assert_ptr_equal(next, stream);
  assert_ok(hipmm_buffer_create(NULL, 1000, next, &other)); /* the pool knows the new stream */
  assert_ok(hipmm_buffer_destroy(other));
  assert_false(hipmm_buffer_try_destroy(buffer));
  assert_ok(hipmm_buffer_destroy(buffer));
  assert_ok(hipmm_stream_destroy(next));
}

/* ---- Calls from where there may be none ---- */

enum { FORBIDDEN_CALLS = 6 };

static enum hipmm_status forbidden[FORBIDDEN_CALLS];

/* With arguments that would be refused otherwise, or would be nothing to do. */
static void call_from_a_visitor(void *resource, const struct hipmm_extent *extent)
{
  (void)extent;
  forbidden[0] = hipmm_buffer_create(resource, 100, NULL, NULL);
  forbidden[1] = hipmm_host_buffer_create(resource, 100, NULL, &(struct hipmm_host_buffer *){NULL});
  forbidden[2] = hipmm_buffer_destroy(NULL);
  forbidden[3] = hipmm_buffer_adopt(NULL, NULL);
  forbidden[4] = hipmm_buffer_create(resource, 100, NULL, &(struct hipmm_buffer *){NULL});
  forbidden[5] = hipmm_buffer_fill(NULL, 0, 0, 0, NULL);
}

static void refuses_calls_from_a_visitor(void **state)
{
  both_start(state, "'stack': ['device']");
  void *ptr = fixture_allocate(1000, NULL);
  assert_ok(hipmm_resource_visit_blocks(fixture_resource(NULL), call_from_a_visitor, fixture_resource(NULL)));
  for (int i = 0; i < FORBIDDEN_CALLS; i++)
    if (forbidden[i] != HIPMM_E_STATE) fail_msg("call %d: status %d", i, (int)forbidden[i]);
  fixture_free(ptr, 1000, NULL);
}

int main(void)
{
  log_to_file("error");
  static const struct CMUnitTest tests[] = {
      BOTH(a_call_that_fails_changes_nothing_over_a_source),
      BOTH(a_call_that_fails_changes_nothing_over_a_pool),
      BOTH(a_limit_changes_nothing),
      BOTH(threads_use_one_resource_and_the_same_streams),
      BOTH(of_threads_that_destroy_one_buffer_one_succeeds),
      BOTH(of_threads_that_release_one_buffer_one_succeeds),
      BOTH(threads_may_destroy_containers_while_hipmm_is_finalized),
      BOTH(moves_nothing_on_another_device_than_its_own),
      BOTH(copies_through_the_host_on_the_devices_of_the_blocks),
      BOTH(moves_nothing_of_no_bytes),
      BOTH(frees_at_once_on_no_stream_that_is_gone),
      BOTH(refuses_calls_from_a_visitor),
  };
  return cmocka_run_group_tests_name("containers", tests, NULL, NULL);
}
