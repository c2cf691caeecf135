/* SPDX-License-Identifier: MIT */
/* Tests of what happens when a device has no memory left: other resources of the process are asked for what is idle,
 * in which order things are tried, and what the message says. The device has 256 MiB. */
#include <hipmm/memory.h>

#include "../../core/stack/physical.h"
#include "../support/both_schedulers.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define A      "'a': {'type': 'pool', 'upstream': 'memory'}"
#define B      "'b': {'type': 'pool', 'upstream': 'memory'}"
#define MEMORY "'memory': {'type': 'device'}"

/* Two pools that share a device; `b` is in force. */
static const char two_pools[] = "'resources': {" A ", " B ", " MEMORY "}, 'devices': {'default': 'b'}";

static void *take(const char *resource, size_t bytes, hipmm_stream_t stream)
{
  void *ptr = NULL;
  assert_ok(hipmm_allocate(fixture_resource(resource), bytes, stream, &ptr));
  return ptr;
}

static void give(const char *resource, void *ptr, size_t bytes, hipmm_stream_t stream)
{
  assert_ok(hipmm_deallocate(fixture_resource(resource), ptr, bytes, stream));
}

/* Afterwards the resource holds `bytes` that nobody uses. */
static void make_idle(const char *resource, size_t bytes)
{
  give(resource, take(resource, bytes, NULL), bytes, NULL);
  assert_in_range(fixture_held_bytes(), bytes, 256 * MIB);
}

/* ---- Who is asked ---- */

static void takes_what_another_pool_holds_idle(void **state)
{
  (void)state;
  fixture_start(two_pools);
  make_idle("a", 200 * MIB);
  for (int turn = 0; turn < 3; turn++) {
    const char *name = turn % 2 ? "a" : "b";
    void *ptr = take(name, 200 * MIB, NULL);
    fixture_fill(ptr, 0x5a, MIB);
    assert_true(fixture_holds(ptr, 0x5a, MIB));
    give(name, ptr, 200 * MIB, NULL);
  }
}

/* Each type that keeps memory. */
static const char *const keepers[] = {"'k': {'type': 'pool', 'upstream': 'memory', 'growth': 'mapped'}",
                                      "'k': {'type': 'pool', 'upstream': 'memory', 'growth': 'segments'}",
                                      "'k': {'type': 'arena', 'upstream': 'memory'}",
                                      "'k': {'type': 'monotonic', 'upstream': 'memory'}",
                                      "'k': {'type': 'fixed_size', 'upstream': 'memory', 'block_size': '200MiB'}",
                                      "'k': {'type': 'async', 'release_threshold': 'unlimited'}"};
enum { KEEPERS = sizeof keepers / sizeof *keepers };

/* They give it to one that asks the runtime itself. */
static void takes_it_from_every_type(void **state)
{
  (void)state;
  for (size_t i = 0; i < KEEPERS; i++) {
    char graph[300];
    snprintf(graph, sizeof graph, "'resources': {%s, " MEMORY "}, 'devices': {'default': 'memory'}", keepers[i]);
    fixture_start(graph);
    make_idle("k", 200 * MIB);
    fixture_free(fixture_allocate(200 * MIB, NULL), 200 * MIB, NULL);
    hipmm_finalize();
  }
}

/* By every way in which memory is allocated through hipmm. */
static void asks_at_every_entrance(void **state)
{
  enum { BYTES = 200 * MIB };
  const size_t bytes = BYTES;
  const struct hipmm_request request = {.struct_size = sizeof request, .bytes = BYTES};
  struct hipmm_buffer *buffer;
  void *ptr;
  (void)state;
  fixture_start(two_pools);
  for (int way = 0; way < 5; way++) {
    make_idle("a", BYTES);
    if (way == 0) assert_ok(hipmm_allocate_aligned(NULL, BYTES, 4096, NULL, &ptr));
    if (way == 1) assert_ok(hipmm_allocate_ex(&request, &ptr));
    if (way == 2) assert_ok(hipmm_allocate_batch(NULL, 1, &bytes, NULL, &ptr));
    if (way == 3) assert_ok(hipmm_reallocate(NULL, fixture_allocate(MIB, NULL), MIB, BYTES, NULL, &ptr));
    if (way < 4) fixture_free(ptr, BYTES, NULL);
    if (way == 4) {
      assert_ok(hipmm_buffer_create(NULL, BYTES, NULL, &buffer));
      assert_ok(hipmm_buffer_destroy(buffer));
    }
  }
}

static void takes_it_from_a_stack_made_in_code(void **state)
{
  struct hipmm_resource *source, *pool;
  void *ptr;
  (void)state;
  fixture_start("'stack': ['device']");
  assert_ok(hipmm_resource_create(0, "device", NULL, NULL, 0, &source));
  assert_ok(hipmm_resource_create(0, "pool", NULL, (struct hipmm_resource *const[]){source}, 1, &pool));
  assert_ok(hipmm_allocate(pool, 200 * MIB, NULL, &ptr));
  assert_ok(hipmm_deallocate(pool, ptr, 200 * MIB, NULL));
  fixture_free(fixture_allocate(200 * MIB, NULL), 200 * MIB, NULL);
  assert_ok(hipmm_allocate(pool, 200 * MIB, NULL, &ptr));
  assert_ok(hipmm_deallocate(pool, ptr, 200 * MIB, NULL));
  hipmm_resource_release(pool);
  hipmm_resource_release(source);
}

/* What a resource takes when it is created is an allocation like another. */
static void takes_it_when_it_is_created(void **state)
{
  static const char *const types[][2] = {{"pool", "{\"initial_size\": \"200MiB\", \"growth\": \"mapped\"}"},
                                         {"pool", "{\"initial_size\": \"200MiB\", \"growth\": \"segments\"}"},
                                         {"arena", "{\"arena_size\": \"200MiB\"}"},
                                         {"monotonic", "{\"initial_size\": \"200MiB\"}"}};
  (void)state;
  fixture_start(two_pools);
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    struct hipmm_resource *made, *source = fixture_resource("memory");
    make_idle("a", 200 * MIB);
    assert_ok(hipmm_resource_create(0, types[i][0], types[i][1], &source, 1, &made));
    assert_int_equal(fixture_value("a", "reserved_bytes"), 0);
    hipmm_resource_release(made);
  }
}

static int ask_nobody(void *argument, size_t bytes)
{
  (void)argument, (void)bytes;
  return 0;
}

/* The first attempt fails, and the second one needs the object that came with the recipe. */
static void takes_it_for_a_resource_with_an_object(void **state)
{
  const struct hipmm_failure_handler handler = {.struct_size = sizeof handler, .callback = ask_nobody};
  struct hipmm_resource *made = NULL;
  (void)state;
  fixture_start("'resources': {" A ", " MEMORY ", 'h': {'type': 'hoarder', 'upstream': 'memory'}}, 'devices': "
                "{'default': 'a'}");
  struct hipmm_resource *source = fixture_resource("memory");
  const struct hipmm_recipe recipe = {.struct_size = sizeof recipe,
                                      .type = "hoarder",
                                      .options = "{\"initial_size\": \"200MiB\"}",
                                      .upstreams = &source,
                                      .n_upstreams = 1,
                                      .objects = &(struct hipmm_object){"failure", &handler},
                                      .n_objects = 1};
  make_idle("a", 200 * MIB);
  assert_ok(hipmm_resource_create_from(0, &recipe, &made));
  assert_int_equal(fixture_value("a", "reserved_bytes"), 0);
  hipmm_resource_release(made);
}

/* In each way in which resources are built. */
static void takes_it_when_a_stack_is_built(void **state)
{
  static const char whole[] =
      "{\"runtime\": \"software\", \"stack\": [{\"type\": \"pool\", \"initial_size\": \"200MiB\"}, \"device\"]}";
  struct hipmm_resource *made, *table;
  (void)state;
  fixture_start(
      "'resources': {'idle': {'type': 'pool', 'upstream': 'memory'}, 'named': {'type': 'pool', 'initial_size': "
      "'200MiB', 'upstream': 'memory'}, " MEMORY "}, 'devices': {'default': 'idle'}");
  make_idle("idle", 200 * MIB);
  assert_ok(hipmm_resource_get_by_name(0, "named", &made));
  assert_int_equal(fixture_value("idle", "reserved_bytes"), 0);
  hipmm_resource_release(made);
  assert_ok(hipmm_finalize());
  assert_ok(hipmm_init_from_string(whole));
  assert_ok(hipmm_stack_build_from_string(0, NULL, whole, &made));
  assert_ok(hipmm_resource_get_current(&table)); /* the other stack is idle */
  hipmm_resource_release(table);
  hipmm_resource_release(made);
}

/* A fallback below it is the graph's way, and comes after other resources. */
static void takes_it_before_it_falls_back(void **state)
{
  struct hipmm_resource *made;
  (void)state;
  fixture_start(
      "'resources': {'both': {'type': 'fallback', 'upstream': ['memory', 'host']}, 'host': {'type': 'pinned'}, " A
      ", " MEMORY "}, 'devices': {'default': 'both'}");
  make_idle("a", 200 * MIB);
  struct hipmm_resource *both = fixture_resource("both");
  assert_ok(hipmm_resource_create(0, "monotonic", "{\"initial_size\": \"200MiB\"}", &both, 1, &made));
  assert_int_equal(fixture_value("both", "fallbacks"), 0);
  hipmm_resource_release(made);
  void *live = take("a", 200 * MIB, NULL);
  assert_ok(hipmm_resource_create(0, "monotonic", "{\"initial_size\": \"200MiB\"}", &both, 1, &made));
  assert_int_equal(fixture_value("both", "fallbacks"), 1);
  hipmm_resource_release(made);
  give("a", live, 200 * MIB, NULL);
}

/* Nothing is left behind, neighbours keep what would not help, and the message says who has the memory. */
static void tells_who_holds_what_a_new_resource_wants(void **state)
{
  struct hipmm_resource *made, *source;
  (void)state;
  fixture_start(two_pools);
  source = fixture_resource("memory");
  make_idle("a", 100 * MIB);
  int64_t held = fixture_value("a", "reserved_bytes");
  assert_status(hipmm_resource_create(0, "monotonic", "{\"initial_size\": \"300MiB\"}", &source, 1, &made),
                HIPMM_E_OUT_OF_MEMORY);
  assert_message("; device 0 has only 256 MiB");
  assert_int_equal(fixture_value("a", "reserved_bytes"), held);
  void *live = take("a", 100 * MIB, NULL);
  assert_status(hipmm_resource_create(0, "monotonic", "{\"initial_size\": \"200MiB\"}", &source, 1, &made),
                HIPMM_E_OUT_OF_MEMORY);
  assert_message("/initial_size: monotonic: the upstream does not have 209715200 bytes; ask for less");
  assert_message("a holds 100 MiB (100 MiB used, 0 bytes idle)");
  give("a", live, 100 * MIB, NULL);
}

/* A stack above is asked too: what it gives back, the pool below has. */
static void takes_it_from_what_depends_on_the_pool(void **state)
{
  (void)state;
  fixture_start("'resources': {'top': {'type': 'fixed_size', 'upstream': 'b', 'block_size': '50MiB', "
                "'blocks_per_chunk': 4}, " B ", " MEMORY "}, 'devices': {'default': 'b'}");
  void *blocks[4];
  for (int i = 0; i < 4; i++) blocks[i] = take("top", 50 * MIB, NULL);
  for (int i = 0; i < 4; i++) give("top", blocks[i], 50 * MIB, NULL);
  assert_int_equal(fixture_value("b", "live_bytes"), 200 * MIB);
  fixture_free(fixture_allocate(220 * MIB, NULL), 220 * MIB, NULL);
}

static void takes_no_more_than_it_needs(void **state)
{
  void *blocks[4];
  (void)state;
  fixture_start(two_pools);
  for (int i = 0; i < 4; i++) blocks[i] = take("a", 48 * MIB, NULL);
  for (int i = 0; i < 4; i++) give("a", blocks[i], 48 * MIB, NULL);
  fixture_free(fixture_allocate(80 * MIB, NULL), 80 * MIB, NULL);
  assert_in_range(fixture_value("a", "reserved_bytes"), 100 * MIB, 192 * MIB - 1);
}

/* Its neighbours' memory does not help a resource that a limit stops. */
static void asks_nobody_below_a_limit(void **state)
{
  static const char *const limits[] = {"'b': {'type': 'pool', 'upstream': 'memory', 'maximum_size': '10MiB'}",
                                       "'b': {'type': 'limiting', 'upstream': 'memory', 'limit': '10MiB'}"};
  void *ptr;
  (void)state;
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
    char graph[300];
    snprintf(graph, sizeof graph, "'resources': {" A ", %s, " MEMORY "}, 'devices': {'default': 'b'}", limits[i]);
    fixture_start(graph);
    make_idle("a", 200 * MIB);
    int64_t held = fixture_value("a", "reserved_bytes");
    fixture_free(fixture_allocate(8 * MIB, NULL), 8 * MIB, NULL);
    assert_true(hipmm_is_out_of_memory(hipmm_allocate(NULL, 20 * MIB, NULL, &ptr)));
    assert_int_equal(fixture_value("a", "reserved_bytes"), held);
    hipmm_finalize();
  }
}

/* More than the device has: nobody can help. */
static void asks_nobody_for_what_no_device_has(void **state)
{
  void *ptr;
  (void)state;
  fixture_start(two_pools);
  make_idle("a", 100 * MIB);
  int64_t held = fixture_value("a", "reserved_bytes");
  assert_status(hipmm_allocate(NULL, 300 * MIB, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_message("; device 0 has only 256 MiB");
  assert_int_equal(fixture_value("a", "reserved_bytes"), held);
}

/* Pinned memory is not the device's. */
static void asks_nobody_who_holds_other_memory(void **state)
{
  void *ptr;
  (void)state;
  fixture_start("'resources': {" A ", 'b': {'type': 'pool', 'upstream': 'host'}, 'host': {'type': 'pinned'}, " MEMORY
                "}, 'devices': {'default': 'b'}");
  make_idle("a", 100 * MIB);
  int64_t held = fixture_value("a", "reserved_bytes");
  fixture_fail_call("hipHostMalloc", 1, HIPMM_HIP_ERROR_OUT_OF_MEMORY);
  int refused = hipmm_allocate(NULL, 20 * MIB, NULL, &ptr);
  if (!refused) fixture_free(ptr, 20 * MIB, NULL); /* the pool tries again with less */
  assert_int_equal(fixture_value("a", "reserved_bytes"), held);
}

/* Neither the resources of another device nor an adaptor have memory to give: nothing is tried again. */
static void asks_nobody_who_has_none(void **state)
{
  static const struct {
    const char *graph, *asked;
  } cases[] = {{"'resources': {" A ", " MEMORY "}, 'devices': {'default': 'memory', '1': 'a'}", "memory"},
               {"'stack': ['single', 'device']", "device"}};
  (void)state;
  needs_software();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct hipmm_resource *other;
    void *live, *ptr;
    fixture_start(cases[i].graph);
    assert_ok(hipmm_resource_get_for_device(1, &other));
    assert_ok(hipmm_allocate(other, MIB, NULL, &ptr));
    assert_ok(hipmm_deallocate(other, ptr, MIB, NULL));
    live = take(cases[i].asked, 100 * MIB, NULL);
    software()->reset_calls();
    assert_status(hipmm_allocate(fixture_resource(cases[i].asked), 200 * MIB, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
    assert_int_equal(software()->calls("hipMalloc"), 1);
    give(cases[i].asked, live, 100 * MIB, NULL);
    hipmm_resource_release(other);
    assert_ok(hipmm_finalize());
  }
}

/* ---- Plugins of third parties ---- */

static void passes_over_a_type_without_trim(void **state)
{
  void *ptr;
  (void)state;
  fixture_start("'resources': {" A ", " B ", 'h': {'type': 'hoarder', 'upstream': 'memory'}, " MEMORY
                "}, 'devices': {'default': 'b'}");
  give("h", take("h", 60 * MIB, NULL), 60 * MIB, NULL);
  make_idle("a", 150 * MIB);
  fixture_free(fixture_allocate(180 * MIB, NULL), 180 * MIB, NULL);
  assert_status(hipmm_allocate(NULL, 220 * MIB, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_message("memory holds 60 MiB (60 MiB used, 0 bytes idle)");
  give("h", take("h", 60 * MIB, NULL), 60 * MIB, NULL);
}

/* The hoarder holds its lock while the pool below it finds no memory. */
static void serves_a_type_that_holds_a_lock(void **state)
{
  (void)state;
  fixture_start("'resources': {" A ", 'h': {'type': 'hoarder', 'upstream': 'b'}, " B ", " MEMORY
                "}, 'devices': {'default': 'h'}");
  make_idle("a", 200 * MIB);
  fixture_free(fixture_allocate(200 * MIB, NULL), 200 * MIB, NULL);
}

/* ---- The order ---- */

/* More work than a few queries of events run (plugins/runtimes/software/scheduler_stepped.c). */
static void give_work(hipmm_stream_t stream, void *ptr, size_t bytes)
{
  for (int i = 0; i < 100; i++) assert_int_equal(fixture_hip()->MemsetAsync(ptr, 0x11, bytes, stream), 0);
}

/* `a` is mapped, since a free of the runtime may wait for the device. */
static void asks_before_it_waits_for_work(void **state)
{
  static const char *const types[] = {"'pool', 'growth': 'segments'", "'arena'"};
  (void)state;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    char graph[400];
    snprintf(graph, sizeof graph,
             "'resources': {'a': {'type': 'pool', 'upstream': 'memory', 'growth': 'mapped'}, 'b': {'upstream': "
             "'memory', 'type': %s}, " MEMORY "}, 'devices': {'default': 'b'}",
             types[i]);
    fixture_start_with("'scheduler': 'stepped', 'seed': 3", graph);
    hipmm_stream_t busy = both_stream(0), stream = both_stream(0);
    make_idle("a", 100 * MIB);
    assert_int_equal(fixture_hip()->DeviceSynchronize(), 0);
    void *pending = fixture_allocate(100 * MIB, busy), *small = fixture_allocate(1000, busy);
    give_work(busy, pending, 4096);
    fixture_free(small, 1000, busy);
    fixture_free(pending, 100 * MIB, busy);
    void *ptr = fixture_allocate(140 * MIB, stream);
    assert_in_range(software()->pending(), 50, 110);
    fixture_free(ptr, 140 * MIB, stream);
    ptr = fixture_allocate(230 * MIB, stream); /* for so much it must wait */
    assert_int_equal(software()->pending(), 0);
    fixture_free(ptr, 230 * MIB, stream);
    assert_ok(hipmm_stream_destroy(busy));
    assert_ok(hipmm_stream_destroy(stream));
    assert_ok(hipmm_finalize());
  }
}

/* What a neighbour gives is idle: no work of its streams sees the new owner's data. */
static void keeps_the_order_of_streams(void **state)
{
  enum { ROUNDS = 12, BYTES = 150 * MIB, LOOKED = 64 << 10 };
  atomic_uint wrong = 0;
  both_start(state, two_pools);
  hipmm_stream_t streams[2] = {both_stream(0), both_stream(0)};
  for (unsigned round = 0; round < ROUNDS; round++) {
    const char *name = round % 2 ? "a" : "b";
    hipmm_stream_t stream = streams[round % 2];
    char *ptr = take(name, BYTES, stream), *end = ptr + BYTES - LOOKED;
    unsigned char value = (unsigned char)(round + 1);
    assert_int_equal(fixture_hip()->MemsetAsync(ptr, value, LOOKED, stream), 0);
    assert_int_equal(fixture_hip()->MemsetAsync(end, value, LOOKED, stream), 0);
    assert_int_equal(fixture_look(ptr, value, LOOKED, stream, &wrong), 0);
    assert_int_equal(fixture_look(end, value, LOOKED, stream, &wrong), 0);
    give(name, ptr, BYTES, stream);
  }
  assert_int_equal(fixture_hip()->DeviceSynchronize(), 0);
  assert_int_equal(wrong, 0);
  for (int i = 0; i < 2; i++) assert_ok(hipmm_stream_destroy(streams[i]));
}

static void asks_before_it_falls_back(void **state)
{
  (void)state;
  fixture_start("'resources': {'top': {'type': 'fallback', 'upstream': ['b', 'host']}, 'host': {'type': 'pinned'}, " A
                ", " B ", " MEMORY "}, 'devices': {'default': 'top'}");
  make_idle("a", 200 * MIB);
  fixture_free(fixture_allocate(200 * MIB, NULL), 200 * MIB, NULL);
  assert_int_equal(fixture_value("top", "fallbacks"), 0);
  void *live = take("a", 200 * MIB, NULL);
  void *ptr = fixture_allocate(100 * MIB, NULL);
  assert_int_equal(fixture_value("top", "fallbacks"), 1);
  fixture_free(ptr, 100 * MIB, NULL);
  give("a", live, 200 * MIB, NULL);
}

static struct {
  int calls;
  void *live; /* of `a`, which the first call frees */
} program;

static int make_room(void *argument, size_t bytes)
{
  void *ptr;
  (void)argument, (void)bytes;
  program.calls++;
  /* A call within a call asks nobody, but it fails as well. */
  if (!program.live) return 0;
  if (hipmm_allocate(fixture_resource("b"), 220 * MIB, NULL, &ptr) != HIPMM_E_OUT_OF_MEMORY) return 0;
  give("a", program.live, 200 * MIB, NULL);
  assert_ok(hipmm_resource_trim(fixture_resource("a"), 0));
  program.live = NULL;
  return 1;
}

static void asks_before_it_calls_the_program(void **state)
{
  const struct hipmm_failure_handler handler = {.struct_size = sizeof handler, .callback = make_room};
  void *ptr;
  (void)state;
  program.calls = 0;
  assert_ok(hipmm_failure_handler_register("room", &handler));
  fixture_start("'resources': {'top': {'type': 'failure_callback', 'callback': 'room', 'upstream': 'b'}, " A ", " B
                ", " MEMORY "}, 'devices': {'default': 'top'}");
  make_idle("a", 200 * MIB);
  fixture_free(fixture_allocate(200 * MIB, NULL), 200 * MIB, NULL);
  assert_int_equal(program.calls, 0);
  program.live = take("a", 200 * MIB, NULL);
  fixture_free(fixture_allocate(100 * MIB, NULL), 100 * MIB, NULL);
  assert_int_equal(program.calls, 1);
  assert_status(hipmm_allocate(NULL, 400 * MIB, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_int_equal(program.calls, 2);
}

static enum hipmm_status allocate_from_hip(void *unused, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                           void **ptr_out)
{
  (void)unused, (void)alignment, (void)stream;
  return fixture_hip()->Malloc(ptr_out, bytes) ? HIPMM_E_OUT_OF_MEMORY : HIPMM_OK;
}

static void free_to_hip(void *unused, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  (void)unused, (void)bytes, (void)alignment, (void)stream;
  assert_int_equal(fixture_hip()->Free(ptr), 0);
}

static int trim_device(void *unused, size_t bytes)
{
  (void)unused, (void)bytes;
  program.calls++;
  return !hipmm_device_trim(0, 0) && program.calls == 1;
}

/* hipmm does not know of which memory an allocator of the program is out; the program does. */
static void leaves_the_allocator_of_the_program_to_the_program(void **state)
{
  const struct hipmm_allocator allocator = {sizeof allocator, allocate_from_hip, free_to_hip, NULL};
  const struct hipmm_failure_handler handler = {.struct_size = sizeof handler, .callback = trim_device};
  void *ptr;
  (void)state;
  program.calls = 0;
  assert_ok(hipmm_allocator_register("hip", &allocator));
  assert_ok(hipmm_failure_handler_register("trims", &handler));
  fixture_start("'resources': {'top': {'type': 'failure_callback', 'callback': 'trims', 'upstream': 'pool'}, 'pool': "
                "{'type': 'pool', 'upstream': 'own'}, 'own': {'type': 'callback', 'allocator': 'hip'}, " A ", " MEMORY
                "}, 'devices': {'default': 'top'}");
  make_idle("a", 200 * MIB);
  assert_status(hipmm_allocate(fixture_resource("pool"), 200 * MIB, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_in_range(fixture_value("a", "reserved_bytes"), 200 * MIB, 256 * MIB);
  fixture_free(fixture_allocate(200 * MIB, NULL), 200 * MIB, NULL);
  assert_int_equal(program.calls, 1);
}

/* Adaptors tell of what the program sees: one failure, or none. */
static void says_nothing_of_a_failure_that_was_recovered(void **state)
{
  char graph[900], *folder = new_folder(), *log = path_in(folder, "log.csv");
  void *ptr;
  (void)state;
  snprintf(graph, sizeof graph,
           "'resources': {'top': {'type': 'logging', 'file': '%s', 'upstream': 'b'}, " A ", " B ", " MEMORY
           "}, 'devices': {'default': 'top'}",
           log);
  fixture_start(graph);
  make_idle("a", 200 * MIB);
  fixture_free(fixture_allocate(200 * MIB, NULL), 200 * MIB, NULL);
  assert_int_equal(fixture_value("top", "rows"), 2);
  assert_status(hipmm_allocate(NULL, 400 * MIB, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_int_equal(fixture_value("top", "rows"), 3);
  hipmm_finalize();
  remove_folder(folder);
  free(log);
}

/* ---- The message ---- */

static void says_who_holds_the_memory(void **state)
{
  void *ptr, *direct;
  (void)state;
  fixture_start(
      "'resources': {'a': {'type': 'pool', 'upstream': 'memory', 'growth': 'segments'}, 'b': {'type': 'pool', "
      "'upstream': 'memory', 'growth': 'segments'}, " MEMORY "}, 'devices': {'default': 'b'}");
  void *first = take("a", 100 * MIB, NULL), *second = fixture_allocate(60 * MIB, NULL);
  direct = take("memory", 40 * MIB, NULL);
  assert_status(hipmm_allocate(NULL, 80 * MIB, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_string_equal(
      hipmm_last_error_message(),
      "memory: hipMalloc of 80 MiB failed: hipErrorOutOfMemory; b: cannot allocate 80 MiB: holds 60 MiB, "
      "0 bytes free (0 bytes of it in one block) after waiting for all streams; the upstream cannot "
      "provide more; device 0 has 256 MiB, 56 MiB of it free; a holds 100 MiB (100 MiB used, 0 bytes "
      "idle), b holds 60 MiB (60 MiB used, 0 bytes idle), memory holds 40 MiB (40 MiB used, 0 bytes "
      "idle); 80 MiB would fit if 24 MiB of what is used were freed");
  give("memory", direct, 40 * MIB, NULL);
  assert_status(hipmm_allocate(fixture_resource("memory"), 200 * MIB, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_string_equal(
      hipmm_last_error_message(),
      "memory: hipMalloc of 200 MiB failed: hipErrorOutOfMemory; device 0 has 256 MiB, 96 MiB of it free; "
      "a holds 100 MiB (100 MiB used, 0 bytes idle), b holds 60 MiB (60 MiB used, 0 bytes idle); 200 MiB "
      "would fit if 104 MiB of what is used were freed");
  give("a", first, 100 * MIB, NULL);
  fixture_free(second, 60 * MIB, NULL);
}

/* What divides the memory of another that is told of, and what has memory of another kind. */
static void counts_nothing_twice_and_nothing_else(void **state)
{
  void *ptr;
  (void)state;
  fixture_start("'resources': {'top': {'type': 'arena', 'upstream': 'b', 'arena_size': '60MiB'}, 'c': {'type': 'pool', "
                "'upstream': 'host', 'growth': 'segments'}, 'host': {'type': 'pinned'}, 'b': {'type': 'pool', "
                "'upstream': 'memory', 'growth': 'segments'}, " MEMORY "}, 'devices': {'default': 'top'}");
  void *first = take("c", 10 * MIB, NULL), *second = take("host", 5 * MIB, NULL);
  void *third = take("top", 10 * MIB, NULL); /* so that the arena keeps what it has */
  assert_status(hipmm_allocate(fixture_resource("b"), 230 * MIB, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_message(
      "; device 0 has 256 MiB, 196 MiB of it free; b holds 60 MiB (60 MiB used, 0 bytes idle); 230 MiB would "
      "fit if");
  give("top", third, 10 * MIB, NULL);
  give("c", first, 10 * MIB, NULL);
  give("host", second, 5 * MIB, NULL);
}

static void does_not_guess_what_the_device_has(void **state)
{
  void *ptr;
  (void)state;
  needs_software();
  fixture_start("'stack': ['device']");
  for (uint64_t nth = 1; nth < 10; nth++) fixture_fail_call("hipMemGetInfo", nth, 0);
  assert_status(hipmm_allocate(NULL, 300 * MIB, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_string_equal(hipmm_last_error_message(), "device: hipMalloc of 300 MiB failed: hipErrorOutOfMemory");
  software()->fail_none();
}

/* A runtime can fail for want of something else than memory of the device. */
static void does_not_blame_memory_that_nobody_uses(void **state)
{
  void *ptr;
  (void)state;
  needs_software();
  fixture_start("'stack': ['device']");
  for (uint64_t nth = 1; nth < 10; nth++) fixture_fail_call("hipMalloc", nth, 0);
  assert_status(hipmm_allocate(NULL, 80 * MIB, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_message("device 0 has 256 MiB, 256 MiB of it free; what is free would be enough, but lies in pieces, or the "
                 "runtime has reached another limit");
  software()->fail_none();
  fixture_free(fixture_allocate(80 * MIB, NULL), 80 * MIB, NULL);
}

static void says_what_others_and_pieces_hold(void **state)
{
  void *foreign, *ptr, *blocks[12];
  char name[40];
  (void)state;
  fixture_start("'stack': [{'type': 'pool', 'growth': 'segments'}, 'device']");
  assert_int_equal(fixture_hip()->Malloc(&foreign, 16 * MIB), 0);
  struct hipmm_resource *pools[12], *source = fixture_resource("device");
  for (int i = 0; i < 12; i++) {
    const struct hipmm_recipe recipe = {.struct_size = sizeof recipe,
                                        .type = "pool",
                                        .name = name,
                                        .options = "{\"growth\": \"segments\"}",
                                        .upstreams = &source,
                                        .n_upstreams = 1};
    snprintf(name, sizeof name, "p%d", i);
    assert_ok(hipmm_resource_create_from(0, &recipe, &pools[i]));
    assert_ok(hipmm_allocate(pools[i], (size_t)(i + 1) * 2 * MIB, NULL, &blocks[i]));
  }
  assert_status(hipmm_allocate(NULL, 200 * MIB, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_message("p11 holds 24 MiB (24 MiB used, 0 bytes idle), p10 holds 22 MiB");
  assert_message("p4 holds 10 MiB (10 MiB used, 0 bytes idle), 4 other resources hold 20 MiB, other users hold 16 MiB; "
                 "200 MiB would fit if 116 MiB of what is used were freed");
  for (int i = 0; i < 12; i++) assert_ok(hipmm_deallocate(pools[i], blocks[i], 0, NULL));
  for (int i = 0; i < 12; i++) hipmm_resource_release(pools[i]);
  assert_int_equal(fixture_hip()->Free(foreign), 0);
}

/* ---- Threads ---- */

enum { MOST_LIVE = 230 * (int)MIB, THREADS = 8 };

/* What all threads may have at once: a thread waits until its bytes fit. */
static struct {
  pthread_mutex_t lock;
  pthread_cond_t freed;
  int64_t left;
  atomic_uint wrong;
  atomic_int turn;
  struct hipmm_resource *pools[2];
} budget = {.lock = PTHREAD_MUTEX_INITIALIZER, .freed = PTHREAD_COND_INITIALIZER};

static void budget_change(int64_t bytes)
{
  pthread_mutex_lock(&budget.lock);
  while (budget.left + bytes < 0) pthread_cond_wait(&budget.freed, &budget.lock);
  budget.left += bytes;
  pthread_cond_broadcast(&budget.freed);
  pthread_mutex_unlock(&budget.lock);
}

static void work_in_turn(int *failures)
{
  enum { TURNS = 12, LOOKED = 4096 };
  int thread = atomic_fetch_add(&budget.turn, 1);
  struct hipmm_resource *pool = budget.pools[thread % 2];
  hipmm_stream_t stream = NULL;
  *failures += hipmm_stream_create(0, HIPMM_STREAM_NON_BLOCKING, &stream) != HIPMM_OK;
  for (int turn = 0; turn < TURNS; turn++) {
    size_t bytes = (size_t)70 * MIB; /* one size: a segment that has an idle part could not be given back */
    unsigned char value = (unsigned char)(thread * 16 + turn);
    void *ptr = NULL;
    budget_change(-(int64_t)bytes);
    if (hipmm_allocate(pool, bytes, stream, &ptr)) {
      ++*failures;
      print_error("%s\n", hipmm_last_error_message());
    } else {
      *failures += fixture_hip()->MemsetAsync(ptr, value, LOOKED, stream) != 0;
      *failures += fixture_look(ptr, value, LOOKED, stream, &budget.wrong) != 0;
      *failures += hipmm_deallocate(pool, ptr, bytes, stream) != HIPMM_OK;
    }
    budget_change((int64_t)bytes);
  }
  *failures += hipmm_stream_destroy(stream) != HIPMM_OK;
}

static void start_threads_over(void **state, const char *graph)
{
  both_start(state, graph);
  budget.left = MOST_LIVE;
  budget.wrong = 0;
  budget.turn = 0;
  budget.pools[0] = fixture_resource("a");
  budget.pools[1] = fixture_resource("b");
}

static void threads_share_a_device_without_a_failure(void **state)
{
  start_threads_over(state, two_pools);
  fixture_run_threads(THREADS, work_in_turn);
  assert_int_equal(fixture_hip()->DeviceSynchronize(), 0);
  assert_int_equal(budget.wrong, 0);
}

static void want_too_much(int *failures)
{
  enum { TURNS = 20 };
  struct hipmm_resource *pool = budget.pools[atomic_fetch_add(&budget.turn, 1) % 2];
  for (int turn = 0; turn < TURNS; turn++) {
    void *ptr = NULL;
    enum hipmm_status status = hipmm_allocate(pool, (size_t)(100 + turn * 5) * MIB, NULL, &ptr);
    if (status != HIPMM_OK && status != HIPMM_E_OUT_OF_MEMORY) ++*failures;
    if (!status && hipmm_deallocate(pool, ptr, 0, NULL)) ++*failures;
  }
}

/* All are out of memory at once, under locks of their own; each gets an answer. */
static void threads_that_ask_do_not_wait_for_each_other(void **state)
{
  start_threads_over(state, "'resources': {'a': {'type': 'hoarder', 'upstream': 'pool_a'}, 'b': {'type': 'arena', "
                            "'upstream': 'pool_b'}, 'pool_a': {'type': 'pool', 'upstream': 'memory'}, 'pool_b': "
                            "{'type': 'pool', 'upstream': 'memory'}, " MEMORY "}, 'devices': {'default': 'a'}");
  fixture_run_threads(THREADS, want_too_much);
}

/* ---- The limit of physical memory ---- */

static void refuses(const char *resource, size_t bytes, const char *message)
{
  void *ptr = NULL;
  assert_status(hipmm_allocate(fixture_resource(resource), bytes, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_message(message);
}

/* Idle memory of one resource makes room for another, as if the device were so small. */
static void keeps_all_types_to_the_limit_together(void **state)
{
  (void)state;
  for (size_t i = 0; i < KEEPERS; i++) {
    char graph[300];
    snprintf(graph, sizeof graph,
             "'limit_physical': '220MiB', 'resources': {%s, " MEMORY "}, 'devices': {'default': 'memory'}", keepers[i]);
    fixture_start(graph);
    make_idle("k", 200 * MIB);
    void *ptr = fixture_allocate(200 * MIB, NULL);
    if (!strstr(keepers[i], "async")) /* the driver's pool asks for itself */
      refuses("k", 30 * MIB,
              "; \"limit_physical\" lets this process hold 220 MiB, and 20 MiB are left; memory holds 200 MiB");
    refuses("memory", 221 * MIB, "; \"limit_physical\" lets this process hold only 220 MiB of device 0");
    assert_in_range(fixture_peak_held_bytes(), 200 * MIB, 220 * MIB);
    fixture_free(ptr, 200 * MIB, NULL);
    hipmm_finalize();
  }
}

/* A percentage is of what is free when the device is first used; another graph may have no limit. */
static void takes_a_percentage_of_free_memory(void **state)
{
  (void)state;
  fixture_start("'limit_physical': '50%', 'stack': ['device']");
  fixture_free(fixture_allocate(128 * MIB, NULL), 128 * MIB, NULL);
  refuses(NULL, 129 * MIB, "; \"limit_physical\" lets this process hold only 128 MiB of device 0");
  hipmm_finalize();
  fixture_start("'stack': ['device']");
  fixture_free(fixture_allocate(200 * MIB, NULL), 200 * MIB, NULL);
}

/* Memory of the host, and managed memory, are not the device's own. */
static void leaves_other_memory_alone(void **state)
{
  (void)state;
  fixture_start("'limit_physical': '2MiB', 'resources': {'h': {'type': 'pinned'}, 'm': {'type': 'managed'}, " MEMORY
                "}, 'devices': {'default': 'memory'}");
  give("h", take("h", 10 * MIB, NULL), 10 * MIB, NULL);
  give("m", take("m", 10 * MIB, NULL), 10 * MIB, NULL);
  refuses("memory", 3 * MIB, "lets this process hold only 2 MiB of device 0");
}

/* What was created past hipmm counts too, until it is gone. */
static void counts_what_was_created_past_hipmm(void **state)
{
  (void)state;
  fixture_start("'limit_physical': '100MiB', 'stack': ['device']");
  assert_true(physical_claim(0, 60 * MIB));
  physical_add_past(0, 60 * MIB);
  assert_false(physical_claim(0, 41 * MIB));
  refuses(
      NULL, 41 * MIB,
      "; \"limit_physical\" lets this process hold 100 MiB, and 40 MiB are left; 60 MiB were created past hipmm; 41 "
      "MiB would fit if 1 MiB of what is used were freed");
  fixture_free(fixture_allocate(40 * MIB, NULL), 40 * MIB, NULL);
  assert_true(physical_claim(0, 40 * MIB)); /* of a call that fails then */
  physical_claim(0, -1);
  fixture_free(fixture_allocate(40 * MIB, NULL), 40 * MIB, NULL);
  physical_remove_past(0, 60 * MIB);
  fixture_free(fixture_allocate(100 * MIB, NULL), 100 * MIB, NULL);
  assert_int_equal(physical_past(0).peak_bytes, 60 * MIB);
  assert_int_equal(physical_held_bytes(0), 0);
}

/* A call of the runtime that fails leaves nothing claimed. */
static void claims_nothing_after_a_failure(void **state)
{
  void *ptr;
  (void)state;
  needs_software();
  fixture_start_with("'fail': ['hipMalloc:1']", "'limit_physical': '100MiB', 'stack': ['device']");
  assert_status(hipmm_allocate(NULL, 60 * MIB, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  fixture_free(fixture_allocate(100 * MIB, NULL), 100 * MIB, NULL);
}

enum { UNIT = 8 * (int)MIB };
static atomic_int obtained;

static void take_until_none_is_left(int *failures)
{
  void *ptr;
  for (int turn = 0; turn < 4; turn++) {
    enum hipmm_status status = hipmm_allocate(NULL, UNIT, NULL, &ptr);
    if (!status) atomic_fetch_add(&obtained, 1);
    *failures += status != HIPMM_OK && status != HIPMM_E_OUT_OF_MEMORY;
  }
}

/* Two threads never have the last bytes both. */
static void threads_keep_to_the_limit_exactly(void **state)
{
  void *ptr;
  (void)state;
  for (int round = 0; round < 20; round++) {
    fixture_start("'limit_physical': '100MiB', 'stack': ['device']");
    obtained = 0;
    fixture_run_threads(THREADS, take_until_none_is_left);
    while (!hipmm_allocate(NULL, UNIT, NULL, &ptr)) obtained++;
    assert_int_equal(obtained, 12);
    assert_int_equal(fixture_peak_held_bytes(), 12 * (size_t)UNIT);
    assert_int_equal(physical_held_bytes(0), 12 * (size_t)UNIT);
    hipmm_finalize();
    assert_int_equal(physical_held_bytes(0), 0);
  }
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

/* The hoarder is among the test's own plugins. */
static int find_plugins(void **state)
{
  const char *top = getenv("top_builddir"), *known = getenv("HIPMM_PLUGIN_PATH");
  char *path, *bad = path_in(top ? top : ".", "tests/bad/.libs");
  (void)state;
  assert_true(asprintf(&path, "%s:%s", known ? known : "", bad) > 0);
  setenv("HIPMM_PLUGIN_PATH", path, 1);
  free(path);
  free(bad);
  return 0;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(takes_what_another_pool_holds_idle),
      TEST(takes_it_from_every_type),
      TEST(asks_at_every_entrance),
      TEST(takes_it_from_a_stack_made_in_code),
      TEST(takes_it_when_it_is_created),
      TEST(takes_it_for_a_resource_with_an_object),
      TEST(takes_it_when_a_stack_is_built),
      TEST(takes_it_before_it_falls_back),
      TEST(tells_who_holds_what_a_new_resource_wants),
      TEST(takes_it_from_what_depends_on_the_pool),
      TEST(takes_no_more_than_it_needs),
      TEST(asks_nobody_below_a_limit),
      TEST(asks_nobody_for_what_no_device_has),
      TEST(asks_nobody_who_holds_other_memory),
      TEST(asks_nobody_who_has_none),
      TEST(passes_over_a_type_without_trim),
      TEST(serves_a_type_that_holds_a_lock),
      TEST(asks_before_it_waits_for_work),
      BOTH(keeps_the_order_of_streams),
      TEST(asks_before_it_falls_back),
      TEST(asks_before_it_calls_the_program),
      TEST(leaves_the_allocator_of_the_program_to_the_program),
      TEST(says_nothing_of_a_failure_that_was_recovered),
      TEST(says_who_holds_the_memory),
      TEST(counts_nothing_twice_and_nothing_else),
      TEST(does_not_guess_what_the_device_has),
      TEST(does_not_blame_memory_that_nobody_uses),
      TEST(says_what_others_and_pieces_hold),
      BOTH(threads_share_a_device_without_a_failure),
      BOTH(threads_that_ask_do_not_wait_for_each_other),
      TEST(keeps_all_types_to_the_limit_together),
      TEST(takes_a_percentage_of_free_memory),
      TEST(leaves_other_memory_alone),
      TEST(counts_what_was_created_past_hipmm),
      TEST(claims_nothing_after_a_failure),
      TEST(threads_keep_to_the_limit_exactly),
  };
  return cmocka_run_group_tests(tests, find_plugins, NULL);
}
