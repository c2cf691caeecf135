/* SPDX-License-Identifier: MIT */
/* scenario.c: see scenario.h. It asserts nothing, since most of its runs are made to find out whether they fail. */
#include "scenario.h"
#include "../support/fixture.h"

#include <hipmm/hipmm.h>
#include <hipmm/stream.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct scenario_block {
  unsigned char *ptr;
  size_t bytes;
  unsigned char tag;
  unsigned stream; /* that may use it */
};

struct scenario_world {
  const struct scenario *scenario;
  struct choices *choices;
  struct hipmm_resource *resource;
  struct hipmm_stream_pool *pool;
  hipmm_stream_t streams[SCENARIO_STREAMS];
  bool is_retained[SCENARIO_STREAMS];
  struct scenario_block blocks[SCENARIO_BLOCKS];
  unsigned n_blocks;
  unsigned char last_tag;
  bool tells;
};

static char failure[400];
static atomic_uint wrong_blocks; /* seen by work on streams */

/* ---- What happens ---- */

HIPMM_PRINTF(1, 2) static void scenario_fail(const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  if (!failure[0]) vsnprintf(failure, sizeof failure, format, arguments);
  va_end(arguments);
}

HIPMM_PRINTF(2, 3) static void scenario_tell(const struct scenario_world *world, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  if (world->tells) vfprintf(stderr, format, arguments);
  va_end(arguments);
}

static void scenario_check_hip(const char *call, int code)
{
  if (code) scenario_fail("%s: error %d of HIP", call, code);
}

static void scenario_check(const char *call, enum hipmm_status status)
{
  if (status) scenario_fail("%s: %s", call, hipmm_last_error_message());
}

static unsigned scenario_choose(struct scenario_world *world, unsigned limit)
{
  return (unsigned)choices_draw(world->choices, limit);
}

/* ---- Steps ---- */

static void scenario_order(const struct scenario_world *world, unsigned later, unsigned earlier)
{
  const struct hipmm_hip *hip = fixture_hip();
  hipmm_hip_event_t event;
  scenario_check_hip("hipEventCreate", hip->EventCreateWithFlags(&event, HIPMM_HIP_EVENT_DISABLE_TIMING));
  scenario_check_hip("hipEventRecord", hip->EventRecord(event, world->streams[earlier]));
  scenario_check_hip("hipStreamWaitEvent", hip->StreamWaitEvent(world->streams[later], event, 0));
  scenario_check_hip("hipEventDestroy", hip->EventDestroy(event));
}

static void scenario_check_place(const struct scenario_world *world, const unsigned char *ptr, size_t bytes)
{
  if ((uintptr_t)ptr % HIPMM_ALIGNMENT) scenario_fail("%p is not aligned", (const void *)ptr);
  for (unsigned i = 0; i < world->n_blocks; i++) {
    const struct scenario_block *other = &world->blocks[i];
    if (ptr < other->ptr + other->bytes && other->ptr < ptr + bytes)
      scenario_fail("%zu bytes at %p overlap %zu live bytes at %p", bytes, (const void *)ptr, other->bytes,
                    (void *)other->ptr);
  }
}

static void scenario_allocate(struct scenario_world *world)
{
  const size_t *sizes = world->scenario->sizes;
  unsigned n_sizes = 1;
  void *ptr = NULL;
  while (n_sizes < SCENARIO_SIZES && sizes[n_sizes]) n_sizes++;
  struct scenario_block block = {.stream = scenario_choose(world, world->scenario->streams),
                                 .bytes = sizes[scenario_choose(world, n_sizes)],
                                 .tag = ++world->last_tag};
  scenario_check("allocation", hipmm_allocate(world->resource, block.bytes, world->streams[block.stream], &ptr));
  if (failure[0]) return;
  block.ptr = ptr;
  scenario_tell(world, "  allocate %zu bytes on stream %u: %p, fill with %d\n", block.bytes, block.stream, ptr,
                block.tag);
  scenario_check_place(world, block.ptr, block.bytes);
  world->blocks[world->n_blocks++] = block;
  scenario_check_hip("hipMemsetAsync",
                     fixture_hip()->MemsetAsync(ptr, block.tag, block.bytes, world->streams[block.stream]));
}

static void scenario_free(struct scenario_world *world, unsigned index, unsigned stream)
{
  struct scenario_block block = world->blocks[index];
  world->blocks[index] = world->blocks[--world->n_blocks];
  if (stream != block.stream) scenario_order(world, stream, block.stream);
  size_t bytes = world->scenario->is_sizeless && scenario_choose(world, 2) ? 0 : block.bytes;
  scenario_tell(world, "  look at %p, which stream %u has, on stream %u, and free it with %zu bytes\n",
                (void *)block.ptr, block.stream, stream, bytes);
  scenario_check_hip("hipLaunchHostFunc",
                     fixture_look(block.ptr, block.tag, block.bytes, world->streams[stream], &wrong_blocks));
  scenario_check("free", hipmm_deallocate(world->resource, block.ptr, bytes, world->streams[stream]));
}

static void scenario_hand_over(struct scenario_world *world, struct scenario_block *block)
{
  unsigned to = (block->stream + 1 + scenario_choose(world, world->scenario->streams - 1)) % world->scenario->streams;
  scenario_tell(world, "  hand %p over from stream %u to %u\n", (void *)block->ptr, block->stream, to);
  scenario_order(world, to, block->stream);
  block->stream = to;
}

/* Blocks go on on another stream. The next stream often has the handle of the one that is destroyed. */
static void scenario_renew_stream(struct scenario_world *world)
{
  const struct hipmm_hip *hip = fixture_hip();
  unsigned stream = scenario_choose(world, world->scenario->streams);
  unsigned other = (stream + 1) % world->scenario->streams;
  scenario_order(world, other, stream);
  for (unsigned i = 0; i < world->n_blocks; i++)
    if (world->blocks[i].stream == stream) world->blocks[i].stream = other;
  if (world->is_retained[stream]) scenario_check("retiring", hipmm_stream_retire(0, world->streams[stream]));
  scenario_check_hip("hipStreamDestroy", hip->StreamDestroy(world->streams[stream]));
  scenario_check_hip("hipStreamCreate",
                     hip->StreamCreateWithFlags(&world->streams[stream], HIPMM_HIP_STREAM_NON_BLOCKING));
  world->is_retained[stream] = scenario_choose(world, 2);
  if (world->is_retained[stream]) scenario_check("retaining", hipmm_stream_retain(0, world->streams[stream]));
  scenario_tell(world, "  destroy stream %u, make another%s\n", stream, world->is_retained[stream] ? ", retained" : "");
}

enum scenario_action { ALLOCATE, FREE, WORK, HAND_OVER, FREE_ELSEWHERE, TRIM, RENEW, ACTIONS };

/* What the program may do now. The first is the simplest. */
static unsigned scenario_actions(const struct scenario_world *world, enum scenario_action actions[ACTIONS])
{
  unsigned n = 0;
  if (world->n_blocks < world->scenario->blocks) actions[n++] = ALLOCATE;
  if (world->n_blocks) actions[n++] = FREE;
  if (software()->pending()) actions[n++] = WORK;
  if (world->n_blocks) actions[n++] = HAND_OVER;
  if (world->n_blocks) actions[n++] = FREE_ELSEWHERE;
  if (world->scenario->renews) actions[n++] = TRIM;
  if (world->scenario->renews) actions[n++] = RENEW;
  return n;
}

static void scenario_step(struct scenario_world *world)
{
  enum scenario_action actions[ACTIONS];
  enum scenario_action action = actions[scenario_choose(world, scenario_actions(world, actions))];
  unsigned index =
      action == FREE || action == HAND_OVER || action == FREE_ELSEWHERE ? scenario_choose(world, world->n_blocks) : 0;
  struct scenario_block *block = &world->blocks[index];
  switch (action) {
  case ALLOCATE: scenario_allocate(world); break;
  case FREE: scenario_free(world, index, block->stream); break;
  case HAND_OVER: scenario_hand_over(world, block); break;
  case FREE_ELSEWHERE: scenario_free(world, index, (block->stream + 1) % world->scenario->streams); break;
  case TRIM: scenario_check("trimming", hipmm_resource_trim(world->resource, 0)); break;
  case RENEW: scenario_renew_stream(world); break;
  default: scenario_tell(world, "  work runs\n"); software()->step(1);
  }
}

/* ---- The run ---- */

static void scenario_start(struct scenario_world *world)
{
  char graph[600];
  snprintf(graph, sizeof graph, "{'runtime': {'type': 'software', 'memory': '64MiB', 'scheduler': 'stepped'}, %s}",
           world->scenario->graph);
  for (char *at = graph; *at; at++)
    if (*at == '\'') *at = '"';
  failure[0] = '\0';
  atomic_store(&wrong_blocks, 0);
  software()->choose(choices_draw, world->choices);
  scenario_check("initialisation", hipmm_init_from_string(graph));
  if (!failure[0]) scenario_check("building", hipmm_resource_get_for_device(0, &world->resource));
  if (!failure[0] && world->scenario->is_pooled)
    scenario_check("stream pool",
                   hipmm_stream_pool_create(0, world->scenario->streams, HIPMM_STREAM_NON_BLOCKING, &world->pool));
  for (unsigned i = 0; !failure[0] && i < world->scenario->streams; i++)
    if (world->pool)
      scenario_check("stream", hipmm_stream_pool_get_at(world->pool, i, &world->streams[i]));
    else
      scenario_check_hip("hipStreamCreate",
                         fixture_hip()->StreamCreateWithFlags(&world->streams[i], HIPMM_HIP_STREAM_NON_BLOCKING));
}

static void scenario_end_work(void)
{
  while (software()->step(1)) continue;
  scenario_check_hip("hipDeviceSynchronize", fixture_hip()->DeviceSynchronize());
  if (atomic_load(&wrong_blocks))
    scenario_fail("%u blocks did not hold what was written into them", atomic_load(&wrong_blocks));
}

static void scenario_finish(struct scenario_world *world)
{
  for (unsigned i = 0; i < world->scenario->streams && !world->pool; i++)
    if (world->streams[i]) {
      scenario_check("retiring", hipmm_stream_retire(0, world->streams[i]));
      scenario_check_hip("hipStreamDestroy", fixture_hip()->StreamDestroy(world->streams[i]));
    }
  if (world->pool) hipmm_stream_pool_destroy(world->pool);
  hipmm_resource_release(world->resource);
  scenario_check("hipmm_finalize", hipmm_finalize());
  if (live_on_all_devices()) scenario_fail("%d blocks of the device were lost", (int)live_on_all_devices());
  if (faults_on_all_devices()) scenario_fail("work ran on memory that was gone");
  software()->choose(NULL, NULL);
  software()->reset();
}

const char *scenario_run(const struct scenario *scenario, unsigned steps, struct choices *choices, bool tells)
{
  struct scenario_world world = {.scenario = scenario, .choices = choices, .tells = tells};
  scenario_start(&world);
  for (unsigned i = 0; i < steps && !failure[0]; i++) scenario_step(&world);
  while (world.n_blocks && !failure[0])
    scenario_free(&world, world.n_blocks - 1, world.blocks[world.n_blocks - 1].stream);
  scenario_end_work();
  scenario_finish(&world);
  return failure[0] ? failure : NULL;
}
