/* SPDX-License-Identifier: MIT */
/* stream_program.c: see stream_program.h. */
#include "stream_program.h"

#include "random.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_STREAMS = 8, MOST_LIVE = 512 };

struct stream_program_block {
  unsigned char *ptr;
  size_t bytes;
  unsigned char tag;
  unsigned stream; /* that it is ready for */
};

struct world {
  const struct stream_program *program;
  uint64_t random;
  hipmm_stream_t streams[MOST_STREAMS]; /* [0] is the default stream */
  bool is_retained[MOST_STREAMS];
  struct stream_program_block live[MOST_LIVE];
  unsigned n_live;
  unsigned char next_tag;
};

static atomic_uint wrong_blocks; /* seen by work on streams */

/* ---- Work on streams ---- */

static void submit_look(const struct world *world, const struct stream_program_block *block, unsigned stream)
{
  assert_int_equal(fixture_look(block->ptr, block->tag, block->bytes, world->streams[stream], &wrong_blocks), 0);
}

/* What a program must do itself before it frees on another stream than it used the block on. */
static void order_after(const struct world *world, unsigned later, unsigned earlier)
{
  const struct hipmm_hip *hip = fixture_hip();
  hipmm_hip_event_t event;
  assert_int_equal(hip->EventCreateWithFlags(&event, HIPMM_HIP_EVENT_DISABLE_TIMING), 0);
  assert_int_equal(hip->EventRecord(event, world->streams[earlier]), 0);
  assert_int_equal(hip->StreamWaitEvent(world->streams[later], event, 0), 0);
  assert_int_equal(hip->EventDestroy(event), 0);
}

/* ---- Steps ---- */

static void assert_apart(const struct world *world, const unsigned char *ptr, size_t bytes)
{
  assert_int_equal((uintptr_t)ptr % HIPMM_ALIGNMENT, 0);
  for (unsigned i = 0; i < world->n_live; i++) {
    const struct stream_program_block *other = &world->live[i];
    assert_true(ptr + bytes <= other->ptr || other->ptr + other->bytes <= ptr);
  }
}

static void allocate_one(struct world *world)
{
  struct stream_program_block *block = &world->live[world->n_live];
  size_t most = random_below(&world->random, 2) ? world->program->most_bytes : world->program->most_bytes / 64 + 1;
  block->bytes = 1 + (size_t)random_below(&world->random, most);
  block->stream = (unsigned)random_below(&world->random, world->program->n_streams);
  block->tag = ++world->next_tag;
  void *ptr = NULL;
  enum hipmm_status status = hipmm_allocate(NULL, block->bytes, world->streams[block->stream], &ptr);
  if (status == HIPMM_E_OUT_OF_MEMORY) return;
  assert_status(status, HIPMM_OK);
  block->ptr = ptr;
  assert_apart(world, block->ptr, block->bytes);
  world->n_live++;
  assert_int_equal(fixture_hip()->MemsetAsync(ptr, block->tag, block->bytes, world->streams[block->stream]), 0);
}

static void free_one(struct world *world)
{
  unsigned index = (unsigned)random_below(&world->random, world->n_live);
  struct stream_program_block block = world->live[index];
  unsigned stream = random_below(&world->random, 4) ? block.stream
                                                    : (unsigned)random_below(&world->random, world->program->n_streams);
  if (stream != block.stream) order_after(world, stream, block.stream);
  submit_look(world, &block, stream);
  fixture_free(block.ptr, random_below(&world->random, 4) ? block.bytes : 0, world->streams[stream]);
  world->live[index] = world->live[--world->n_live];
}

static void free_wrongly(struct world *world)
{
  const struct stream_program_block *block = &world->live[random_below(&world->random, world->n_live)];
  hipmm_stream_t stream = world->streams[random_below(&world->random, world->program->n_streams)];
  assert_status(hipmm_deallocate(NULL, block->ptr, block->bytes + 1, stream), HIPMM_E_SIZE);
  assert_status(hipmm_deallocate(NULL, block->ptr + 1, block->bytes, stream), HIPMM_E_POINTER);
  assert_status(hipmm_deallocate(NULL, world, 1, stream), HIPMM_E_POINTER);
}

/* The next stream soon has its handle. Blocks in use move to the default stream. A stream that was promised to last
 * must be retired, with its work pending; of another, that its work has passed is enough. */
static void replace_stream(struct world *world)
{
  unsigned stream = 1 + (unsigned)random_below(&world->random, world->program->n_streams - 1);
  order_after(world, 0, stream);
  for (unsigned i = 0; i < world->n_live; i++)
    if (world->live[i].stream == stream) world->live[i].stream = 0;
  if (world->is_retained[stream] || random_below(&world->random, 2))
    assert_ok(hipmm_stream_retire(0, world->streams[stream]));
  else
    assert_int_equal(fixture_hip()->StreamSynchronize(world->streams[stream]), 0);
  fixture_drop_stream(world->streams[stream]);
  world->streams[stream] = fixture_stream();
  world->is_retained[stream] = random_below(&world->random, 2);
  if (world->is_retained[stream]) assert_ok(hipmm_stream_retain(0, world->streams[stream]));
}

static void trim_top(struct world *world)
{
  struct hipmm_resource *top;
  assert_ok(hipmm_resource_get_for_device(0, &top));
  assert_ok(hipmm_resource_trim(top, (size_t)random_below(&world->random, 4) * MIB));
  hipmm_resource_release(top);
}

static void step(struct world *world)
{
  uint64_t lot = random_below(&world->random, 1000);
  bool is_full = world->n_live == world->program->most_live;
  if (lot < 2)
    trim_top(world);
  else if (lot < 10 && world->program->destroys_streams && world->program->n_streams > 1)
    replace_stream(world);
  else if (lot < 20 && world->n_live)
    free_wrongly(world);
  else if (is_full || (world->n_live && lot % 2))
    free_one(world);
  else
    allocate_one(world);
}

void stream_program_run(const struct stream_program *program)
{
  static struct world world;
  world = (struct world){.program = program, .random = program->seed};
  atomic_store(&wrong_blocks, 0);
  assert_true(program->n_streams <= MOST_STREAMS && program->most_live <= MOST_LIVE);
  for (unsigned i = 1; i < program->n_streams; i++) world.streams[i] = fixture_stream();
  for (unsigned i = 0; i < program->steps; i++) step(&world);
  while (program->ends_with_no_live && world.n_live) free_one(&world);
  assert_int_equal(fixture_hip()->DeviceSynchronize(), 0);
  if (atomic_load(&wrong_blocks)) print_error("seed %llu\n", (unsigned long long)program->seed);
  assert_int_equal(atomic_load(&wrong_blocks), 0);
  for (unsigned i = 1; i < program->n_streams; i++) {
    assert_ok(hipmm_stream_retire(0, world.streams[i]));
    fixture_drop_stream(world.streams[i]);
  }
}

void stream_program_run_over_pool(const char *graph, unsigned steps, void (*look)(void))
{
  static const char *const schedulers[] = {"'scheduler': 'stepped', 'seed': 3", ""};
  for (int i = 0; i < 2; i++) {
    const struct stream_program program = {.seed = 1 + (uint64_t)i,
                                           .steps = steps,
                                           .n_streams = 4,
                                           .most_live = 100,
                                           .most_bytes = 65536,
                                           .destroys_streams = true,
                                           .ends_with_no_live = true};
    fixture_start_with(schedulers[i], graph);
    stream_program_run(&program);
    look();
    assert_int_equal(fixture_value("pool", "live_bytes"), 0);
    assert_ok(hipmm_finalize());
  }
}
