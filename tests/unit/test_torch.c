/* SPDX-License-Identifier: MIT */
/* Tests of core/framework/torch.c, torch_blocks.c, torch_pools.c, framework_device.c and cupy.c: what PyTorch and CuPy
 * call, over the software device. The stepped scheduler runs work as late as it can, in an order drawn from a seed. */
#include "../../core/base/error.h"
#include "../../core/base/live_format.h"
#include "../../core/framework/framework_device.h"
#include "../../core/inspect/publish.h"
#include "../support/fixture.h"
#include "../support/graph_functions.h"

#include <hipmm/inspect.h>
#include <hipmm/torch.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BYTES ((ssize_t)1 << 20)

static const char stack[] = "'stack': [{'type': 'pool', 'growth': 'mapped'}, 'device']";

static void *torch_allocate(ssize_t bytes, hipmm_stream_t stream)
{
  void *ptr = hipmm_torch_malloc(bytes, 0, stream);
  assert_non_null(ptr);
  return ptr;
}

static void assert_logged(const char *part)
{
  assert_contains(logged(), part);
}

static void assert_not_logged(void)
{
  assert_string_equal(logged(), "");
}

/* ---- Further streams ---- */

enum { OLD = 0x11, NEW = 0x22 };

static unsigned wrong; /* bytes that were not OLD when the further stream looked */

static void look_for_old(void *argument)
{
  const unsigned char *block = argument;
  for (ssize_t i = 0; i < BYTES; i += 4096) wrong += block[i] != OLD;
}

static void make_wait(hipmm_stream_t stream, hipmm_stream_t for_stream)
{
  hipmm_hip_event_t event;
  assert_int_equal(fixture_hip()->EventCreateWithFlags(&event, HIPMM_HIP_EVENT_DISABLE_TIMING), 0);
  assert_int_equal(fixture_hip()->EventRecord(event, for_stream), 0);
  assert_int_equal(fixture_hip()->StreamWaitEvent(stream, event, 0), 0);
  assert_int_equal(fixture_hip()->EventDestroy(event), 0);
}

/* One stream fills a block, another looks at it; the block is freed and filled anew by its next owner on the first. There is no
 * memory for another block. */
static void share_a_block(hipmm_stream_t owner, hipmm_stream_t other, bool recorded)
{
  unsigned char *block = torch_allocate(BYTES, owner);
  assert_int_equal(fixture_hip()->MemsetAsync(block, OLD, (size_t)BYTES, owner), 0);
  make_wait(other, owner);
  assert_int_equal(fixture_hip()->LaunchHostFunc(other, look_for_old, block), 0);
  if (recorded) hipmm_torch_record_stream(block, other);
  hipmm_torch_free(block, BYTES, 0, owner);
  unsigned char *next = torch_allocate(BYTES, owner);
  assert_ptr_equal(next, block);
  assert_int_equal(fixture_hip()->MemsetAsync(next, NEW, (size_t)BYTES, owner), 0);
  assert_int_equal(fixture_hip()->DeviceSynchronize(), 0);
  assert_int_equal(next[BYTES - 1], NEW);
  hipmm_torch_free(next, BYTES, 0, owner);
}

static unsigned share_under_seeds(bool recorded, const char *failing_call)
{
  char options[64];
  wrong = 0;
  for (int seed = 1; seed <= 10; seed++) {
    snprintf(options, sizeof options, "'scheduler': 'stepped', 'seed': %d", seed);
    fixture_start_with(options, "'stack': [{'type': 'pool', 'maximum_size': '1MiB'}, 'device']");
    hipmm_stream_t owner = fixture_stream(), other = fixture_stream();
    share_a_block(owner, other, recorded);
    /* our own event is the second of each call */
    if (failing_call) fixture_fail_call(failing_call, 2, 0);
    share_a_block(owner, other, recorded);
    software()->fail_none();
    fixture_drop_stream(owner);
    fixture_drop_stream(other);
    assert_ok(hipmm_finalize());
    software()->reset();
  }
  return wrong;
}

static void frees_after_the_work_of_recorded_streams(void **state)
{
  (void)state;
  assert_int_equal(share_under_seeds(true, NULL), 0);
}

static void would_notice_a_missing_wait(void **state)
{
  (void)state;
  assert_int_not_equal(share_under_seeds(false, NULL), 0);
}

static void waits_where_events_fail(void **state)
{
  (void)state;
  assert_int_equal(share_under_seeds(true, "hipEventCreateWithFlags"), 0);
  assert_int_equal(share_under_seeds(true, "hipEventRecord"), 0);
  assert_int_equal(share_under_seeds(true, "hipStreamWaitEvent"), 0);
}

/* More work than a few questions to the stepped scheduler end, or than it does beside that of a stream that is waited for. */
static void give_much_work(hipmm_stream_t stream, void *block)
{
  for (int i = 0; i < 500; i++) assert_int_equal(fixture_hip()->MemsetAsync(block, OLD, (size_t)BYTES, stream), 0);
}

/* The caller does not wait, and the stream that a block is for needs no event. */
static void does_not_wait_itself(void **state)
{
  (void)state;
  fixture_start_with("'scheduler': 'stepped'", stack);
  hipmm_stream_t owner = fixture_stream(), other = fixture_stream();
  void *block = torch_allocate(BYTES, owner);
  hipmm_torch_record_stream(block, owner);
  software()->reset_calls();
  hipmm_torch_free(block, BYTES, 0, owner);
  assert_int_equal(software()->calls("hipEventRecord"), 0);
  block = torch_allocate(BYTES, owner);
  give_much_work(other, block);
  for (int i = 0; i < 3; i++) hipmm_torch_record_stream(block, other); /* once is enough */
  software()->reset_calls();
  hipmm_torch_free(block, BYTES, 0, owner);
  assert_int_equal(software()->calls("hipEventRecord"), 1);
  assert_int_equal(software()->calls("hipDeviceSynchronize"), 0);
  assert_true(software()->pending() > 0);
  hipmm_torch_reset();
  assert_int_equal(software()->calls("hipEventRecord"), 1);
  assert_int_equal(software()->calls("hipStreamWaitEvent"), 1);
  fixture_drop_stream(owner);
  fixture_drop_stream(other);
}

/* The stream that a block was for goes on beside the work of another stream, which later memory of its own must not wait for. */
static void makes_no_stream_wait_that_need_not(void **state)
{
  (void)state;
  fixture_start_with("'scheduler': 'stepped'", stack);
  hipmm_stream_t owner = fixture_stream(), other = fixture_stream(), third = fixture_stream();
  unsigned char *blocks[3];
  for (int i = 0; i < 3; i++) {
    blocks[i] = torch_allocate(BYTES, owner);
    hipmm_torch_record_stream(blocks[i], i == 1 ? third : other);
  }
  give_much_work(other, blocks[0]);
  assert_int_equal(fixture_hip()->MemsetAsync(blocks[1], OLD, (size_t)BYTES, third), 0);
  software()->reset_calls();
  for (int i = 0; i < 3; i++) hipmm_torch_free(blocks[i], BYTES, 0, owner);
  void *next = torch_allocate(BYTES, owner);
  assert_true(next != blocks[0] && next != blocks[2]);
  assert_int_equal(fixture_hip()->StreamSynchronize(third), 0);
  void *second = torch_allocate(BYTES, owner);
  assert_true(next == blocks[1] || second == blocks[1]); /* it was not the first to wait */
  assert_int_equal(software()->calls("hipStreamWaitEvent"), 0);
  assert_int_equal(fixture_hip()->StreamSynchronize(other), 0);
  hipmm_torch_free(second, BYTES, 0, owner);
  hipmm_torch_free(torch_allocate(BYTES, owner), BYTES, 0, owner);
  hipmm_torch_free(next, BYTES, 0, owner);
  hipmm_torch_reset();
  assert_int_equal(fixture_held_bytes(), 0);
  assert_int_equal(software()->calls("hipStreamWaitEvent"), 0);
  fixture_drop_stream(owner);
  fixture_drop_stream(other);
  fixture_drop_stream(third);
}

/* A block that waits is no leak. */
static void frees_what_waits_at_the_end(void **state)
{
  (void)state;
  fixture_start_with("'scheduler': 'stepped'", stack);
  hipmm_stream_t owner = fixture_stream(), other = fixture_stream();
  void *block = torch_allocate(BYTES, owner);
  hipmm_torch_record_stream(block, other);
  give_much_work(other, block);
  hipmm_torch_free(block, BYTES, 0, owner);
  assert_ok(hipmm_finalize());
  assert_not_logged();
  fixture_drop_stream(owner);
  fixture_drop_stream(other);
  fixture_start(stack); /* for the teardown */
}

static void records_streams_of_other_devices(void **state)
{
  (void)state;
  fixture_start_with("'scheduler': 'stepped'", stack);
  hipmm_stream_t owner = fixture_stream(), other;
  assert_int_equal(fixture_hip()->SetDevice(1), 0);
  other = fixture_stream();
  void *block = torch_allocate(BYTES, owner);
  hipmm_torch_record_stream(block, other);
  give_much_work(other, block);
  assert_int_equal(fixture_hip()->SetDevice(0), 0);
  software()->reset_calls();
  hipmm_torch_free(block, BYTES, 0, owner);
  assert_int_equal(software()->calls("hipDeviceSynchronize"), 0);
  hipmm_torch_reset();
  assert_int_equal(software()->calls("hipStreamWaitEvent"), 1);
  int current = -1;
  assert_int_equal(fixture_hip()->GetDevice(&current), 0);
  assert_int_equal(current, 0);
  fixture_drop_stream(owner);
  fixture_drop_stream(other);
}

static void ignores_records_of_foreign_memory(void **state)
{
  (void)state;
  static char foreign[256];
  hipmm_torch_record_stream(foreign, NULL); /* before anything */
  fixture_start(stack);
  hipmm_stream_t owner = fixture_stream(), other = fixture_stream();
  void *block = torch_allocate(BYTES, owner);
  hipmm_torch_record_stream(foreign, other);
  hipmm_torch_record_stream(NULL, other);
  hipmm_torch_record_stream((char *)block + 256, other);
  software()->reset_calls();
  hipmm_torch_free(block, BYTES, 0, owner);
  hipmm_torch_record_stream(block, other); /* for nobody: the next owner has its own streams */
  assert_ptr_equal(torch_allocate(BYTES, owner), block);
  hipmm_torch_free(block, BYTES, 0, owner);
  assert_int_equal(software()->calls("hipEventRecord"), 0);
  fixture_drop_stream(owner);
  fixture_drop_stream(other);
}

/* A stream that is not in its home slot is asked for at each allocation. On x86 a compare-exchange that fails writes too, and
 * so takes the cache line from all other threads. */
static void finds_a_stream_without_a_write(void **state)
{
  (void)state;
  fixture_start(stack);
  size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (sizeof(struct framework_device) + page - 1) / page * page;
  struct framework_device *device = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(device, MAP_FAILED);
  hipmm_stream_t stream = fixture_stream(), other = (hipmm_stream_t)((uintptr_t)stream ^ 1);
  assert_int_equal(framework_stream_slot(stream), framework_stream_slot(other));
  atomic_store(&device->streams[framework_stream_slot(stream)], other);
  framework_retain_stream(device, stream);
  assert_false(framework_has_stream(device, stream));
  assert_int_equal(mprotect(device, bytes, PROT_READ), 0);
  framework_retain_stream(device, stream);
  assert_int_equal(munmap(device, bytes), 0);
  fixture_drop_stream(stream);
}

/* What was freed on one stream serves another through an event, not by synchronising the device. */
static void promises_each_stream(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'pool', 'maximum_size': '2MiB', 'growth': 'segments'}, 'device']");
  hipmm_stream_t streams[2] = {fixture_stream(), fixture_stream()};
  software()->reset_calls();
  for (int i = 0; i < 100; i++)
    hipmm_torch_free(torch_allocate(2 * BYTES, streams[i % 2]), 2 * BYTES, 0, streams[i % 2]);
  assert_int_equal(software()->calls("hipDeviceSynchronize"), 0);
  assert_int_equal(software()->calls("hipMalloc"), 1);
  fixture_drop_stream(streams[0]);
  fixture_drop_stream(streams[1]);
}

/* More than there are slots for. */
static void lives_with_many_streams(void **state)
{
  (void)state;
  enum { MANY = 1500 };
  static hipmm_stream_t streams[MANY];
  fixture_start(stack);
  for (int i = 0; i < MANY; i++) streams[i] = fixture_stream();
  for (int i = 0; i < MANY; i++) hipmm_torch_free(torch_allocate(1000, streams[i]), 1000, 0, streams[i]);
  for (int i = 0; i < MANY; i++) fixture_drop_stream(streams[i]);
  assert_not_logged();
}

/* Also where streams have the same slot: the first of them has the slot, and the others are found in slots behind it. */
static void retains_each_stream_once(void **state)
{
  enum { SAME = 3 };
  (void)state;
  hipmm_stream_t streams[SAME];
  unsigned n_retained = 0;
  fixture_start(stack);
  hipmm_torch_free(torch_allocate(1000, NULL), 1000, 0, NULL);
  uintptr_t handle = 4096;
  for (int i = 0; i < SAME; handle += 16)
    if (framework_stream_slot((hipmm_stream_t)handle) == FRAMEWORK_STREAMS - 1) streams[i++] = (hipmm_stream_t)handle;
  for (int i = 0; i < 3 * SAME; i++) framework_retain_stream(&framework_devices[0], streams[i % SAME]);
  for (size_t slot = 0; slot < FRAMEWORK_STREAMS; slot++)
    n_retained += atomic_load(&framework_devices[0].streams[slot]) != NULL;
  assert_int_equal(n_retained, SAME);
  for (int i = 0; i < SAME; i++) hipmm_stream_retire(0, streams[i]);
}

/* Copies between devices are ordered by PyTorch itself, and by no other framework: its memory is mapped. */
static void maps_memory_for_pytorch_alone(void **state)
{
  (void)state;
  for (int is_torch = 0; is_torch < 2; is_torch++) {
    assert_ok(hipmm_init_from_string(
        "{\"runtime\": {\"type\": \"software\", \"devices\": 2}, \"stack\": [\"pool\", \"device\"]}"));
    struct hipmm_pointer found = {.struct_size = sizeof found};
    void *block = is_torch ? torch_allocate(BYTES, NULL) : hipmm_cupy_malloc(NULL, BYTES, 0);
    assert_ok(hipmm_pointer_lookup(block, &found));
    assert_int_equal(!!(found.flags & HIPMM_POINTER_MAPPED), is_torch);
    hipmm_resource_release(found.resource);
    hipmm_cupy_free(NULL, block, 0);
    assert_ok(hipmm_finalize());
  }
}

/* ---- Sizes and pointers ---- */

static void minds_sizes(void **state)
{
  (void)state;
  fixture_start(stack);
  assert_null(hipmm_torch_malloc(0, 0, NULL));
  assert_not_logged();
  assert_null(hipmm_torch_malloc(-1, 0, NULL));
  assert_logged("-1 is not a size");
  assert_null(hipmm_torch_malloc(PTRDIFF_MAX, 0, NULL));
  assert_logged("torch: cannot allocate");
  assert_string_not_equal(hipmm_last_error_message(), "");
  static const ssize_t sizes[] = {1, 255, 256, 257, 4097, 1000001, 100 << 20};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    unsigned char *block = torch_allocate(sizes[i], NULL);
    assert_int_equal((uintptr_t)block % 256, 0);
    memset(block, 1, (size_t)sizes[i]);
    hipmm_torch_free(block, sizes[i], 0, NULL);
  }
  hipmm_torch_free(torch_allocate(1000, NULL), 0, 0, NULL); /* who does not know the size */
  hipmm_torch_memory_fraction(0, 0);
  assert_null(hipmm_torch_malloc(1, 0, NULL));
  assert_logged("1 byte on top of 0 bytes"); /* nothing is live */
}

static void minds_devices(void **state)
{
  (void)state;
  static const int none[] = {2, 63, 64, -1, INT32_MAX, INT32_MIN};
  fixture_start(stack);
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    assert_null(hipmm_torch_malloc(1000, none[i], NULL));
    assert_logged("does not exist");
    hipmm_torch_free((void *)(uintptr_t)4096, 1000, none[i], NULL);
    hipmm_torch_memory_fraction(0.5, none[i]);
    assert_logged("the memory fraction is not set");
  }
  void *block = hipmm_torch_malloc(1000, 1, NULL);
  assert_non_null(block);
  hipmm_torch_free(block, 1000, 1, NULL);
  assert_not_logged();
}

static void refuses_wrong_frees(void **state)
{
  (void)state;
  static char foreign[512];
  fixture_start(stack);
  void *block = torch_allocate(1000, NULL);
  hipmm_torch_free(NULL, 1000, 0, NULL);
  assert_not_logged();
  size_t live = 0;
  assert_ok(hipmm_torch_memory(0, &live, NULL));
  assert_int_equal(live, 1000);
  hipmm_torch_free(foreign, 1000, 0, NULL);
  assert_logged("torch: a block is not freed");
  hipmm_torch_free((char *)block + 256, 1000, 0, NULL);
  assert_logged("torch: a block is not freed");
  hipmm_torch_free(block, 999, 0, NULL);
  assert_logged("torch: a block is not freed");
  hipmm_torch_free(block, -1, 0, NULL);
  assert_logged("torch: a block is not freed");
  hipmm_torch_free(block, 1000, 0, NULL);
  assert_not_logged();
  hipmm_torch_free(block, 1000, 0, NULL);
  assert_logged("torch: a block is not freed");
}

static void tells_blocks(void **state)
{
  (void)state;
  size_t bytes = 1;
  fixture_start(stack);
  char *block = torch_allocate(1000, NULL);
  assert_ptr_equal(hipmm_torch_base_alloc(block, &bytes), block);
  assert_int_equal(bytes, 1000);
  assert_ptr_equal(hipmm_torch_base_alloc(block, NULL), block);
  assert_null(hipmm_torch_base_alloc(block + 256, &bytes));
  assert_int_equal(bytes, 0);
  assert_null(hipmm_torch_base_alloc(NULL, &bytes));
  hipmm_torch_free(block, 1000, 0, NULL);
  assert_null(hipmm_torch_base_alloc(block, NULL));
}

/* A part of an allocation has no IPC handle that names it: the whole would be shared. */
static void knows_what_begins_an_allocation(void **state)
{
  char foreign;
  void *others = NULL;
  (void)state;
  fixture_start("'stack': ['statistics', 'device']");
  assert_int_equal(fixture_hip()->Malloc(&others, 1000), 0);
  assert_int_equal(hipmm_torch_is_allocation(others), 0);
  assert_int_equal(fixture_hip()->Free(others), 0);
  char *first = torch_allocate(BYTES, NULL), *second = torch_allocate(BYTES, NULL);
  assert_int_equal(hipmm_torch_is_allocation(first), 1);
  assert_int_equal(hipmm_torch_is_allocation(second), 1);
  assert_int_equal(hipmm_torch_is_allocation(first + 256), 0);
  assert_int_equal(hipmm_torch_is_allocation(&foreign), 0);
  assert_int_equal(hipmm_torch_is_allocation(NULL), 0);
  hipmm_torch_free(second, BYTES, 0, NULL);
  assert_int_equal(hipmm_torch_is_allocation(second), 0);
  hipmm_torch_free(first, BYTES, 0, NULL);
  assert_ok(hipmm_finalize());
  fixture_start("'stack': [{'type': 'pool', 'growth': 'segments', 'initial_size': '8MiB'}, 'device']");
  first = torch_allocate(BYTES, NULL);
  second = torch_allocate(BYTES, NULL);
  assert_int_equal(hipmm_torch_is_allocation(first) + hipmm_torch_is_allocation(second), 1);
  hipmm_torch_free(first, BYTES, 0, NULL);
  hipmm_torch_free(second, BYTES, 0, NULL);
  assert_ok(hipmm_finalize());
  fixture_start("'stack': [{'type': 'pool', 'growth': 'mapped'}, 'device']");
  first = torch_allocate(44 << 20, NULL);
  assert_int_equal(hipmm_torch_is_allocation(first), 0); /* where a mapping begins */
  hipmm_torch_free(first, 44 << 20, 0, NULL);
}

static void gives_idle_memory_back(void **state)
{
  (void)state;
  hipmm_torch_reset(); /* before anything */
  fixture_start(stack);
  hipmm_torch_free(torch_allocate(BYTES, NULL), BYTES, 0, NULL);
  assert_true(fixture_held_bytes() > 0);
  hipmm_torch_reset();
  assert_int_equal(fixture_held_bytes(), 0);
}

/* ---- Limits and figures ---- */

static void assert_memory(int device, size_t live_bytes, size_t peak_bytes)
{
  size_t live = 1, peak = 1;
  assert_ok(hipmm_torch_memory(device, &live, &peak));
  assert_int_equal(live, live_bytes);
  assert_int_equal(peak, peak_bytes);
}

static void tells_what_is_live_and_its_peak(void **state)
{
  (void)state;
  assert_int_equal(hipmm_torch_memory(0, NULL, NULL), HIPMM_E_STATE);
  assert_int_equal(hipmm_torch_reset_peak(0), HIPMM_E_STATE);
  fixture_start(stack);
  assert_memory(0, 0, 0);
  assert_ok(hipmm_torch_reset_peak(0));
  void *first = torch_allocate(5 * BYTES, NULL), *second = torch_allocate(1000, NULL);
  assert_memory(0, 5 * BYTES + 1000, 5 * BYTES + 1000);
  hipmm_torch_free(first, 5 * BYTES, 0, NULL);
  assert_null(hipmm_torch_malloc((ssize_t)1 << 50, 0, NULL)); /* the peak does not have it */
  assert_memory(0, 1000, 5 * BYTES + 1000);
  assert_ok(hipmm_torch_reset_peak(0));
  assert_memory(0, 1000, 1000);
  hipmm_torch_memory_fraction(0.5, 0);
  assert_null(hipmm_torch_malloc(200 * BYTES, 0, NULL));
  first = torch_allocate(BYTES, NULL);
  assert_memory(0, BYTES + 1000, BYTES + 1000);
  hipmm_torch_free(first, 0, 0, NULL); /* of unknown size */
  hipmm_torch_free(second, 1000, 0, NULL);
  assert_memory(0, 0, BYTES + 1000);
  assert_memory(1, 0, 0);
  assert_ok(hipmm_torch_memory(0, NULL, NULL));
  assert_int_equal(hipmm_torch_memory(-1, NULL, NULL), HIPMM_E_NO_DEVICE);
  assert_int_equal(hipmm_torch_reset_peak(1000), HIPMM_E_NO_DEVICE);
  logged();
}

static void keeps_to_the_fraction(void **state)
{
  (void)state;
  fixture_start(stack);
  void *first = torch_allocate(100 * BYTES, NULL);
  hipmm_torch_memory_fraction(0.5, 0); /* of 256 MiB */
  void *second = torch_allocate(28 * BYTES, NULL);
  assert_null(hipmm_torch_malloc(1, 0, NULL));
  assert_logged("memory fraction");
  hipmm_torch_free(second, 28 * BYTES, 0, NULL);
  assert_null(hipmm_torch_malloc(28 * BYTES + 1, 0, NULL));
  assert_logged("memory fraction");
  second = torch_allocate(28 * BYTES, NULL);
  hipmm_torch_memory_fraction(0.25, 0); /* what is live stays */
  assert_null(hipmm_torch_malloc(1, 0, NULL));
  hipmm_torch_free(first, 100 * BYTES, 0, NULL);
  first = torch_allocate(36 * BYTES, NULL);
  hipmm_torch_free(first, 36 * BYTES, 0, NULL);
  hipmm_torch_free(second, 28 * BYTES, 0, NULL);
  void *other = hipmm_torch_malloc(200 * BYTES, 1, NULL); /* has none */
  assert_non_null(other);
  hipmm_torch_free(other, 200 * BYTES, 1, NULL);
  logged();
  static const double wrong_fractions[] = {-0.1, 1.1, (double)NAN, (double)INFINITY};
  for (size_t i = 0; i < sizeof wrong_fractions / sizeof *wrong_fractions; i++) {
    hipmm_torch_memory_fraction(wrong_fractions[i], 0);
    assert_logged("is not a fraction");
  }
  assert_null(hipmm_torch_malloc(65 * BYTES, 0, NULL)); /* 64 MiB still hold */
}

static void is_not_called(const char *message)
{
  fail_msg("called for \"%s\"", message);
}

static void tries_without_a_word(void **state)
{
  (void)state;
  void *ptr = &ptr;
  const char *first;
  fixture_start(stack);
  uint64_t failed = error_failed_allocations(&first);
  hipmm_torch_on_failure(is_not_called);
  assert_ok(hipmm_torch_try_malloc(0, 0, NULL, &ptr));
  assert_null(ptr);
  assert_ok(hipmm_torch_try_malloc(BYTES, 0, NULL, &ptr));
  assert_memory(0, BYTES, BYTES);
  hipmm_torch_free(ptr, BYTES, 0, NULL);
  assert_int_equal(hipmm_torch_try_malloc((size_t)1 << 40, 0, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  hipmm_torch_memory_fraction(0.5, 0);
  assert_int_equal(hipmm_torch_try_malloc(129 * BYTES, 0, NULL, &ptr), HIPMM_E_LIMIT);
  assert_contains(hipmm_last_error_message(), "memory fraction");
  assert_int_equal(hipmm_torch_try_malloc(BYTES, 1000, NULL, &ptr), HIPMM_E_NO_DEVICE);
  assert_int_equal(hipmm_torch_try_malloc(BYTES, 0, NULL, NULL), HIPMM_E_ARGUMENT);
  assert_int_equal(error_failed_allocations(&first), failed);
  hipmm_torch_on_failure(NULL);
  assert_memory(0, 0, BYTES);
}

static void gives_back_what_a_failed_allocation_counted(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'pool', 'maximum_size': '8MiB'}, 'device']");
  hipmm_torch_memory_fraction(0.5, 0);
  for (int i = 0; i < 100; i++) assert_null(hipmm_torch_malloc(100 * BYTES, 0, NULL));
  hipmm_torch_free(torch_allocate(8 * BYTES, NULL), 8 * BYTES, 0, NULL);
}

static void keeps_a_lower_maximum_of_the_graph(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'pool', 'maximum_size': '64MiB'}, 'device']");
  for (int turn = 0; turn < 3; turn++) {
    hipmm_torch_memory_fraction((const double[]){0.5, 0.125, 1}[turn], 0);
    assert_null(hipmm_torch_malloc((turn == 1 ? 33 : 65) * BYTES, 0, NULL));
    logged();
    hipmm_torch_free(torch_allocate((turn == 1 ? 32 : 64) * BYTES, NULL), 0, 0, NULL);
    hipmm_torch_reset();
  }
  assert_ok(hipmm_set("devices/0/pool/maximum_size", "1MiB"));
  hipmm_torch_memory_fraction(0.5, 0);
  void *all = torch_allocate(64 * BYTES, NULL);
  assert_null(hipmm_torch_malloc(BYTES, 0, NULL));
  const char *text = logged();
  assert_contains(text, "maximum_size 64 MiB is reached");
  assert_contains(text, "the memory fraction is 128 MiB");
  hipmm_torch_free(all, 64 * BYTES, 0, NULL);
}

enum { THREADS = 4, EACH = 16 };

/* All threads together want exactly what the fraction allows, again and again. */
static void take_a_share(int *failures)
{
  void *blocks[EACH];
  for (int round = 0; round < 200; round++) {
    for (int i = 0; i < EACH; i++) *failures += !(blocks[i] = hipmm_torch_malloc(BYTES, 0, NULL));
    for (int i = 0; i < EACH; i++) hipmm_torch_free(blocks[i], BYTES, 0, NULL);
  }
}

static void never_fails_below_the_fraction(void **state)
{
  (void)state;
  fixture_start(stack);
  hipmm_torch_memory_fraction(0.25, 0); /* 64 MiB */
  fixture_run_threads(THREADS, take_a_share);
  void *all = torch_allocate(64 * BYTES, NULL); /* nothing is still counted */
  assert_null(hipmm_torch_malloc(1, 0, NULL));
  hipmm_torch_free(all, 64 * BYTES, 0, NULL);
}

/* ---- Threads ---- */

struct worker {
  pthread_t thread;
  hipmm_stream_t streams[2];
  unsigned failures;
  unsigned char tag;
};

/* Blocks that two streams of the thread use. */
static void *work(void *argument)
{
  struct worker *worker = argument;
  struct hipmm_torch_pool pool = {0, worker->tag};
  for (int i = 0; i < 300; i++) {
    ssize_t bytes = 256 * (1 + (i * 37 + worker->tag) % 100);
    hipmm_stream_t owner = worker->streams[i % 2];
    if (i % 50 == 20) hipmm_torch_begin_allocate_to_pool(0, pool, NULL);
    if (i % 50 == 30) hipmm_torch_end_allocate_to_pool(0, pool);
    if (i % 50 == 40) hipmm_torch_release_pool(0, pool);
    unsigned char *block = hipmm_torch_malloc(bytes, 0, owner);
    if (!block) {
      worker->failures++;
      continue;
    }
    memset(block, worker->tag, (size_t)bytes);
    if (i % 3 == 0) hipmm_torch_record_stream(block, worker->streams[(i + 1) % 2]);
    for (ssize_t at = 0; at < bytes; at += 64) worker->failures += block[at] != worker->tag;
    hipmm_torch_free(block, bytes, 0, owner);
  }
  return NULL;
}

static void serves_threads(void **state)
{
  (void)state;
  struct worker workers[THREADS] = {0};
  fixture_start(stack);
  for (int i = 0; i < THREADS; i++) {
    workers[i].tag = (unsigned char)(i + 1);
    workers[i].streams[0] = fixture_stream();
    workers[i].streams[1] = fixture_stream();
  }
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(workers[i].thread, NULL);
  for (int i = 0; i < THREADS; i++) assert_int_equal(workers[i].failures, 0);
  assert_not_logged();
  hipmm_torch_reset();
  assert_int_equal(fixture_held_bytes(), 0); /* every block came back, those of the pools as well */
  for (int i = 0; i < 2 * THREADS; i++) fixture_drop_stream(workers[i / 2].streams[i % 2]);
}

/* ---- Private pools ---- */

static const struct hipmm_torch_pool one = {0, 1}, two = {2, 0};

/* What `hipmm top` shows of the pools. */
static void assert_published(int64_t blocks, int64_t idle_bytes)
{
  struct live_file *file = aligned_alloc(_Alignof(struct live_file), sizeof *file);
  const struct live_row *found = NULL;
  assert_non_null(file);
  memset(file, 0, sizeof *file);
  publish_fill(file);
  for (uint32_t i = 0; i < file->n_rows; i++)
    if (!strcmp(file->rows[i].path, "devices/0/private_pools")) found = &file->rows[i];
  assert_non_null(found);
  assert_int_equal(found->counters[LIVE_BLOCKS], blocks);
  assert_int_equal(found->counters[LIVE_RESERVED], idle_bytes);
  free(file);
}

static void keeps_the_memory_of_a_graph(void **state)
{
  (void)state;
  fixture_start(stack);
  hipmm_stream_t stream = fixture_stream(), other = fixture_stream();
  hipmm_torch_begin_allocate_to_pool(0, one, NULL);
  void *freed = torch_allocate(BYTES, stream), *live = torch_allocate(BYTES, stream);
  hipmm_torch_free(freed, BYTES, 0, stream);
  assert_ptr_not_equal(torch_allocate(BYTES, other), freed);
  assert_ptr_not_equal(torch_allocate(BYTES - 1, stream), freed);
  assert_ptr_equal(torch_allocate(BYTES, stream), freed);
  hipmm_torch_free(freed, BYTES, 0, stream);
  hipmm_torch_end_allocate_to_pool(0, one);
  assert_published(3, BYTES);
  assert_null(hipmm_torch_malloc((ssize_t)1 << 50, 0, stream));
  assert_logged("of what is used, private pools keep 1 MiB idle for their captured graphs");
  hipmm_torch_free(live, BYTES, 0, stream); /* a graph's output */
  for (int i = 0; i < 10; i++) {
    void *block = torch_allocate(BYTES, stream);
    assert_ptr_not_equal(block, freed);
    assert_ptr_not_equal(block, live);
  }
  assert_not_logged();
  hipmm_torch_free(freed, BYTES, 0, stream);
  assert_logged("was freed before");
  hipmm_torch_release_pool(0, one);
  void *blocks[2] = {torch_allocate(BYTES, stream), torch_allocate(BYTES, stream)};
  assert_true(blocks[0] == freed || blocks[1] == freed);
  assert_true(blocks[0] == live || blocks[1] == live);
  fixture_drop_stream(stream);
  fixture_drop_stream(other);
}

/* The pool would give the block out again as one of that size. */
static void a_pool_keeps_no_block_of_a_wrong_size(void **state)
{
  (void)state;
  fixture_start(stack);
  hipmm_torch_begin_allocate_to_pool(0, one, NULL);
  void *block = torch_allocate(512, NULL), *next = torch_allocate(512, NULL);
  hipmm_torch_free(block, 1 << 20, 0, NULL);
  assert_logged("was allocated with 512 bytes and cannot be freed with 1048576");
  void *large = torch_allocate(1 << 20, NULL);
  assert_ptr_not_equal(large, block);
  hipmm_torch_free(block, 511, 0, NULL);
  assert_logged("cannot be freed with 511");
  hipmm_torch_free(block, 512, 0, NULL); /* it was the pool's all the while */
  assert_ptr_equal(torch_allocate(512, NULL), block);
  hipmm_torch_end_allocate_to_pool(0, one);
  hipmm_torch_free(large, 1 << 20, 0, NULL);
  hipmm_torch_free(block, 0, 0, NULL);
  hipmm_torch_free(next, 512, 0, NULL);
  hipmm_torch_release_pool(0, one);
  hipmm_torch_reset();
  assert_int_equal(fixture_held_bytes(), 0);
}

/* Of a resource that cannot tell whether a block is live. */
static void a_pool_keeps_blocks_of_a_mute_resource(void **state)
{
  (void)state;
  fixture_start("'stack': ['mute']");
  hipmm_torch_begin_allocate_to_pool(0, one, NULL);
  void *block = torch_allocate(512, NULL);
  hipmm_torch_free(block, 512, 0, NULL);
  assert_ptr_equal(torch_allocate(512, NULL), block);
  hipmm_torch_free(block, 512, 0, NULL);
  hipmm_torch_end_allocate_to_pool(0, one);
  hipmm_torch_release_pool(0, one);
  assert_not_logged();
}

/* ---- One block that is freed twice ---- */

static void *twice;                /* the block of the round */
static atomic_uint rounds, freers; /* the round, and how many threads have freed the block of a round */

enum { ROUNDS = 3000, FREERS = 2 };

static void *free_each_round(void *argument)
{
  (void)argument;
  for (unsigned round = 1; round <= ROUNDS; round++) {
    while (atomic_load(&rounds) < round) sched_yield();
    hipmm_torch_free(twice, 512, 0, NULL);
    atomic_fetch_add(&freers, 1);
  }
  return NULL;
}

/* The first free leaves the block with its pool, and the second is refused: neither reaches the resource. */
static void a_pool_keeps_a_block_that_two_threads_free(void **state)
{
  (void)state;
  unsigned lost = 0, moved = 0;
  pthread_t threads[FREERS];
  fixture_start(stack);
  atomic_store(&rounds, 0);
  atomic_store(&freers, 0);
  hipmm_torch_begin_allocate_to_pool(0, one, NULL);
  twice = torch_allocate(512, NULL);
  for (int i = 0; i < FREERS; i++) assert_int_equal(pthread_create(&threads[i], NULL, free_each_round, NULL), 0);
  for (unsigned round = 1; round <= ROUNDS; round++) {
    atomic_fetch_add(&rounds, 1);
    while (atomic_load(&freers) < FREERS * round) sched_yield();
    lost += hipmm_torch_base_alloc(twice, NULL) != twice;
    void *again = torch_allocate(512, NULL);
    moved += again != twice;
    twice = again;
  }
  for (int i = 0; i < FREERS; i++) pthread_join(threads[i], NULL);
  assert_int_equal(lost, 0);
  assert_int_equal(moved, 0);
  assert_logged("was freed before");
  hipmm_torch_free(twice, 512, 0, NULL);
  hipmm_torch_release_pool(0, one);
  hipmm_torch_reset();
  assert_int_equal(fixture_held_bytes(), 0);
}

/* hipmm_deallocate() knows nothing of private pools; what it freed is the resource's to give out. */
static void a_pool_gives_out_no_block_that_was_freed_past_it(void **state)
{
  (void)state;
  struct hipmm_resource *resource;
  void *next = NULL;
  fixture_start(stack);
  assert_ok(hipmm_resource_get_for_device(0, &resource));
  hipmm_torch_begin_allocate_to_pool(0, one, NULL);
  void *block = torch_allocate(512, NULL);
  hipmm_torch_free(block, 512, 0, NULL);
  assert_ok(hipmm_deallocate(resource, block, 512, NULL));
  void *first = torch_allocate(512, NULL);
  assert_logged("was freed by other means than hipmm_torch_free()");
  assert_ok(hipmm_allocate(resource, 512, NULL, &next));
  assert_ptr_not_equal(first, next);
  assert_ok(hipmm_deallocate(resource, next, 512, NULL));
  hipmm_torch_free(first, 512, 0, NULL);
  assert_not_logged();
  hipmm_torch_release_pool(0, one);
  hipmm_resource_release(resource);
  hipmm_torch_reset();
  assert_int_equal(fixture_held_bytes(), 0);
}

/* Nor is it forgotten which further streams use a block. */
static void a_wrong_size_leaves_the_streams_of_a_block(void **state)
{
  (void)state;
  atomic_uint lost = 0;
  fixture_start_with("'scheduler': 'stepped'", stack);
  hipmm_stream_t stream = fixture_stream(), other = fixture_stream();
  for (int round = 0; round < 10; round++) {
    void *block = torch_allocate(BYTES, stream);
    assert_int_equal(fixture_hip()->StreamSynchronize(stream), 0);
    hipmm_torch_record_stream(block, other);
    hipmm_torch_free(block, BYTES + 1, 0, stream);
    assert_logged("cannot be freed with");
    assert_int_equal(fixture_hip()->MemsetAsync(block, 1, BYTES, other), 0);
    assert_int_equal(fixture_look(block, 1, BYTES, other, &lost), 0);
    hipmm_torch_free(block, BYTES, 0, stream);
    void *second = torch_allocate(BYTES, stream);
    assert_int_equal(fixture_hip()->MemsetAsync(second, 2, BYTES, stream), 0);
    assert_true(fixture_holds(second, 2, BYTES));
    hipmm_torch_free(second, BYTES, 0, stream);
  }
  assert_int_equal(lost, 0);
  fixture_drop_stream(stream);
  fixture_drop_stream(other);
}

static void frees_what_outlives_its_pool(void **state)
{
  (void)state;
  fixture_start(stack);
  hipmm_torch_begin_allocate_to_pool(0, one, NULL);
  void *block = torch_allocate(BYTES, NULL);
  hipmm_torch_end_allocate_to_pool(0, one);
  hipmm_torch_begin_allocate_to_pool(0, one, NULL); /* a second graph shares it */
  hipmm_torch_end_allocate_to_pool(0, one);
  hipmm_torch_release_pool(0, one);
  void *shared = torch_allocate(BYTES, NULL);
  hipmm_torch_free(shared, BYTES, 0, NULL);
  hipmm_torch_release_pool(0, one);
  hipmm_torch_release_pool(0, one); /* once too often */
  hipmm_torch_free(block, BYTES, 0, NULL);
  hipmm_torch_reset();
  assert_int_equal(fixture_held_bytes(), 0);
  assert_not_logged();
}

static void allocates_for_the_pool_begun_last(void **state)
{
  (void)state;
  fixture_start(stack);
  hipmm_torch_begin_allocate_to_pool(0, one, NULL);
  hipmm_torch_begin_allocate_to_pool(0, two, NULL);
  void *second = torch_allocate(BYTES, NULL);
  hipmm_torch_end_allocate_to_pool(0, two);
  void *first = torch_allocate(BYTES, NULL);
  hipmm_torch_end_allocate_to_pool(0, one);
  hipmm_torch_free(first, BYTES, 0, NULL);
  hipmm_torch_free(second, BYTES, 0, NULL);
  hipmm_torch_release_pool(0, two);
  assert_ptr_equal(torch_allocate(BYTES, NULL), second);
  assert_ptr_not_equal(torch_allocate(BYTES, NULL), first);
  hipmm_torch_release_pool(0, one);
  hipmm_torch_end_allocate_to_pool(0, two);
  hipmm_torch_end_allocate_to_pool(5, two);
  assert_not_logged();
}

/* ---- Captures ---- */

static void begin_capture(struct graph_functions *graphs, hipmm_stream_t stream)
{
  assert_true(graph_functions_find(graphs));
  assert_int_equal(graphs->begin(stream, GRAPH_MODE_GLOBAL), 0);
}

static void end_capture(const struct graph_functions *graphs, hipmm_stream_t stream)
{
  void *graph = NULL;
  assert_int_equal(graphs->end(stream, &graph), 0);
  assert_int_equal(graphs->destroy_graph(graph), 0);
}

/* An event that is recorded on a captured stream, or that the stream waits for, would be a part of the graph. */
static void puts_waiting_off_until_the_end(void **state)
{
  (void)state;
  struct graph_functions graphs;
  fixture_start(stack);
  hipmm_stream_t stream = fixture_stream(), other = fixture_stream();
  void *before = torch_allocate(BYTES, stream);
  hipmm_torch_record_stream(before, other);
  hipmm_torch_begin_allocate_to_pool(0, one, NULL);
  begin_capture(&graphs, stream);
  void *inside = torch_allocate(BYTES, stream);
  hipmm_torch_record_stream(inside, other);
  software()->reset_calls();
  hipmm_torch_free(before, BYTES, 0, stream);
  hipmm_torch_free(inside, BYTES, 0, stream);
  assert_ptr_not_equal(torch_allocate(BYTES, stream), inside);
  hipmm_torch_end_allocate_to_pool(0, one);
  hipmm_torch_reset();
  assert_logged("a graph is being captured");
  assert_int_equal(software()->calls("hipEventRecord"), 0);
  end_capture(&graphs, stream);
  hipmm_torch_reset();
  assert_int_equal(software()->calls("hipEventRecord"), 1);
  assert_ptr_equal(torch_allocate(BYTES, stream), before);
  hipmm_torch_release_pool(0, one);
  assert_int_equal(software()->calls("hipEventRecord"), 2);
  assert_ptr_equal(torch_allocate(BYTES, stream), inside);
  assert_not_logged();
  fixture_drop_stream(stream);
  fixture_drop_stream(other);
}

/* No private pool is needed for that. A successor with the stream's handle must not be taken for it: it is captured, and keeps
 * nothing from the resource. */
static void a_retired_stream_leaves_what_waits(void **state)
{
  (void)state;
  struct graph_functions graphs;
  fixture_start_with("'scheduler': 'stepped'", stack);
  hipmm_stream_t owner = fixture_stream(), other = fixture_stream(), before = owner;
  void *block = torch_allocate(BYTES, owner);
  hipmm_torch_record_stream(block, other);
  give_much_work(other, block);
  hipmm_torch_free(block, BYTES, 0, owner);
  assert_ok(hipmm_stream_retire(0, owner));
  fixture_drop_stream(owner);
  owner = fixture_stream();
  assert_ptr_equal(owner, before);
  assert_int_equal(fixture_hip()->StreamSynchronize(other), 0);
  begin_capture(&graphs, owner);
  assert_ptr_equal(torch_allocate(BYTES, NULL), block);
  end_capture(&graphs, owner);
  hipmm_torch_free(block, BYTES, 0, NULL);
  assert_not_logged();
  fixture_drop_stream(owner);
  fixture_drop_stream(other);
}

static void use_most_memory(hipmm_stream_t stream)
{
  hipmm_torch_free(hipmm_torch_malloc(3 * BYTES, 0, stream), 3 * BYTES, 0, stream);
}

/* A retired stream's successor, which has its handle on the software device, is retained too: so it is known to be captured
 * when the other stream can have memory only after a wait for the device. */
static void retains_the_successor_of_a_retired_stream(void **state)
{
  static const char *const types[] = {"'pool', 'growth': 'mapped'", "'pool', 'growth': 'segments'", "'arena'"};
  (void)state;
  for (int i = 0; i < 3; i++) {
    char text[200];
    struct graph_functions graphs;
    snprintf(text, sizeof text, "'stack': [{'type': %s, 'maximum_size': '4MiB'}, 'device']", types[i]);
    fixture_start(text);
    hipmm_stream_t stream = fixture_stream(), other = fixture_stream(), before = stream;
    use_most_memory(stream);
    assert_ok(hipmm_stream_retire(0, stream));
    fixture_drop_stream(stream);
    stream = fixture_stream();
    assert_ptr_equal(stream, before);
    use_most_memory(stream);
    begin_capture(&graphs, stream);
    use_most_memory(other);
    hipmm_torch_reset();
    end_capture(&graphs, stream);
    logged();
    fixture_drop_stream(stream);
    fixture_drop_stream(other);
    assert_ok(hipmm_finalize());
  }
  fixture_start(stack); /* for the teardown */
}

/* Its blocks in private pools, and of blocks that it uses. A later stream with its handle must not take them as its own. */
static void a_retired_stream_leaves_private_pools(void **state)
{
  (void)state;
  atomic_uint lost = 0;
  fixture_start_with("'scheduler': 'stepped'", stack);
  hipmm_stream_t stream = fixture_stream(), before = stream;
  hipmm_torch_begin_allocate_to_pool(0, one, NULL);
  void *block = torch_allocate(BYTES, stream), *used = torch_allocate(BYTES, NULL);
  assert_int_equal(fixture_hip()->MemsetAsync(block, 1, BYTES, stream), 0);
  assert_int_equal(fixture_look(block, 1, BYTES, stream, &lost), 0);
  hipmm_torch_record_stream(used, stream);
  hipmm_torch_free(block, BYTES, 0, stream);
  hipmm_torch_free(used, BYTES, 0, NULL);
  assert_ok(hipmm_stream_retire(0, stream));
  fixture_drop_stream(stream);
  stream = fixture_stream();
  assert_ptr_equal(stream, before);
  void *next = torch_allocate(BYTES, stream);
  assert_true(next != block && next != used);
  void *blocks[2] = {torch_allocate(BYTES, NULL), torch_allocate(BYTES, NULL)};
  assert_true((blocks[0] == block && blocks[1] == used) || (blocks[0] == used && blocks[1] == block));
  assert_int_equal(fixture_hip()->MemsetAsync(block, 2, BYTES, NULL), 0);
  assert_true(fixture_holds(block, 2, BYTES));
  assert_int_equal(lost, 0);
  hipmm_torch_release_pool(0, one);
  assert_not_logged();
  fixture_drop_stream(stream);
}

/* Threads that capture at the same time. */
struct capturing {
  struct hipmm_torch_pool pool;
  pthread_barrier_t *both_have_begun;
  void *block;
};

static void *capture_in_a_thread(void *argument)
{
  struct capturing *capturing = argument;
  hipmm_torch_begin_allocate_to_pool(0, capturing->pool, NULL);
  pthread_barrier_wait(capturing->both_have_begun);
  capturing->block = hipmm_torch_malloc(BYTES, 0, NULL);
  hipmm_torch_free(capturing->block, BYTES, 0, NULL);
  pthread_barrier_wait(capturing->both_have_begun);
  hipmm_torch_end_allocate_to_pool(0, capturing->pool);
  return NULL;
}

static void takes_what_its_own_thread_allocates(void **state)
{
  (void)state;
  pthread_t threads[2];
  pthread_barrier_t barrier;
  struct capturing capturing[2] = {{one, &barrier, NULL}, {two, &barrier, NULL}};
  fixture_start(stack);
  assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
  for (int i = 0; i < 2; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, capture_in_a_thread, &capturing[i]), 0);
  for (int i = 0; i < 2; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  pthread_barrier_destroy(&barrier);
  for (int i = 1; i >= 0; i--) { /* each pool gives its own block back, and the other keeps its own */
    hipmm_torch_release_pool(0, capturing[i].pool);
    assert_ptr_equal(torch_allocate(BYTES, NULL), capturing[i].block);
    void *next = torch_allocate(BYTES, NULL);
    assert_ptr_not_equal(next, capturing[0].block);
    hipmm_torch_free(next, BYTES, 0, NULL);
  }
  assert_not_logged();
}

/* PyTorch calls no end then, and the graph's destructor releases the pool. */
static void takes_only_captures_after_one_that_failed(void **state)
{
  (void)state;
  struct graph_functions graphs;
  fixture_start(stack);
  hipmm_stream_t stream = fixture_stream();
  hipmm_torch_begin_allocate_to_pool(0, one, NULL);
  hipmm_torch_end_allocate_to_pool(0, one);
  hipmm_torch_begin_allocate_to_pool(0, one, NULL);
  void *pooled = torch_allocate(BYTES, stream);
  hipmm_torch_free(pooled, BYTES, 0, stream);
  hipmm_torch_release_pool(0, one);
  for (ssize_t i = 1; i <= 8; i++) hipmm_torch_free(torch_allocate(i * BYTES, stream), i * BYTES, 0, stream);
  hipmm_torch_reset();
  assert_int_equal(fixture_held_bytes(), 2 * BYTES); /* the chunk of the pool's block */
  begin_capture(&graphs, stream); /* or the first graph was released, and the second is still being captured */
  assert_ptr_equal(torch_allocate(BYTES, stream), pooled);
  hipmm_torch_free(pooled, BYTES, 0, stream);
  end_capture(&graphs, stream);
  hipmm_torch_release_pool(0, one);
  hipmm_torch_reset();
  assert_int_equal(fixture_held_bytes(), 0);
  assert_not_logged();
  fixture_drop_stream(stream);
}

/* A begin that is released within another of the pool's is no capture that failed. */
static void nested_begins_of_a_pool_end_one_by_one(void **state)
{
  (void)state;
  fixture_start(stack);
  hipmm_torch_begin_allocate_to_pool(0, one, NULL);
  hipmm_torch_begin_allocate_to_pool(0, one, NULL);
  hipmm_torch_end_allocate_to_pool(0, one);
  hipmm_torch_release_pool(0, one);
  void *block = torch_allocate(BYTES, NULL);
  hipmm_torch_end_allocate_to_pool(0, one);
  hipmm_torch_free(block, BYTES, 0, NULL);
  assert_ptr_not_equal(torch_allocate(BYTES, NULL), block);
  hipmm_torch_release_pool(0, one);
  assert_ptr_equal(torch_allocate(BYTES, NULL), block);
}

/* ---- Failures ---- */

static jmp_buf landing;
static char told[300];

static void leave(const char *message)
{
  snprintf(told, sizeof told, "%s", message);
  longjmp(landing, 1);
}

/* As an exception does. */
static void lets_a_function_leave(void **state)
{
  (void)state;
  fixture_start(stack);
  hipmm_torch_on_failure(leave);
  for (int i = 0; i < 3; i++) {
    told[0] = '\0';
    if (!setjmp(landing)) hipmm_torch_malloc(1000 * BYTES, 0, NULL);
    assert_contains(told, "CUDA out of memory. hipmm: device: ");
    assert_contains(told, "pool: cannot allocate 1000 MiB");
  }
  if (!setjmp(landing)) hipmm_torch_malloc(1000, 77, NULL);
  assert_contains(told, "device 77 does not exist");
  hipmm_torch_free(torch_allocate(BYTES, NULL), BYTES, 0, NULL);
  told[0] = '\0';
  if (!setjmp(landing)) hipmm_torch_malloc(0, 0, NULL);
  assert_string_equal(told, "");
  hipmm_torch_on_failure(NULL);
  assert_null(hipmm_torch_malloc(1000 * BYTES, 0, NULL));
}

static void starts_anew_after_the_end(void **state)
{
  (void)state;
  hipmm_stream_t stream;
  for (int i = 0; i < 3; i++) {
    fixture_start(stack);
    stream = fixture_stream();
    void *block = torch_allocate(BYTES, stream), *kept = torch_allocate(BYTES, stream);
    hipmm_torch_record_stream(block, NULL);
    hipmm_torch_begin_allocate_to_pool(0, one, NULL);
    hipmm_torch_free(torch_allocate(BYTES, stream), BYTES, 0, stream);
    assert_ok(hipmm_finalize());
    logged();                                                                       /* what was still allocated */
    assert_status(hipmm_log_set_level((enum hipmm_log_level)99), HIPMM_E_ARGUMENT); /* whose reason stays */
    hipmm_torch_free(block, BYTES, 0, stream);
    hipmm_torch_free(kept, BYTES, 0, stream);
    hipmm_cupy_free(stream, kept, 0);
    hipmm_torch_release_pool(0, one);
    hipmm_torch_reset();
    hipmm_torch_record_stream(kept, NULL);
    assert_int_equal(hipmm_torch_is_allocation(kept), 0);
    assert_not_logged();
    assert_message("99 is not a level");
    fixture_drop_stream(stream);
  }
}

static int in_a_child(const void *block)
{
  if (hipmm_torch_malloc(1000, 0, NULL)) return 1;
  hipmm_torch_free((void *)(uintptr_t)block, BYTES, 0, NULL);
  hipmm_torch_record_stream((void *)(uintptr_t)block, NULL);
  hipmm_torch_reset();
  hipmm_torch_begin_allocate_to_pool(0, one, NULL);
  if (hipmm_torch_try_malloc(BYTES, 0, NULL, NULL) != HIPMM_E_STATE) return 3;
  return hipmm_cupy_malloc(NULL, 1000, 0) ? 2 : 0;
}

static void refuses_the_child_of_a_fork(void **state)
{
  (void)state;
  fixture_start(stack);
  void *block = torch_allocate(BYTES, NULL);
  assert_int_equal(run_forked(in_a_child, block).status, 0);
  assert_logged("the child of a fork");
  hipmm_torch_free(block, BYTES, 0, NULL);
}

static void *forbidden_block;

static void call_from_a_visitor(void *unused, const struct hipmm_extent *extent)
{
  (void)unused, (void)extent;
  void *refused = hipmm_torch_malloc(1000, 0, NULL);
  hipmm_torch_free(forbidden_block, BYTES, 0, NULL);
  assert_null(refused);
  assert_message("a visitor of blocks");
}

static void refuses_calls_from_a_visitor(void **state)
{
  size_t bytes = 0;
  (void)state;
  fixture_start(stack);
  forbidden_block = torch_allocate(BYTES, NULL);
  assert_ok(hipmm_resource_visit_blocks(NULL, call_from_a_visitor, NULL));
  assert_logged("a visitor of blocks");
  assert_ptr_equal(hipmm_torch_base_alloc(forbidden_block, &bytes), forbidden_block);
  assert_int_equal(bytes, BYTES);
  hipmm_torch_free(forbidden_block, BYTES, 0, NULL);
}

static void says_when_the_devices_differ(void **state)
{
  (void)state;
  fixture_start(stack);
  hipmm_torch_init(0);
  hipmm_torch_init(2);
  assert_not_logged();
  hipmm_torch_init(4);
  assert_logged("PyTorch has 4 devices and the software runtime 2");
}

/* ---- Initialisation, in processes of their own ---- */

static int count_lines(const char *text)
{
  int lines = 0;
  for (; *text; text++) lines += *text == '\n';
  return lines;
}

static void *allocate_and_free(void *unused)
{
  void *block = hipmm_torch_malloc(1000, 0, NULL);
  hipmm_torch_free(block, 1000, 0, NULL);
  return unused;
}

/* Threads first, all at once. */
static int allocate_uninitialised(void)
{
  pthread_t threads[4];
  for (int i = 0; i < 4; i++)
    if (pthread_create(&threads[i], NULL, allocate_and_free, NULL)) return 3;
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < 5; i++) {
    void *block = hipmm_torch_malloc(1000, 0, NULL);
    printf("%s\n", block ? "block" : hipmm_last_error_message());
    hipmm_torch_free(block, 1000, 0, NULL);
  }
  if (!hipmm_runtime() && hipmm_init_from_string("{\"runtime\": \"software\"}")) return 1;
  void *block = hipmm_torch_malloc(1000, 0, NULL); /* the program may do better */
  hipmm_torch_free(block, 1000, 0, NULL);
  return block ? 0 : 2;
}

static sem_t is_opening, may_open;

static void wait_once(void *unused, enum hipmm_log_level level, const char *about, const char *message)
{
  static atomic_bool has_waited;
  (void)unused, (void)level, (void)about, (void)message;
  if (atomic_exchange(&has_waited, true)) return;
  sem_post(&is_opening);
  sem_wait(&may_open);
}

static void *open_first(void *unused)
{
  hipmm_torch_free(hipmm_torch_malloc(1000, 0, NULL), 1000, 0, NULL);
  return unused;
}

static int allocate_at_once(const void *unused)
{
  (void)unused;
  alarm(20);
  return hipmm_torch_malloc(1000, 0, NULL) ? 1 : 0;
}

/* Another thread holds locks of the initialisation, which the child cannot wait for. */
static int fork_while_opening(void)
{
  pthread_t thread;
  sem_init(&is_opening, 0, 0);
  sem_init(&may_open, 0, 0);
  if (hipmm_log_set_sink(wait_once, NULL, HIPMM_LOG_INFO) || pthread_create(&thread, NULL, open_first, NULL)) return 3;
  sem_wait(&is_opening);
  int status = run_forked(allocate_at_once, NULL).status;
  sem_post(&may_open);
  pthread_join(thread, NULL);
  return status || hipmm_finalize();
}

static void a_child_does_not_wait_for_who_initialised(void **state)
{
  (void)state;
  struct outcome outcome = run_again((const char *[]){"fork-while-opening", NULL},
                                     (const char *[]){"HIPMM_RUNTIME=software", "HIPMM_LOG", NULL});
  assert_string_equal(outcome.error, "");
  assert_int_equal(outcome.status, 0);
}

static void initialises_from_the_environment(void **state)
{
  (void)state;
  char *folder = new_folder(), *file = path_in(folder, "g.json"), variable[400];
  static const char graph[] = "{\"runtime\": \"software\", \"stack\": [\"pool\", \"device\"]}";
  assert_true(write_file(file, graph, sizeof graph - 1));
  snprintf(variable, sizeof variable, "HIPMM_CONFIG=%s", file);
  struct outcome outcome = run_again((const char *[]){"uninitialised", NULL},
                                     (const char *[]){variable, "HIPMM_LOG", "HIPMM_RUNTIME", NULL});
  assert_string_equal(outcome.error, "");
  assert_string_equal(outcome.out, "block\nblock\nblock\nblock\nblock\n");
  assert_int_equal(outcome.status, 0);
  free(file);
  remove_folder(folder);
}

static void says_once_why_it_cannot_initialise(void **state)
{
  (void)state;
  struct outcome outcome =
      run_again((const char *[]){"uninitialised", NULL},
                (const char *[]){"HIPMM_CONFIG=/nowhere/hipmm.json", "HIPMM_LOG", "HIPMM_RUNTIME", NULL});
  assert_contains(outcome.error, "hipmm: error: cannot be initialised, so no memory can be allocated: "
                                 "HIPMM_CONFIG: /nowhere/hipmm.json: cannot be read: No such file or directory");
  assert_int_equal(count_lines(outcome.error), 1);
  assert_contains(outcome.out, "/nowhere/hipmm.json: cannot be read");
  assert_null(strstr(outcome.out, "block"));
  assert_int_equal(count_lines(outcome.out), 5);
  assert_int_equal(outcome.status, 0);
}

/* ---- CuPy ---- */

static void serves_cupy(void **state)
{
  (void)state;
  static char foreign[256];
  fixture_start(stack);
  hipmm_stream_t stream = fixture_stream();
  assert_null(hipmm_cupy_malloc(stream, 0, 0));
  unsigned char *block = hipmm_cupy_malloc(stream, 1000, 0);
  assert_non_null(block);
  memset(block, 1, 1000);
  hipmm_cupy_free(stream, block, 0);
  assert_ptr_equal(hipmm_cupy_malloc(stream, 1000, 0), block);
  hipmm_cupy_free(stream, block, 0);
  hipmm_cupy_free(stream, NULL, 0);
  assert_not_logged();
  hipmm_cupy_free(stream, block, 0);
  assert_logged("cupy: a block is not freed");
  hipmm_cupy_free(stream, foreign, 0);
  assert_logged("cupy: a block is not freed");
  assert_null(hipmm_cupy_malloc(stream, SIZE_MAX, 0));
  assert_logged("cupy: cannot allocate");
  assert_null(hipmm_cupy_malloc(stream, 1000, 9));
  assert_logged("device 9 does not exist");
  fixture_drop_stream(stream);
}

/* ---- The resource in force ---- */

static struct hipmm_resource *make_current(const char *name)
{
  struct hipmm_resource *resource;
  assert_ok(hipmm_resource_get_by_name(0, name, &resource));
  assert_ok(hipmm_resource_set_for_device(0, resource, NULL));
  return resource;
}

static void start_with_weights(void)
{
  fixture_start(
      "'resources': {'memory': {'type': 'device'}, 'first': {'type': 'pool', 'upstream': 'memory'}, 'weights': "
      "{'type': 'pool', 'upstream': 'memory'}, 'main': {'type': 'fallback', 'upstream': ['first', 'weights']}}, "
      "'devices': {'default': 'main'}");
}

/* The resource in force counts at each allocation, and a block goes back to where it is from. */
static void follows_the_current_resource(void **state)
{
  (void)state;
  size_t bytes;
  start_with_weights();
  void *first = torch_allocate(BYTES, NULL);
  hipmm_resource_release(make_current("weights"));
  void *second = torch_allocate(BYTES, NULL), *third = hipmm_cupy_malloc(NULL, 3000, 0);
  assert_int_equal(fixture_value("first", "live_count"), 1);
  assert_int_equal(fixture_value("weights", "live_count"), 2);
  assert_ptr_equal(hipmm_torch_base_alloc(second, &bytes), second);
  assert_int_equal(bytes, BYTES);
  hipmm_torch_free(second, BYTES * 2, 0, NULL);
  assert_logged("a block is not freed");
  assert_null(hipmm_torch_malloc(1000 * BYTES, 0, NULL));
  assert_logged("torch: cannot allocate");
  assert_null(hipmm_cupy_malloc(NULL, (size_t)(1000 * BYTES), 0));
  assert_logged("cupy: cannot allocate");
  assert_memory(0, 2 * BYTES, 2 * BYTES);
  assert_ok(hipmm_resource_reset_for_device(0));
  void *fourth = torch_allocate(BYTES, NULL);
  assert_int_equal(fixture_value("first", "live_count"), 2);
  hipmm_torch_free(second, 0, 0, NULL);
  hipmm_cupy_free(NULL, third, 0);
  assert_int_equal(fixture_value("weights", "live_count"), 0);
  hipmm_torch_free(first, BYTES, 0, NULL);
  hipmm_torch_free(fourth, BYTES, 0, NULL);
  assert_int_equal(fixture_value("first", "live_count"), 0);
  hipmm_resource_release(make_current("weights"));
  hipmm_torch_reset();
  assert_int_equal(fixture_value("weights", "reserved_bytes"), 0);
  assert_int_equal(fixture_value("first", "reserved_bytes"), 0);
  hipmm_torch_free(second, BYTES, 0, NULL);
  assert_logged("a block is not freed");
}

/* Blocks of a resource that only was in force for a while stay, and go back to it. */
static void a_resource_of_blocks_lives_on(void **state)
{
  (void)state;
  struct hipmm_resource *memory = NULL, *pool = NULL;
  start_with_weights();
  void *first = torch_allocate(BYTES, NULL);
  assert_ok(hipmm_resource_get_by_name(0, "memory", &memory));
  assert_ok(hipmm_resource_create(0, "pool", NULL, &memory, 1, &pool));
  assert_ok(hipmm_resource_set_for_device(0, pool, NULL));
  hipmm_resource_release(pool);
  void *second = torch_allocate(BYTES, NULL);
  for (int i = 0; i < 3; i++) assert_ok(hipmm_resource_reset_for_device(0));
  assert_string_equal(hipmm_resource_type(pool), "pool");
  fixture_fill(second, 5, BYTES);
  assert_true(fixture_holds(second, 5, BYTES));
  hipmm_torch_free(second, BYTES, 0, NULL);
  hipmm_torch_free(first, BYTES, 0, NULL);
  hipmm_resource_release(memory);
  assert_not_logged();
}

/* What a private pool keeps goes back to where it is from as well. */
static void a_pool_may_have_blocks_of_several_resources(void **state)
{
  (void)state;
  const struct hipmm_torch_pool id = {3, 4};
  start_with_weights();
  hipmm_torch_begin_allocate_to_pool(0, id, NULL);
  void *first = torch_allocate(BYTES, NULL);
  hipmm_resource_release(make_current("weights"));
  void *second = torch_allocate(2 * BYTES, NULL);
  hipmm_torch_free(first, BYTES, 0, NULL);
  hipmm_torch_free(second, 2 * BYTES, 0, NULL);
  assert_ptr_equal(torch_allocate(2 * BYTES, NULL), second);
  hipmm_torch_free(second, 2 * BYTES, 0, NULL);
  hipmm_torch_end_allocate_to_pool(0, id);
  hipmm_torch_release_pool(0, id);
  assert_int_equal(fixture_value("first", "live_count"), 0);
  assert_int_equal(fixture_value("weights", "live_count"), 0);
  assert_not_logged();
}

/* Without a limit or a line of the test before. */
static int setup(void **state)
{
  hipmm_torch_on_failure(NULL);
  fixture_start(stack);
  hipmm_torch_memory_fraction(1, 0);
  assert_ok(hipmm_finalize());
  logged();
  return fixture_setup(state);
}

#define fixture_test(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)

int main(int n_arguments, char **arguments)
{
  if (n_arguments == 2 && !strcmp(arguments[1], "uninitialised")) return allocate_uninitialised();
  if (n_arguments == 2 && !strcmp(arguments[1], "fork-while-opening")) return fork_while_opening();
  use_test_plugins();
  log_to_file("warning");
  const struct CMUnitTest tests[] = {
      fixture_test(frees_after_the_work_of_recorded_streams),
      fixture_test(would_notice_a_missing_wait),
      fixture_test(waits_where_events_fail),
      fixture_test(a_retired_stream_leaves_what_waits), /* before a private pool is begun */
      fixture_test(does_not_wait_itself),
      fixture_test(makes_no_stream_wait_that_need_not),
      fixture_test(frees_what_waits_at_the_end),
      fixture_test(records_streams_of_other_devices),
      fixture_test(ignores_records_of_foreign_memory),
      fixture_test(finds_a_stream_without_a_write),
      fixture_test(promises_each_stream),
      fixture_test(lives_with_many_streams),
      fixture_test(retains_each_stream_once),
      fixture_test(maps_memory_for_pytorch_alone),
      fixture_test(minds_sizes),
      fixture_test(minds_devices),
      fixture_test(refuses_wrong_frees),
      fixture_test(tells_blocks),
      fixture_test(knows_what_begins_an_allocation),
      fixture_test(gives_idle_memory_back),
      fixture_test(tells_what_is_live_and_its_peak),
      fixture_test(keeps_to_the_fraction),
      fixture_test(tries_without_a_word),
      fixture_test(gives_back_what_a_failed_allocation_counted),
      fixture_test(never_fails_below_the_fraction),
      fixture_test(keeps_a_lower_maximum_of_the_graph),
      fixture_test(serves_threads),
      fixture_test(keeps_the_memory_of_a_graph),
      fixture_test(a_pool_keeps_no_block_of_a_wrong_size),
      fixture_test(a_pool_keeps_blocks_of_a_mute_resource),
      fixture_test(a_pool_keeps_a_block_that_two_threads_free),
      fixture_test(a_pool_gives_out_no_block_that_was_freed_past_it),
      fixture_test(a_wrong_size_leaves_the_streams_of_a_block),
      fixture_test(frees_what_outlives_its_pool),
      fixture_test(allocates_for_the_pool_begun_last),
      fixture_test(puts_waiting_off_until_the_end),
      fixture_test(retains_the_successor_of_a_retired_stream),
      fixture_test(a_retired_stream_leaves_private_pools),
      fixture_test(takes_what_its_own_thread_allocates),
      fixture_test(takes_only_captures_after_one_that_failed),
      fixture_test(nested_begins_of_a_pool_end_one_by_one),
      fixture_test(lets_a_function_leave),
      fixture_test(starts_anew_after_the_end),
      fixture_test(refuses_the_child_of_a_fork),
      fixture_test(refuses_calls_from_a_visitor),
      fixture_test(says_when_the_devices_differ),
      cmocka_unit_test(a_child_does_not_wait_for_who_initialised),
      cmocka_unit_test(initialises_from_the_environment),
      cmocka_unit_test(says_once_why_it_cannot_initialise),
      fixture_test(serves_cupy),
      fixture_test(follows_the_current_resource),
      fixture_test(a_resource_of_blocks_lives_on),
      fixture_test(a_pool_may_have_blocks_of_several_resources),
  };
  return cmocka_run_group_tests_name("torch", tests, NULL, NULL);
}
