/* SPDX-License-Identifier: MIT */
/* Tests of core/stream/stream.c and core/stack/stream_registry.c: streams that hipmm makes, on the device that is asked
 * for; what stacks hear of them; order between streams; and every handle that is none. */
#include "../../core/runtime/hip.h"
#include "../support/both_schedulers.h"

#include <hipmm/inspect.h>

#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

static const char pool[] = "'stack': [{'type': 'pool', 'initial_size': '1MiB', 'maximum_size': '1MiB'}, 'device']";

static int current(void)
{
  int device = -1;
  assert_ok(hipmm_device_current(&device));
  return device;
}

static hipmm_stream_t make(int device)
{
  hipmm_stream_t stream = NULL;
  assert_ok(hipmm_stream_create(device, HIPMM_STREAM_NON_BLOCKING, &stream));
  assert_non_null(stream);
  return stream;
}

/* ---- Life ---- */

static void runs_work_on_the_device_asked_for(void **state)
{
  unsigned char *memory = NULL, seen[1000] = {0};
  struct hipmm_resource *resource;
  int device = -1;
  both_start(state, "'stack': ['device']");
  needs_devices(2);
  hipmm_stream_t stream = make(1);
  assert_int_equal(current(), 0);
  assert_ok(hipmm_stream_device(stream, &device));
  assert_int_equal(device, 1);
  assert_ok(hipmm_resource_get_for_device(1, &resource));
  assert_ok(hipmm_allocate(resource, sizeof seen, stream, (void **)&memory));
  assert_int_equal(fixture_hip()->MemsetAsync(memory, 77, sizeof seen, stream), 0);
  assert_ok(hipmm_stream_synchronize(1, stream));
  assert_int_equal(fixture_hip()->Memcpy(seen, memory, sizeof seen, HIPMM_HIP_MEMCPY_DEFAULT), 0);
  for (size_t i = 0; i < sizeof seen; i++) assert_int_equal(seen[i], 77);
  assert_ok(hipmm_deallocate(resource, memory, sizeof seen, stream));
  hipmm_resource_release(resource);
  assert_ok(hipmm_stream_destroy(stream));
  assert_int_equal(current(), 0);
}

static void knows_the_default_streams(void **state)
{
  int device = -1;
  both_start(state, "'stack': ['device']");
  needs_devices(2);
  hipmm_stream_t stream = make(0);
  assert_true(hipmm_stream_is_default(HIPMM_DEFAULT_STREAM) && hipmm_stream_is_default(HIPMM_LEGACY_STREAM));
  assert_false(hipmm_stream_is_default(HIPMM_PER_THREAD_STREAM) || hipmm_stream_is_default(stream));
  assert_true(hipmm_stream_is_per_thread_default(HIPMM_PER_THREAD_STREAM));
  assert_false(hipmm_stream_is_per_thread_default(NULL) || hipmm_stream_is_per_thread_default(stream));
  assert_ok(hipmm_device_set(1));
  assert_ok(hipmm_stream_device(NULL, &device));
  assert_int_equal(device, 1);
  for (uintptr_t name = 0; name <= 2; name++) {
    int done = -1;
    assert_ok(hipmm_stream_synchronize(0, (hipmm_stream_t)name));
    assert_ok(hipmm_stream_query(0, (hipmm_stream_t)name, &done));
    assert_int_equal(done, 1);
    assert_status(hipmm_stream_destroy((hipmm_stream_t)name), HIPMM_E_ARGUMENT);
    assert_message("a default stream cannot be destroyed");
  }
  assert_int_equal(current(), 1);
  assert_ok(hipmm_device_set(0));
  assert_ok(hipmm_stream_destroy(stream));
}

static void has_the_priority_asked_for(void **state)
{
  int least = 77, greatest = 77, priority = 77;
  hipmm_stream_t stream = NULL;
  both_start(state, "'stack': ['device']");
  int (*ask)(hipmm_stream_t, int *);
  void *symbol = hip_symbol("hipStreamGetPriority");
  memcpy(&ask, &symbol, sizeof ask);
  assert_ok(hipmm_stream_priority_range(0, &least, &greatest));
  assert_true(greatest < least);
  for (int wanted = greatest; wanted <= least; wanted++) {
    assert_ok(hipmm_stream_create_with_priority(0, HIPMM_STREAM_NON_BLOCKING, wanted, &stream));
    assert_int_equal(ask(stream, &priority), 0);
    assert_int_equal(priority, wanted);
    assert_ok(hipmm_stream_destroy(stream));
  }
  stream = NULL;
  assert_status(hipmm_stream_create_with_priority(0, 0, least + 1, &stream), HIPMM_E_ARGUMENT);
  assert_message("is not one of device 0: it has");
  assert_status(hipmm_stream_create_with_priority(0, 0, greatest - 1, &stream), HIPMM_E_ARGUMENT);
  assert_status(hipmm_stream_create_with_priority(0, 9, 0, &stream), HIPMM_E_ARGUMENT);
  assert_status(hipmm_stream_create_with_priority(9, 0, 0, &stream), HIPMM_E_NO_DEVICE);
  assert_status(hipmm_stream_create_with_priority(0, 0, 0, NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_stream_priority_range(0, NULL, &greatest), HIPMM_E_ARGUMENT);
  assert_status(hipmm_stream_priority_range(0, &least, NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_stream_priority_range(-1, &least, &greatest), HIPMM_E_NO_DEVICE);
  fixture_lend_hip()->StreamCreateWithPriority = NULL;
  assert_status(hipmm_stream_create_with_priority(0, 0, 0, &stream), HIPMM_E_NOT_SUPPORTED);
  fixture_take_hip_back();
  assert_null(stream);
}

static void destroys_only_what_it_made(void **state)
{
  both_start(state, "'stack': ['device']");
  hipmm_stream_t ours = make(0), foreign = fixture_stream();
  assert_status(hipmm_stream_destroy(foreign), HIPMM_E_POINTER);
  assert_message("is not one that hipmm made and has not destroyed yet");
  assert_ok(hipmm_stream_destroy(ours));
  assert_status(hipmm_stream_destroy(ours), HIPMM_E_POINTER);
  assert_status(hipmm_stream_destroy((hipmm_stream_t)(uintptr_t)0x1000), HIPMM_E_POINTER);
  fixture_drop_stream(foreign);
}

static void minds_its_arguments(void **state)
{
  hipmm_stream_t stream = (hipmm_stream_t)(uintptr_t)0x5a5a, untouched = stream;
  int value = 7;
  both_start(state, "'stack': ['device']");
  assert_status(hipmm_stream_create(1000, 0, &stream), HIPMM_E_NO_DEVICE);
  assert_message("device 1000 does not exist: runtime ");
  assert_status(hipmm_stream_create(-1, 0, &stream), HIPMM_E_NO_DEVICE);
  assert_status(hipmm_stream_create(0, 2, &stream), HIPMM_E_ARGUMENT);
  assert_message("flags 2 are neither");
  assert_status(hipmm_stream_create(0, 0, NULL), HIPMM_E_ARGUMENT);
  assert_ptr_equal(stream, untouched);
  assert_status(hipmm_stream_synchronize(1000, NULL), HIPMM_E_NO_DEVICE);
  assert_status(hipmm_stream_query(-1, NULL, &value), HIPMM_E_NO_DEVICE);
  assert_status(hipmm_stream_query(0, NULL, NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_stream_wait(0, NULL, 1000, NULL), HIPMM_E_NO_DEVICE);
  assert_status(hipmm_stream_wait(1000, NULL, 0, NULL), HIPMM_E_NO_DEVICE);
  assert_status(hipmm_stream_device(NULL, NULL), HIPMM_E_ARGUMENT);
  assert_int_equal(value, 7);
}

static void refuses_streams_that_are_none_or_anothers(void **state)
{
  int value = 7;
  needs_software();
  both_start(state, "'stack': ['device']");
  hipmm_stream_t ours = make(1), foreign = fixture_stream(), gone = make(0);
  assert_ok(hipmm_stream_destroy(gone));
  assert_status(hipmm_stream_synchronize(0, ours), HIPMM_E_ARGUMENT);
  assert_message("is of device 1, not of device 0");
  assert_status(hipmm_stream_synchronize(1, foreign), HIPMM_E_ARGUMENT);
  assert_message("is of device 0, not of device 1");
  assert_status(hipmm_stream_query(0, gone, &value), HIPMM_E_ARGUMENT);
  assert_message("is not a live stream");
  assert_status(hipmm_stream_wait(0, gone, 1, ours), HIPMM_E_ARGUMENT);
  assert_status(hipmm_stream_wait(1, ours, 0, gone), HIPMM_E_ARGUMENT);
  assert_status(hipmm_stream_wait(0, ours, 0, foreign), HIPMM_E_ARGUMENT);
  assert_status(hipmm_stream_device(gone, &value), HIPMM_E_ARGUMENT);
  assert_int_equal(value, 7);
  assert_ok(hipmm_stream_device(foreign, &value));
  assert_int_equal(value, 0);
  assert_ok(hipmm_stream_destroy(ours));
  fixture_drop_stream(foreign);
}

static void takes_streams_whose_device_nobody_can_tell(void **state)
{
  int value = 7;
  needs_software();
  both_start(state, "'stack': ['device']");
  hipmm_stream_t foreign = fixture_stream();
  struct hipmm_hip *table = fixture_lend_hip();
  table->StreamGetDevice = NULL;
  enum hipmm_status synchronised = hipmm_stream_synchronize(0, foreign), asked = hipmm_stream_device(foreign, &value);
  fixture_take_hip_back();
  assert_status(synchronised, HIPMM_OK);
  assert_status(asked, HIPMM_E_NOT_SUPPORTED);
  assert_message("runtime software cannot tell the device of a stream");
  fixture_fail_call("hipStreamGetDevice", 1, HIPMM_HIP_ERROR_NOT_SUPPORTED);
  assert_ok(hipmm_stream_synchronize(0, foreign));
  fixture_fail_call("hipStreamGetDevice", 1, 0);
  assert_status(hipmm_stream_synchronize(0, foreign), HIPMM_E_HIP);
  assert_int_equal(value, 7);
  fixture_drop_stream(foreign);
}

/* ---- Order ---- */

static atomic_bool gate;

static void wait_for_gate(void *argument)
{
  (void)argument;
  while (!atomic_load(&gate)) sched_yield();
}

static void query_tells_whether_work_is_done(void **state)
{
  int done = -1;
  needs_software();
  (void)state;
  fixture_start("'stack': ['device']");
  hipmm_stream_t stream = make(1);
  atomic_store(&gate, false);
  assert_int_equal(fixture_hip()->LaunchHostFunc(stream, wait_for_gate, NULL), 0);
  assert_ok(hipmm_stream_query(1, stream, &done));
  assert_int_equal(done, 0);
  atomic_store(&gate, true);
  while (!done) assert_ok(hipmm_stream_query(1, stream, &done));
  assert_int_equal(done, 1);
  assert_ok(hipmm_stream_destroy(stream));
}

struct relay {
  atomic_int written, seen;
};

static void relay_write(void *argument)
{
  atomic_store(&((struct relay *)argument)->written, 1);
}

static void relay_look(void *argument)
{
  struct relay *relay = argument;
  atomic_store(&relay->seen, atomic_load(&relay->written));
}

/* On a scheduler that draws the order from `seed`: what a stream of device 1 sees of work on one of device 0. */
static int relayed(int seed, bool ordered)
{
  struct relay relay = {0};
  char options[60];
  snprintf(options, sizeof options, "'scheduler': 'stepped', 'seed': %d", seed);
  fixture_start_with(options, "'stack': ['device']");
  hipmm_stream_t writer = make(0), reader = make(1);
  assert_int_equal(fixture_hip()->LaunchHostFunc(writer, relay_write, &relay), 0);
  if (ordered) assert_ok(hipmm_stream_wait(1, reader, 0, writer));
  assert_int_equal(fixture_hip()->LaunchHostFunc(reader, relay_look, &relay), 0);
  assert_ok(hipmm_stream_synchronize(1, reader));
  assert_ok(hipmm_stream_synchronize(0, writer));
  assert_ok(hipmm_stream_destroy(writer));
  assert_ok(hipmm_stream_destroy(reader));
  assert_ok(hipmm_finalize());
  return atomic_load(&relay.seen);
}

static void a_stream_waits_for_another_devices(void **state)
{
  int without = 0;
  needs_software();
  (void)state;
  for (int seed = 1; seed <= 20; seed++) {
    assert_int_equal(relayed(seed, true), 1);
    without += relayed(seed, false);
  }
  assert_in_range(without, 0, 19); /* or the test could not tell */
}

static struct hipmm_stream_event *make_event(int device)
{
  struct hipmm_stream_event *event = NULL;
  assert_ok(hipmm_stream_event_create(device, &event));
  assert_non_null(event);
  return event;
}

static void an_event_is_a_point_in_the_work_of_a_stream(void **state)
{
  int done = -1;
  needs_software();
  (void)state;
  fixture_start("'stack': ['device']");
  hipmm_stream_t stream = make(1);
  struct hipmm_stream_event *before = make_event(1), *after = make_event(1);
  assert_ok(hipmm_stream_event_query(before, &done));
  assert_int_equal(done, 1);
  assert_ok(hipmm_stream_event_synchronize(after));
  atomic_store(&gate, false);
  assert_ok(hipmm_stream_event_record(before, stream));
  assert_int_equal(fixture_hip()->LaunchHostFunc(stream, wait_for_gate, NULL), 0);
  assert_ok(hipmm_stream_event_record(after, stream));
  assert_ok(hipmm_stream_event_synchronize(before));
  assert_ok(hipmm_stream_event_query(after, &done));
  assert_int_equal(done, 0);
  assert_ok(hipmm_stream_event_destroy(before));
  atomic_store(&gate, true);
  assert_ok(hipmm_finalize());
  assert_ok(hipmm_stream_event_synchronize(after));
  assert_ok(hipmm_stream_event_query(after, &done));
  assert_int_equal(done, 1);
  assert_ok(hipmm_stream_event_destroy(after));
  assert_ok(hipmm_stream_destroy(stream));
}

/* On a scheduler that draws the order from `seed`: what a stream of device 1 sees of work on one of device 0 before and
 * after the event that it waits for. */
static void relay_by_event(int seed, int *before_out, int *after_out)
{
  struct relay before = {0}, after = {0};
  char options[60];
  snprintf(options, sizeof options, "'scheduler': 'stepped', 'seed': %d", seed);
  fixture_start_with(options, "'stack': ['device']");
  hipmm_stream_t writer = make(0), reader = make(1);
  struct hipmm_stream_event *event = make_event(0);
  assert_int_equal(fixture_hip()->LaunchHostFunc(writer, relay_write, &before), 0);
  assert_ok(hipmm_stream_event_record(event, writer));
  assert_int_equal(fixture_hip()->LaunchHostFunc(writer, relay_write, &after), 0);
  assert_ok(hipmm_stream_event_wait(event, 1, reader));
  assert_ok(hipmm_stream_event_destroy(event)); /* the reader goes on waiting */
  assert_int_equal(fixture_hip()->LaunchHostFunc(reader, relay_look, &before), 0);
  assert_int_equal(fixture_hip()->LaunchHostFunc(reader, relay_look, &after), 0);
  assert_ok(hipmm_stream_synchronize(1, reader));
  assert_ok(hipmm_stream_synchronize(0, writer));
  assert_ok(hipmm_stream_destroy(writer));
  assert_ok(hipmm_stream_destroy(reader));
  assert_ok(hipmm_finalize());
  *before_out = atomic_load(&before.seen);
  *after_out = atomic_load(&after.seen);
}

static void a_stream_waits_for_an_event_and_no_longer(void **state)
{
  int later = 0;
  needs_software();
  (void)state;
  for (int seed = 1; seed <= 20; seed++) {
    int before = 0, after = 0;
    relay_by_event(seed, &before, &after);
    assert_int_equal(before, 1);
    later += after;
  }
  assert_in_range(later, 0, 19); /* the stream does not wait for what came after the event */
}

static void events_are_minded(void **state)
{
  int done = 7;
  struct hipmm_stream_event *event = NULL;
  needs_software();
  both_start(state, "'stack': ['device']");
  hipmm_stream_t stream = make(1), gone = make(0);
  assert_ok(hipmm_stream_destroy(gone));
  assert_status(hipmm_stream_event_create(1000, &event), HIPMM_E_NO_DEVICE);
  assert_status(hipmm_stream_event_create(0, NULL), HIPMM_E_ARGUMENT);
  fixture_fail_call("hipEventCreateWithFlags", 1, 0);
  assert_true(hipmm_stream_event_create(0, &event) != HIPMM_OK);
  assert_message("hipEventCreateWithFlags");
  assert_null(event);
  event = make_event(0);
  assert_status(hipmm_stream_event_record(event, stream), HIPMM_E_ARGUMENT);
  assert_message("is of device 1, not of device 0");
  assert_status(hipmm_stream_event_record(event, gone), HIPMM_E_ARGUMENT);
  assert_status(hipmm_stream_event_wait(event, 0, stream), HIPMM_E_ARGUMENT);
  assert_status(hipmm_stream_event_wait(event, 1000, stream), HIPMM_E_NO_DEVICE);
  assert_status(hipmm_stream_event_query(event, NULL), HIPMM_E_ARGUMENT);
  fixture_fail_call("hipEventQuery", 1, 0);
  assert_status(hipmm_stream_event_query(event, &done), HIPMM_E_HIP);
  fixture_fail_call("hipEventRecord", 1, 0);
  assert_status(hipmm_stream_event_record(event, NULL), HIPMM_E_HIP);
  fixture_fail_call("hipEventSynchronize", 1, 0);
  assert_status(hipmm_stream_event_synchronize(event), HIPMM_E_HIP);
  fixture_fail_call("hipStreamWaitEvent", 1, 0);
  assert_status(hipmm_stream_event_wait(event, 1, stream), HIPMM_E_HIP);
  fixture_fail_call("hipEventDestroy", 1, 0);
  assert_status(hipmm_stream_event_destroy(event), HIPMM_E_HIP);
  assert_int_equal(done, 7);
  assert_ok(hipmm_stream_event_wait(event, 1, stream));
  assert_ok(hipmm_stream_event_destroy(event));
  assert_status(hipmm_stream_event_destroy(event), HIPMM_E_POINTER);
  assert_message("event is not a stream event, or already destroyed");
  assert_status(hipmm_stream_event_query(event, &done), HIPMM_E_POINTER);
  assert_status(hipmm_stream_event_query(NULL, &done), HIPMM_E_ARGUMENT);
  assert_status(hipmm_stream_event_synchronize(event), HIPMM_E_POINTER);
  assert_status(hipmm_stream_event_synchronize(NULL), HIPMM_E_ARGUMENT);
  assert_ok(hipmm_stream_event_destroy(NULL));
  assert_int_equal(current(), 0);
  assert_ok(hipmm_stream_destroy(stream));
}

/* ---- What stacks hear ---- */

/* A block of the whole pool goes from one stream to another. */
static void hand_over(struct hipmm_resource *resource, hipmm_stream_t from, hipmm_stream_t to)
{
  void *ptr;
  assert_ok(hipmm_allocate(resource, MIB, from, &ptr));
  assert_ok(hipmm_deallocate(resource, ptr, MIB, from));
  software()->reset_calls();
  assert_ok(hipmm_allocate(resource, MIB, to, &ptr));
  assert_ok(hipmm_deallocate(resource, ptr, MIB, to));
}

/* Of malloc(). Before glibc 2.33 they are counted as an int, which is enough here. */
static size_t bytes_in_use(void)
{
#if __GLIBC_PREREQ(2, 33)
  return mallinfo2().uordblks;
#else
  return (size_t)mallinfo().uordblks;
#endif
}

/* The next stream takes the place of one that is gone. */
static void keeps_nothing_of_streams_that_are_gone(void **state)
{
  enum { TIMES = 3000 };
  both_start(state, "'stack': ['device']");
  assert_ok(hipmm_stream_destroy(make(0)));
  size_t before = bytes_in_use();
  for (int i = 0; i < TIMES; i++) assert_ok(hipmm_stream_destroy(make(0)));
  assert_true(bytes_in_use() < before + TIMES * sizeof(void *));
}

static void its_streams_are_promised_to_last(void **state)
{
  needs_software();
  both_start(state, pool);
  hipmm_stream_t before = make(0), other = make(0), foreign = fixture_stream();
  hand_over(NULL, before, other); /* builds the stack: it hears of streams that are there */
  assert_int_equal(software()->calls("hipDeviceSynchronize"), 0);
  assert_true(software()->calls("hipEventRecord") > 0); /* by its handle, after the free */
  hipmm_stream_t after = make(0);
  hand_over(NULL, after, other);
  assert_int_equal(software()->calls("hipDeviceSynchronize"), 0);
  hand_over(NULL, foreign, other); /* nobody promised anything of this one */
  assert_true(software()->calls("hipDeviceSynchronize") > 0);
  assert_ok(hipmm_stream_destroy(before));
  assert_ok(hipmm_stream_destroy(after));
  assert_ok(hipmm_stream_destroy(other));
  fixture_drop_stream(foreign);
}

static void retires_before_it_destroys(void **state)
{
  void *ptr;
  needs_software();
  both_start(state, pool);
  hipmm_stream_t stream = make(0), other = make(0);
  assert_ok(hipmm_allocate(NULL, MIB, stream, &ptr));
  assert_int_equal(fixture_hip()->MemsetAsync(ptr, 1, MIB, stream), 0);
  assert_ok(hipmm_deallocate(NULL, ptr, MIB, stream));
  assert_ok(hipmm_stream_destroy(stream));
  hipmm_stream_t same = make(0); /* may bear the old handle */
  software()->reset_calls();
  assert_ok(hipmm_allocate(NULL, MIB, other, &ptr));
  assert_int_equal(software()->calls("hipEventRecord"), 0);
  assert_int_equal(software()->calls("hipStreamWaitEvent"), 0);
  assert_int_equal(software()->calls("hipDeviceSynchronize"), 0);
  assert_ok(hipmm_deallocate(NULL, ptr, MIB, other));
  assert_ok(hipmm_stream_destroy(same));
  assert_ok(hipmm_stream_destroy(other));
}

static void tells_stacks_that_are_held_past_finalize(void **state)
{
  struct hipmm_resource *resource;
  void *ptr;
  needs_software();
  both_start(state, pool);
  assert_ok(hipmm_resource_get_current(&resource));
  hipmm_stream_t stream = make(0), other = make(0);
  assert_ok(hipmm_allocate(resource, MIB, stream, &ptr));
  assert_int_equal(fixture_hip()->MemsetAsync(ptr, 1, MIB, stream), 0);
  assert_ok(hipmm_finalize());
  assert_ok(hipmm_deallocate(resource, ptr, MIB, stream));
  assert_ok(hipmm_stream_destroy(stream));
  software()->reset_calls();
  assert_ok(hipmm_allocate(resource, MIB, other, &ptr));
  assert_int_equal(software()->calls("hipDeviceSynchronize"), 0); /* it knows that nothing runs any more */
  assert_ok(hipmm_deallocate(resource, ptr, MIB, other));
  assert_ok(hipmm_stream_synchronize(0, other));
  assert_ok(hipmm_stream_destroy(other));
  hipmm_resource_release(resource);
}

/* ---- Failures ---- */

static void stays_as_it_was_when_a_call_fails(void **state)
{
  hipmm_stream_t stream, none = NULL;
  int done;
  needs_software();
  both_start(state, pool);
  stream = make(1);
  fixture_fail_call("hipStreamCreateWithFlags", 1, 0);
  assert_true(hipmm_stream_create(1, 0, &none) != HIPMM_OK);
  assert_null(none);
  assert_message("hipStreamCreateWithFlags");
  fixture_fail_call("hipStreamDestroy", 1, 0);
  assert_status(hipmm_stream_destroy(stream), HIPMM_E_HIP);
  assert_message("hipStreamDestroy failed");
  assert_ok(hipmm_stream_query(1, stream, &done));
  fixture_fail_call("hipStreamSynchronize", 1, 0);
  assert_status(hipmm_stream_synchronize(1, stream), HIPMM_E_HIP);
  fixture_fail_call("hipStreamQuery", 1, 0);
  assert_status(hipmm_stream_query(1, stream, &done), HIPMM_E_HIP);
  fixture_fail_call("hipSetDevice", 1, 0);
  assert_status(hipmm_stream_synchronize(1, stream), HIPMM_E_HIP);
  static const char *const calls[] = {"hipEventCreateWithFlags", "hipEventRecord", "hipStreamWaitEvent"};
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    fixture_fail_call(calls[i], 1, 0);
    assert_true(hipmm_stream_wait(1, stream, 0, NULL) != HIPMM_OK);
    assert_message(calls[i]);
  }
  assert_ok(hipmm_stream_wait(1, stream, 0, NULL));
  assert_int_equal(current(), 0);
  assert_ok(hipmm_stream_destroy(stream));
}

/* ---- Threads ---- */

enum { THREADS = 6, ROUNDS = 60 };

static enum hipmm_status make_use_destroy(int device)
{
  hipmm_stream_t stream = NULL;
  struct hipmm_resource *resource = NULL;
  void *ptr = NULL;
  enum hipmm_status status = hipmm_stream_create(device, HIPMM_STREAM_NON_BLOCKING, &stream);
  if (status) return status;
  status = hipmm_resource_get_for_device(device, &resource);
  if (!status) status = hipmm_allocate(resource, 1000, stream, &ptr);
  if (!status) status = hipmm_stream_wait(device, stream, 1 - device, NULL);
  if (!status) status = hipmm_deallocate(resource, ptr, 1000, stream);
  hipmm_resource_release(resource);
  enum hipmm_status end = hipmm_stream_destroy(stream);
  return status ? status : end;
}

static void *work(void *argument)
{
  intptr_t failures = 0;
  for (int i = 0; i < ROUNDS; i++)
    if (make_use_destroy((i + (int)(intptr_t)argument) % 2)) failures++;
  return (void *)failures;
}

static void threads_make_and_destroy_while_stacks_are_built(void **state)
{
  pthread_t threads[THREADS];
  both_start(state, "'stack': ['statistics', 'pool', 'device']");
  needs_devices(2);
  for (intptr_t i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)i), 0);
  for (int i = 0; i < THREADS; i++) {
    void *failures = NULL;
    pthread_join(threads[i], &failures);
    assert_null(failures);
  }
}

static hipmm_stream_t contended;
static atomic_int destroyed;

static void *destroy_contended(void *argument)
{
  (void)argument;
  while (!atomic_load(&gate)) sched_yield();
  if (!hipmm_stream_destroy(contended)) atomic_fetch_add(&destroyed, 1);
  return NULL;
}

static void of_threads_that_destroy_one_stream_one_succeeds(void **state)
{
  both_start(state, "'stack': ['device']");
  for (int round = 0; round < 20; round++) {
    pthread_t threads[2];
    contended = make(0);
    atomic_store(&gate, false);
    atomic_store(&destroyed, 0);
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, destroy_contended, NULL), 0);
    atomic_store(&gate, true);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&destroyed), 1);
  }
}

/* ---- A stack that is built while the program creates and destroys streams ---- */

static const char meddled[] = "'stack': [{'type': 'witness', 'when_retained': 'meddler'}, 'device']";

/* What runs in the thread that builds the stack of device 1, while a resource is told of `victim`. */
static struct meddler {
  hipmm_stream_t victim, made;
  enum hipmm_status status; /* of all that it calls */
  atomic_bool is_called, is_over;
  void (*meddle)(struct meddler *meddler);
} meddler;

static int call_meddler(void *argument, size_t bytes)
{
  struct meddler *self = argument;
  (void)bytes;
  if (!atomic_exchange(&self->is_called, true)) self->meddle(self);
  return 0;
}

static void make_and_destroy(struct meddler *self)
{
  self->status = hipmm_stream_create(1, HIPMM_STREAM_NON_BLOCKING, &self->made);
  if (!self->status) self->status = hipmm_stream_destroy(self->victim);
  if (!self->status) self->status = hipmm_stream_destroy(self->made);
  atomic_store(&self->is_over, true);
}

/* As where the resource waits for a lock that the other thread has. */
static void wait_for_the_other(struct meddler *self)
{
  while (!atomic_load(&self->is_over)) sched_yield();
}

static void *make_and_destroy_meanwhile(void *argument)
{
  struct meddler *self = argument;
  while (!atomic_load(&self->is_called)) sched_yield();
  make_and_destroy(self);
  return NULL;
}

static void start_meddled(void **state, void (*meddle)(struct meddler *meddler))
{
  struct hipmm_failure_handler handler = {sizeof handler, call_meddler, &meddler};
  meddler = (struct meddler){.meddle = meddle};
  assert_ok(hipmm_failure_handler_register("meddler", &handler));
  both_start(state, meddled);
  meddler.victim = make(1);
  software()->reset_calls();
}

static struct hipmm_resource *build_meddled(void)
{
  struct hipmm_resource *witness;
  assert_ok(hipmm_resource_get_by_name(1, "witness", &witness));
  hipmm_resource_release(witness);
  return witness;
}

static void assert_victim_is_gone(struct hipmm_resource *witness)
{
  assert_ok(meddler.status);
  assert_int_equal(resource_value(witness, "retained"), 2);
  assert_int_equal(resource_value(witness, "retired"), 2);
  assert_int_equal(software()->calls("hipStreamDestroy"), 2);
  assert_status(hipmm_stream_destroy(meddler.victim), HIPMM_E_POINTER);
}

static void a_function_called_for_a_stream_may_make_and_destroy_streams(void **state)
{
  needs_software();
  start_meddled(state, make_and_destroy);
  assert_victim_is_gone(build_meddled());
}

static void streams_are_made_and_destroyed_while_a_stack_is_built(void **state)
{
  pthread_t thread;
  needs_software();
  start_meddled(state, wait_for_the_other);
  assert_int_equal(pthread_create(&thread, NULL, make_and_destroy_meanwhile, &meddler), 0);
  struct hipmm_resource *witness = build_meddled();
  pthread_join(thread, NULL);
  assert_victim_is_gone(witness);
}

/* The thread that built the stack ends the stream, and its own call succeeded. */
static void a_stream_that_cannot_be_destroyed_stays(void **state)
{
  int done = -1;
  needs_software();
  start_meddled(state, make_and_destroy);
  fixture_fail_call("hipStreamDestroy", 2, 0);
  logged();
  build_meddled();
  assert_ok(meddler.status);
  assert_contains(logged(), "a stream that the program destroyed lives on: hipStreamDestroy failed");
  assert_ok(hipmm_stream_query(1, meddler.victim, &done));
  assert_ok(hipmm_stream_destroy(meddler.victim));
}

/* A runtime that was restarted gives the handle of a stream that is gone to a new one, while a stack is told of the first. */
static hipmm_stream_t reused;
static int (*query_before)(hipmm_stream_t stream);
static enum hipmm_status reuse_status;

static int give_again(hipmm_stream_t *stream_out, unsigned flags)
{
  (void)flags;
  *stream_out = reused;
  return 0;
}

static int query_and_reuse(hipmm_stream_t stream)
{
  struct hipmm_hip *table = (struct hipmm_hip *)(uintptr_t)hip_table();
  hipmm_stream_t created = NULL;
  if (stream != reused) return query_before(stream);
  table->StreamQuery = query_before;
  int (*create_before)(hipmm_stream_t *, unsigned) = table->StreamCreateWithFlags;
  table->StreamCreateWithFlags = give_again;
  reuse_status = hipmm_stream_create(0, 0, &created);
  table->StreamCreateWithFlags = create_before;
  return HIPMM_HIP_ERROR_INVALID_HANDLE;
}

static void a_new_stream_is_not_taken_for_one_that_is_gone(void **state)
{
  struct hipmm_resource *made = NULL;
  needs_software();
  both_start(state, "'stack': ['device']");
  reused = make(0);
  struct hipmm_hip *table = fixture_lend_hip();
  query_before = table->StreamQuery;
  table->StreamQuery = query_and_reuse;
  reuse_status = HIPMM_E_INTERNAL;
  enum hipmm_status status = hipmm_resource_create(0, "device", NULL, NULL, 0, &made);
  fixture_take_hip_back();
  assert_ok(status);
  assert_ok(reuse_status);
  assert_ok(hipmm_stream_destroy(reused));
  hipmm_resource_release(made);
}

/* ---- A device that cannot be made the current one ---- */

static int refuse_device_1(int device)
{
  return device == 1 ? HIPMM_HIP_ERROR_INVALID_VALUE : fixture_usual_hip()->SetDevice(device);
}

/* How many of the calls that would work on the current device, not on the one that is meant, were made. */
static uint64_t made_on_a_device(void)
{
  static const char *const names[] = {"hipMemGetInfo",
                                      "hipDeviceGetStreamPriorityRange",
                                      "hipStreamCreateWithFlags",
                                      "hipEventCreateWithFlags",
                                      "hipEventRecord",
                                      "hipStreamWaitEvent",
                                      "hipStreamSynchronize",
                                      "hipStreamQuery"};
  uint64_t n = 0;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) n += software()->calls(names[i]);
  return n;
}

static void does_nothing_on_another_device_than_it_is_told(void **state)
{
  int least = 77, greatest = 77, done = 77;
  size_t free_bytes = 77, total_bytes = 77;
  hipmm_stream_t made = NULL;
  struct hipmm_stream_event *made_event = NULL;
  struct hipmm_resource *resource = NULL;
  needs_software();
  both_start(state, "'stack': ['device']");
  assert_ok(hipmm_resource_get_for_device(1, &resource)); /* the stack is there already */
  hipmm_stream_t near = make(0), far = make(1);
  struct hipmm_stream_event *event = make_event(0);
  assert_ok(hipmm_stream_event_record(event, near));
  software()->reset_calls();
  fixture_lend_hip()->SetDevice = refuse_device_1;
  const enum hipmm_status statuses[] = {
      hipmm_stream_create(1, 0, &made),
      hipmm_stream_priority_range(1, &least, &greatest),
      hipmm_stream_event_create(1, &made_event),
      hipmm_stream_event_wait(event, 1, far),
      hipmm_stream_wait(1, far, 1, NULL),
      hipmm_stream_wait(0, near, 1, far),
      hipmm_stream_synchronize(1, far),
      hipmm_stream_query(1, far, &done),
      hipmm_device_memory(1, &free_bytes, &total_bytes),
      hipmm_device_percent_of_free_memory(1, 50, &free_bytes),
  };
  uint64_t calls = made_on_a_device();
  fixture_take_hip_back();
  for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
    if (statuses[i] != HIPMM_E_HIP && statuses[i] != HIPMM_E_ARGUMENT)
      fail_msg("call %zu: status %d", i, (int)statuses[i]);
  assert_int_equal(calls, 0);
  assert_null(made);
  assert_null(made_event);
  assert_true(least == 77 && greatest == 77 && done == 77 && free_bytes == 77 && total_bytes == 77);
  assert_int_equal(current(), 0);
  assert_ok(hipmm_stream_event_destroy(event));
  assert_ok(hipmm_stream_destroy(near));
  assert_ok(hipmm_stream_destroy(far));
  hipmm_resource_release(resource);
}

/* ---- Facts of devices ---- */

static void says_nothing_of_devices_that_are_not_there(void **state)
{
  char name[16] = "none";
  int value = 77;
  size_t bytes = 77;
  needs_software();
  both_start(state, "'stack': ['device']");
  assert_status(hipmm_device_name(1000, sizeof name, name), HIPMM_E_NO_DEVICE);
  assert_status(hipmm_device_name(0, 0, name), HIPMM_E_ARGUMENT);
  assert_status(hipmm_device_name(0, sizeof name, NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_device_attribute(1000, 1, &value), HIPMM_E_NO_DEVICE);
  assert_status(hipmm_device_attribute(0, 1, NULL), HIPMM_E_ARGUMENT);
  fixture_fail_call("hipDeviceGetAttribute", 1, 0);
  assert_status(hipmm_device_attribute(0, 1, &value), HIPMM_E_HIP);
  assert_status(hipmm_device_memory(1000, &bytes, NULL), HIPMM_E_NO_DEVICE);
  assert_status(hipmm_device_percent_of_free_memory(0, 101, &bytes), HIPMM_E_ARGUMENT);
  assert_status(hipmm_device_percent_of_free_memory(0, 50, NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_driver_version(NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_runtime_version(NULL), HIPMM_E_ARGUMENT);
  assert_int_equal(value, 77);
  assert_int_equal(bytes, 77);
  assert_string_equal(name, "none");
}

/* ---- Calls from where there may be none ---- */

static struct {
  enum hipmm_status event, stream, none, pool, retained;
} forbidden;

static void call_from_a_visitor(void *stream, const struct hipmm_extent *extent)
{
  (void)extent;
  forbidden.event = hipmm_stream_event_destroy(NULL);
  forbidden.stream = hipmm_stream_destroy(stream);
  forbidden.none = hipmm_stream_destroy(NULL);
  forbidden.pool = hipmm_stream_pool_destroy(NULL);
  forbidden.retained = hipmm_stream_retain(0, stream);
}

static void refuses_calls_from_a_visitor(void **state)
{
  both_start(state, "'stack': ['device']");
  hipmm_stream_t stream = make(0);
  void *ptr = fixture_allocate(1000, NULL);
  assert_ok(hipmm_resource_visit_blocks(fixture_resource(NULL), call_from_a_visitor, stream));
  assert_status(forbidden.event, HIPMM_E_STATE);
  assert_status(forbidden.stream, HIPMM_E_STATE);
  assert_status(forbidden.none, HIPMM_E_STATE);
  assert_status(forbidden.pool, HIPMM_E_STATE);
  assert_status(forbidden.retained, HIPMM_E_STATE);
  fixture_free(ptr, 1000, NULL);
  assert_ok(hipmm_stream_destroy(stream));
}

int main(void)
{
  static const struct CMUnitTest tests[] = {
      BOTH(runs_work_on_the_device_asked_for),
      BOTH(knows_the_default_streams),
      BOTH(has_the_priority_asked_for),
      BOTH(destroys_only_what_it_made),
      BOTH(minds_its_arguments),
      BOTH(refuses_streams_that_are_none_or_anothers),
      BOTH(takes_streams_whose_device_nobody_can_tell),
      BOTH(keeps_nothing_of_streams_that_are_gone),
      BOTH(its_streams_are_promised_to_last),
      BOTH(retires_before_it_destroys),
      BOTH(tells_stacks_that_are_held_past_finalize),
      BOTH(stays_as_it_was_when_a_call_fails),
      BOTH(threads_make_and_destroy_while_stacks_are_built),
      BOTH(of_threads_that_destroy_one_stream_one_succeeds),
      BOTH(a_function_called_for_a_stream_may_make_and_destroy_streams),
      BOTH(streams_are_made_and_destroyed_while_a_stack_is_built),
      BOTH(a_stream_that_cannot_be_destroyed_stays),
      BOTH(a_new_stream_is_not_taken_for_one_that_is_gone),
      cmocka_unit_test_setup_teardown(query_tells_whether_work_is_done, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(a_stream_waits_for_another_devices, fixture_setup, fixture_teardown),
      BOTH(events_are_minded),
      BOTH(does_nothing_on_another_device_than_it_is_told),
      BOTH(says_nothing_of_devices_that_are_not_there),
      BOTH(refuses_calls_from_a_visitor),
      cmocka_unit_test_setup_teardown(an_event_is_a_point_in_the_work_of_a_stream, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(a_stream_waits_for_an_event_and_no_longer, fixture_setup, fixture_teardown),
  };
  use_test_plugins();
  log_to_file("warning");
  return cmocka_run_group_tests_name("stream", tests, NULL, NULL);
}
