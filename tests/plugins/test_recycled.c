/* SPDX-License-Identifier: MIT */
/* test_recycled.c: streams that a program destroys without a word while their work is still to run. HIP gives the
 * handle to the next stream at once; what was freed on the old one must not reach work on the new one too early. */
#include "../support/fixture.h"
#include "../support/random.h"

#include <stdio.h>
#include <string.h>

#define BYTES ((size_t)1 << 16)

enum { OLD = 0x11, NEW = 0x22 };

/* Fills a block on `stream` with `value`, much later. */
static void fill(void *block, int value, hipmm_stream_t stream)
{
  assert_int_equal(fixture_hip()->MemsetAsync(block, value, BYTES, stream), 0);
}

/* A stream with the handle that was destroyed last. */
static hipmm_stream_t successor_of(hipmm_stream_t old)
{
  hipmm_stream_t stream;
  assert_int_equal(fixture_hip()->StreamCreateWithFlags(&stream, HIPMM_HIP_STREAM_NON_BLOCKING), 0);
  if (on_software()) assert_ptr_equal(stream, old);
  return stream;
}

/* The old stream fills a block and frees it, and is destroyed before that has run. Whatever block the new one gets and
 * fills must hold what the new one wrote, once both have run. */
static void old_work_never_reaches_new_blocks(void)
{
  const struct hipmm_hip *hip = fixture_hip();
  for (int round = 0; round < 20; round++) {
    hipmm_stream_t old = fixture_stream();
    void *first = fixture_allocate(BYTES, old);
    fill(first, OLD, old);
    fixture_free(first, BYTES, old);
    assert_int_equal(hip->StreamDestroy(old), 0);
    hipmm_stream_t new = successor_of(old);
    void *second = fixture_allocate(BYTES, new);
    fill(second, NEW, new);
    assert_int_equal(hip->DeviceSynchronize(), 0);
    assert_true(fixture_holds(second, NEW, BYTES));
    fixture_free(second, BYTES, new);
    assert_int_equal(hip->StreamDestroy(new), 0);
  }
  assert_int_equal(faults_on_all_devices(), 0);
}

/* The same after a stream with the same handle that was retained, used, retired and destroyed: what the thread and the
 * resource know of that one must not hold for the streams that come after it. */
static void a_promise_ends_with_its_stream(void)
{
  const struct hipmm_hip *hip = fixture_hip();
  hipmm_stream_t retained = fixture_stream();
  assert_ok(hipmm_stream_retain(0, retained));
  for (int i = 0; i < 2; i++) fixture_free(fixture_allocate(BYTES, retained), BYTES, retained);
  assert_ok(hipmm_stream_retire(0, retained));
  assert_int_equal(hip->StreamDestroy(retained), 0);
  old_work_never_reaches_new_blocks();
}

/* The same where HIP could wait neither for the stream that is retired nor for the device. */
static void a_promise_ends_though_hip_cannot_wait(void)
{
  const struct hipmm_hip *hip = fixture_hip();
  for (int round = 0; round < 20; round++) {
    hipmm_stream_t retained = fixture_stream();
    assert_ok(hipmm_stream_retain(0, retained));
    void *first = fixture_allocate(BYTES, retained);
    fill(first, OLD, retained);
    fixture_free(first, BYTES, retained);
    fixture_fail_call("hipStreamSynchronize", 1, 0);
    fixture_fail_call("hipDeviceSynchronize", 1, 0);
    assert_ok(hipmm_stream_retire(0, retained));
    assert_int_equal(hip->StreamDestroy(retained), 0);
    hipmm_stream_t new = successor_of(retained);
    void *second = fixture_allocate(BYTES, new);
    fill(second, NEW, new);
    while (hip->DeviceSynchronize()) {
    } /* the first may be the one that fails */
    assert_true(fixture_holds(second, NEW, BYTES));
    fixture_free(second, BYTES, new);
    assert_int_equal(hip->StreamDestroy(new), 0);
  }
  assert_int_equal(faults_on_all_devices(), 0);
}

/* A stream is destroyed without a word, and the next with its handle is retired: that says nothing of the first one's
 * work. */
static void a_retired_stream_is_not_taken_for_a_lost_one(void)
{
  const struct hipmm_hip *hip = fixture_hip();
  hipmm_stream_t other = fixture_stream();
  for (int round = 0; round < 20; round++) {
    hipmm_stream_t lost = fixture_stream();
    void *first = fixture_allocate(BYTES, lost);
    fill(first, OLD, lost);
    fixture_free(first, BYTES, lost);
    assert_int_equal(hip->StreamDestroy(lost), 0);
    hipmm_stream_t new = successor_of(lost);
    assert_ok(hipmm_stream_retire(0, new));
    assert_int_equal(hip->StreamDestroy(new), 0);
    void *second = fixture_allocate(BYTES, other);
    fill(second, NEW, other);
    assert_int_equal(hip->DeviceSynchronize(), 0);
    assert_true(fixture_holds(second, NEW, BYTES));
    fixture_free(second, BYTES, other);
  }
  fixture_drop_stream(other);
}

/* ---- Streams of all kinds, in a random order ---- */

enum { THREAD_SLOTS = 4, MOST_LIVE = 12, STEPS = 600 };

struct slot {
  hipmm_stream_t stream;
  bool is_retained;
};

struct live_blocks {
  void *ptr;
  unsigned slot;
  unsigned char tag;
};

static struct slot slots[THREAD_SLOTS];
static struct live_blocks live[MOST_LIVE];
static unsigned n_live;
static atomic_uint n_wrong; /* blocks that had changed when their stream looked */

static void open_slot(struct slot *slot, bool is_retained)
{
  *slot = (struct slot){fixture_stream(), is_retained};
  if (is_retained) assert_ok(hipmm_stream_retain(0, slot->stream));
}

static void take_block(unsigned slot, unsigned char tag)
{
  if (n_live == MOST_LIVE) return;
  struct live_blocks *block = &live[n_live++];
  *block = (struct live_blocks){fixture_allocate(BYTES, slots[slot].stream), slot, tag};
  fill(block->ptr, tag, slots[slot].stream);
}

static void give_block(unsigned index)
{
  const struct live_blocks block = live[index];
  hipmm_stream_t stream = slots[block.slot].stream;
  assert_int_equal(fixture_look(block.ptr, block.tag, BYTES, stream, &n_wrong), 0);
  fixture_free(block.ptr, BYTES, stream);
  live[index] = live[--n_live];
}

/* A retained stream is retired, any other destroyed without a word; `waits`: once its work is done. */
static void close_slot(unsigned slot, bool waits)
{
  for (unsigned i = n_live; i-- > 0;)
    if (live[i].slot == slot) give_block(i);
  if (waits) assert_int_equal(fixture_hip()->StreamSynchronize(slots[slot].stream), 0);
  if (slots[slot].is_retained) assert_ok(hipmm_stream_retire(0, slots[slot].stream));
  fixture_drop_stream(slots[slot].stream);
}

static void streams_come_and_go(void)
{
  static uint64_t random = 1; /* goes on from run to run */
  n_live = 0;
  atomic_store(&n_wrong, 0);
  for (unsigned i = 0; i < THREAD_SLOTS; i++) open_slot(&slots[i], i % 2);
  for (unsigned step = 0; step < STEPS; step++) {
    unsigned slot = (unsigned)random_below(&random, THREAD_SLOTS), what = (unsigned)random_below(&random, 8);
    if (what < 4) {
      take_block(slot, (unsigned char)step);
    } else if (what < 7) {
      if (n_live) give_block((unsigned)random_below(&random, n_live));
    } else {
      close_slot(slot, random_below(&random, 2));
      open_slot(&slots[slot], random_below(&random, 2));
    }
  }
  for (unsigned i = 0; i < THREAD_SLOTS; i++) close_slot(i, false);
  assert_int_equal(fixture_hip()->DeviceSynchronize(), 0);
  assert_int_equal(n_wrong, 0);
  assert_int_equal(faults_on_all_devices(), 0);
}

/* Every type that reuses free blocks in stream order. */
static const struct stack {
  const char *name, *graph;
} stacks[] = {
    {"pool", "'stack': [{'type': 'pool', 'growth': 'mapped'}, 'device']"},
    {"pool, on_free", "'stack': [{'type': 'pool', 'growth': 'mapped', 'record': 'on_free'}, 'device']"},
    {"pool of segments", "'stack': [{'type': 'pool', 'growth': 'segments'}, 'device']"},
    {"fixed_size", "'stack': [{'type': 'fixed_size', 'block_size': '64KiB'}, 'device']"},
    {"binning", "'stack': [{'type': 'binning', 'bins': [{'size': '64KiB'}]}, 'device']"},
    {"arena", "'stack': ['arena', 'device']"},
    {"monotonic", "'stack': ['monotonic', 'device']"},
    {"guard over a pool", "'stack': ['guard', {'type': 'pool', 'growth': 'mapped'}, 'device']"},
};

static const struct body {
  const char *name;
  void (*run)(void);
} bodies[] = {
    {"work of a lost stream never reaches the blocks of its successor", old_work_never_reaches_new_blocks},
    {"the promise of a retired stream does not hold for its successors", a_promise_ends_with_its_stream},
    {"nor if HIP cannot wait for the retired stream", a_promise_ends_though_hip_cannot_wait},
    {"a retired stream is not taken for a lost one with its handle", a_retired_stream_is_not_taken_for_a_lost_one},
    {"streams come and go at random", streams_come_and_go},
};

enum { STACKS = sizeof stacks / sizeof *stacks, BODIES = sizeof bodies / sizeof *bodies, OTHERS = 4 };

struct test {
  const struct stack *stack;
  const struct body *body;
};

static void under_seeds(void **state)
{
  const struct test *test = *state;
  for (int seed = 1; seed <= 5; seed++) {
    char options[64];
    snprintf(options, sizeof options, "'scheduler': 'stepped', 'seed': %d", seed);
    fixture_start_with(options, test->stack->graph);
    test->body->run();
    assert_ok(hipmm_finalize());
  }
}

/* Freed memory of streams that are gone is not lost: it comes back before the pool says no. */
static void memory_of_lost_streams_comes_back(void **state)
{
  (void)state;
  fixture_start_with("'scheduler': 'stepped'",
                     "'stack': [{'type': 'pool', 'growth': 'mapped', 'maximum_size': '8MiB'}, 'device']");
  for (int round = 0; round < 1000; round++) {
    hipmm_stream_t stream = fixture_stream();
    void *block = fixture_allocate(1 << 20, stream);
    fixture_free(block, 1 << 20, stream);
    assert_int_equal(fixture_hip()->StreamDestroy(stream), 0);
  }
  void *all = fixture_allocate(8 << 20, NULL);
  fixture_free(all, 8 << 20, NULL);
}

/* Nor is that of retired streams for which HIP could not wait. */
static void memory_of_streams_without_a_wait_comes_back(void **state)
{
  needs_software();
  fixture_start_with("'scheduler': 'stepped'", *state);
  for (int round = 0; round < 100; round++) {
    hipmm_stream_t stream = fixture_stream();
    assert_ok(hipmm_stream_retain(0, stream));
    void *block = fixture_allocate(1 << 20, stream);
    fill(block, OLD, stream);
    fixture_free(block, 1 << 20, stream);
    fixture_fail_call("hipStreamSynchronize", 1, 0);
    fixture_fail_call("hipDeviceSynchronize", 1, 0);
    assert_ok(hipmm_stream_retire(0, stream));
    fixture_drop_stream(stream);
  }
  void *all = fixture_allocate(6 << 20, NULL);
  fixture_fill(all, NEW, 6 << 20);
  assert_true(fixture_holds(all, NEW, 6 << 20));
  fixture_free(all, 6 << 20, NULL);
}

#define ROW(name, function, graph)                                            \
  {                                                                           \
    name, function, fixture_setup, fixture_teardown, (void *)(uintptr_t)graph \
  }

int main(void)
{
  static const struct CMUnitTest others[OTHERS] = {
      ROW("memory that lost streams freed comes back before the pool says no", memory_of_lost_streams_comes_back, NULL),
      ROW("likewise of streams for which HIP could not wait", memory_of_streams_without_a_wait_comes_back,
          "'stack': [{'type': 'pool', 'maximum_size': '8MiB'}, 'device']"),
      ROW("likewise over arena", memory_of_streams_without_a_wait_comes_back,
          "'stack': [{'type': 'arena', 'maximum_size': '8MiB'}, 'device']"),
      ROW("likewise over monotonic", memory_of_streams_without_a_wait_comes_back,
          "'stack': [{'type': 'monotonic', 'maximum_size': '8MiB'}, 'device']"),
  };
  static struct CMUnitTest tests[STACKS * BODIES + OTHERS];
  static struct test each[STACKS * BODIES];
  static char names[STACKS * BODIES][120];
  size_t n = 0;
  for (const struct body *body = bodies; body < bodies + BODIES; body++)
    for (const struct stack *stack = stacks; stack < stacks + STACKS; stack++, n++) {
      each[n] = (struct test){stack, body};
      snprintf(names[n], sizeof names[n], "%s: %s", stack->name, body->name);
      tests[n] = (struct CMUnitTest){names[n], under_seeds, fixture_setup, fixture_teardown, &each[n]};
    }
  memcpy(tests + n, others, sizeof others);
  return _cmocka_run_group_tests("streams with recycled handles", tests, n + OTHERS, NULL, NULL);
}
