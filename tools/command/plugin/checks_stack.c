/* SPDX-License-Identifier: MIT */
/* checks_stack.c: checks of the plugin as a part of a stack: the calls to its upstream, its values and reports, streams
 * and threads, and its end. */
#include "../../../core/runtime/hip.h"
#include "../../../core/stack/instance.h"
#include "kit.h"
#include "model.h"

#include <hipmm/stream.h>
#include <stdlib.h>
#include <string.h>

/* ---- What is passed on ----------------------------------------------------------------------------------------- */

/* The core asks the upstream for the size of a block, so both must speak of the same block. */
static void checks_stack_check_passed_on(size_t bytes, hipmm_stream_t stream)
{
  uint64_t allocations = kit_probe_allocations, frees = kit_probe_frees;
  void *ptr = kit_allocate(bytes, HIPMM_ALIGNMENT, stream);
  const struct kit_probe_call *got = &kit_probe_allocated, *freed = &kit_probe_freed;
  if (!ptr) kit_skip("it allocates nothing here: %s", hipmm_last_error_message());
  if (kit_probe_allocations != allocations + 1)
    kit_fail("one allocation makes %llu of the upstream", (unsigned long long)(kit_probe_allocations - allocations));
  if (got->ptr != ptr) kit_fail("it gives %p, where its upstream gave %p", ptr, got->ptr);
  if (got->bytes != bytes) kit_fail("%zu bytes were asked for, and %zu of the upstream", bytes, got->bytes);
  if (got->stream != stream) kit_fail("the upstream got another stream than the allocation");
  kit_free(ptr, bytes, stream);
  if (kit_probe_frees != frees + 1) kit_fail("a free is not passed on to the upstream");
  if (freed->ptr != ptr) kit_fail("%p was freed, and %p in the upstream", ptr, freed->ptr);
  if (freed->bytes != bytes && freed->bytes)
    kit_fail("%zu bytes were freed, and %zu in the upstream", bytes, freed->bytes);
  if (freed->stream != stream) kit_fail("the upstream got another stream than the free");
}

static void checks_stack_sizes(void)
{
  const struct hipmm_plugin *plugin = kit_resource_plugin();
  if (!plugin->max_upstreams) kit_skip("a source has no upstream");
  if (plugin->ops->find) kit_skip("it has ops->find, and so answers for its blocks itself");
  kit_open("threads");
  hipmm_stream_t stream = kit_stream();
  for (size_t bytes = 1; bytes < 1000000; bytes = bytes * 7 + 1) checks_stack_check_passed_on(bytes, NULL);
  checks_stack_check_passed_on(1000, stream);
  kit_expect_ok(hipmm_stream_retire(0, stream), "stream_retire");
  kit_expect_hip(hip_table()->StreamDestroy(stream), "hipStreamDestroy");
  kit_close(0);
}

/* ---- What it tells --------------------------------------------------------------------------------------------- */

/* Asked as the core asks, since a pointer may be an upstream's (HIPMM_PLUGIN_HANDS_ON). */
static void checks_stack_check_find(const struct instance *instance, char *ptr, size_t bytes)
{
  struct hipmm_block block = {NULL, 0};
  if (!instance->node->plugin->descriptor.ops->find) return;
  kit_expect_ok(instance_find(instance, ptr, &block), "find of a live block");
  if (block.ptr != ptr || block.bytes != bytes)
    kit_fail("find says %p and %zu bytes of a block of %zu bytes at %p", block.ptr, block.bytes, bytes, (void *)ptr);
  if (instance_find(instance, ptr + 1, &block) == HIPMM_OK) kit_fail("find finds a block inside of a block");
}

static void checks_stack_visit_extent(void *closure, const struct hipmm_extent *extent)
{
  uint64_t *live_bytes = closure;
  if (!extent->ptr || extent->state < HIPMM_EXTENT_LIVE || extent->state > HIPMM_EXTENT_CACHED)
    kit_fail("visit shows an extent at %p in the state %u", extent->ptr, extent->state);
  if (extent->state == HIPMM_EXTENT_LIVE) *live_bytes += extent->bytes;
}

static void checks_stack_count_line(void *closure, const char *line)
{
  *(size_t *)closure += line != NULL;
}

static void checks_stack_query_all(const struct hipmm_plugin *plugin)
{
  for (uint32_t i = 0; i < plugin->n_values; i++) {
    int64_t value = INT64_MIN;
    char what[200];
    snprintf(what, sizeof what, "query of the value %.100s", plugin->values[i].name);
    kit_expect_ok(hipmm_resource_query(kit_resource, plugin->values[i].name, &value), what);
    if (value == INT64_MIN) kit_fail("%s succeeds, and writes no value", what);
  }
}

static void checks_stack_perform_all(const struct hipmm_plugin *plugin)
{
  for (uint32_t i = 0; i < plugin->n_actions; i++) {
    char what[200];
    snprintf(what, sizeof what, "the action %.100s", plugin->actions[i].name);
    kit_expect_ok(hipmm_resource_perform(kit_resource, plugin->actions[i].name), what);
  }
}

static void checks_stack_end_process(const struct hipmm_ops *ops, void *self)
{
  kit_expect_ok(ops->process_end(self, HIPMM_PROCESS_EXITS), "process_end as the process exits");
  kit_expect_ok(ops->process_end(self, HIPMM_PROCESS_ENDED), "process_end as the process has ended");
}

static void checks_stack_tells(void)
{
  const struct hipmm_plugin *plugin = kit_resource_plugin();
  uint64_t live_bytes = 0;
  size_t lines = 0;
  kit_open("threads");
  const struct instance *instance = instance_from(kit_resource);
  const struct hipmm_ops *ops = instance->resource.ops;
  void *self = instance->resource.self;
  char *ptr = kit_allocate(3000, HIPMM_ALIGNMENT, NULL);
  checks_stack_query_all(plugin);
  if (ptr) checks_stack_check_find(instance, ptr, 3000);
  kit_expect_ok(ops->visit(self, checks_stack_visit_extent, &live_bytes), "visit");
  if (ptr && live_bytes && live_bytes < 3000)
    kit_fail("visit shows %llu live bytes, and 3000 are", (unsigned long long)live_bytes);
  if (plugin->ops->report) kit_expect_ok(ops->report(self, checks_stack_count_line, &lines), "report");
  if (plugin->ops->process_end) checks_stack_end_process(ops, self);
  if (ptr) kit_free(ptr, 3000, NULL);
  checks_stack_perform_all(plugin);
  kit_expect_ok(hipmm_resource_trim(kit_resource, 0), "trim");
  kit_close(0);
}

/* ---- Streams and threads --------------------------------------------------------------------------------------- */

/* Random programs, whose streams write a pattern into each block and read it back (model.h). */
static void checks_stack_run_model(struct model model)
{
  enum { SEEDS = 3 };
  model.resources = kit_resources();
  model.runtime = "\"pageable_memory_access\": true, ";
  model.region_bytes = (size_t)64 << 20;
  model.may_fail = model.keeps_memory = model.is_plain = true;
  model.by_host = kit_is_host_memory();
  for (uint64_t seed = 1; seed <= SEEDS; seed++) {
    struct model_result result = model_run(&model, seed);
    if (result.failure[0]) kit_fail("%s (%s, seed %llu)", result.failure, model.name, (unsigned long long)seed);
    if (!result.allocations) kit_skip("it allocates nothing here");
  }
}

static void checks_stack_streams(void)
{
  checks_stack_run_model((struct model){.name = "streams step by step",
                                        .scheduler = "stepped",
                                        .threads = 1,
                                        .streams = 6,
                                        .operations = 600,
                                        .most_bytes = 65536});
}

static void checks_stack_threads(void)
{
  checks_stack_run_model((struct model){
      .name = "4 threads", .scheduler = "threads", .threads = 4, .streams = 4, .operations = 200, .most_bytes = 65536});
}

/* ---- Graph captures ----------------------------------------------------------------------------------------------- */

/* A function of the software device; hipmm itself captures nothing. */
static int checks_stack_capture(const char *name, hipmm_stream_t stream, void *argument)
{
  int (*call)(hipmm_stream_t, void *);
  void *address = hip_symbol(name);
  memcpy(&call, &address, sizeof call);
  return call ? call(stream, argument) : HIPMM_HIP_ERROR_NOT_SUPPORTED;
}

/* A call may be refused in a capture. */
static void checks_stack_expect_capture(hipmm_stream_t stream, enum hipmm_status status, const char *what)
{
  enum { ACTIVE = 1 };
  int state = 0;
  if (status && status != HIPMM_E_STATE && !hipmm_is_out_of_memory(status))
    kit_expect_refusal(status, HIPMM_E_STATE, what);
  if (hip_table()->StreamIsCapturing(stream, &state) || state != ACTIVE) kit_fail("%s ends the capture", what);
}

static void checks_stack_captures(void)
{
  enum { ON_IT, ELSEWHERE, INSIDE, N };
  static const char *const frees[N] = {"a free on the stream that is captured", "a free on another stream",
                                       "a free of what was allocated in the capture"};
  void *ptrs[N] = {NULL}, *graph = NULL;
  hipmm_stream_t stream;
  kit_open("threads");
  kit_expect_ok(hipmm_stream_create(0, HIPMM_STREAM_NON_BLOCKING, &stream), "stream_create");
  ptrs[ON_IT] = kit_allocate(1000, HIPMM_ALIGNMENT, stream);
  ptrs[ELSEWHERE] = kit_allocate(1000, HIPMM_ALIGNMENT, NULL);
  kit_expect_hip(checks_stack_capture("hipStreamBeginCapture", stream, NULL), "hipStreamBeginCapture");
  enum hipmm_status status = hipmm_allocate(kit_resource, 1000, stream, &ptrs[INSIDE]);
  checks_stack_expect_capture(stream, status, "an allocation on the stream that is captured");
  for (int i = 0; i < N; i++) {
    if (!ptrs[i]) continue;
    status = hipmm_deallocate(kit_resource, ptrs[i], 1000, i == ELSEWHERE ? NULL : stream);
    checks_stack_expect_capture(stream, status, frees[i]);
    if (!status) ptrs[i] = NULL;
  }
  status = hipmm_allocate(kit_resource, 1000, NULL, &ptrs[ELSEWHERE]);
  checks_stack_expect_capture(stream, status, "an allocation on another stream");
  checks_stack_expect_capture(stream, hipmm_resource_trim(kit_resource, 0), "trim");
  kit_expect_hip(checks_stack_capture("hipStreamEndCapture", stream, &graph), "hipStreamEndCapture");
  kit_expect_hip(checks_stack_capture("hipGraphDestroy", graph, NULL), "hipGraphDestroy");
  for (int i = 0; i < N; i++)
    if (ptrs[i]) kit_free(ptrs[i], 1000, i == ELSEWHERE ? NULL : stream);
  kit_expect_ok(hipmm_resource_trim(kit_resource, 0), "trim");
  kit_expect_ok(hipmm_stream_destroy(stream), "stream_destroy");
  kit_close(0);
}

/* ---- The end --------------------------------------------------------------------------------------------------- */

/* Blocks that are the upstream's are left to it; all other resources free what is live. */
static void checks_stack_leaks(void)
{
  enum { N = 20, LEFT = 5 };
  const struct hipmm_plugin *plugin = kit_resource_plugin();
  void *ptrs[N];
  size_t left = 0;
  kit_open("threads");
  for (size_t i = 0; i < N; i++) ptrs[i] = kit_allocate(i * 900 + 1, HIPMM_ALIGNMENT, NULL);
  for (size_t i = 0; i < N; i++) {
    if (ptrs[i] && i >= LEFT) kit_free(ptrs[i], i * 900 + 1, NULL);
    left += ptrs[i] && i < LEFT;
  }
  bool are_upstreams = plugin->role == HIPMM_ROLE_ADAPTOR || plugin->flags & HIPMM_PLUGIN_HANDS_ON;
  kit_close(are_upstreams ? left : 0);
}

const struct kit_check kit_checks_stack[] = {
    {"sizes", "without ops->find, pointers and sizes are the upstream's, unchanged",
     "pass `bytes`, `stream` and the pointer on as they are, or add ops->find", checks_stack_sizes},
    {"values", "query, perform, find, visit, report, process_end and trim work, for all that the descriptor lists",
     "add the op, or take the row out of the descriptor", checks_stack_tells},
    {"streams", "memory is reused on another stream only after the work there is over",
     "remember the stream of each free; for another stream wait for an event recorded there at or after the free, or "
     "leave the block",
     checks_stack_streams},
    {"threads", "all ops can be called by several threads at once",
     "take a lock around shared data, or set HIPMM_PLUGIN_NOT_THREAD_SAFE", checks_stack_threads},
    {"captures", "no call ends a graph capture of a stream",
     "ask hipmm_stream_is_captured() before each call of HIP that waits for the stream, records an event there, or "
     "makes it wait; then refuse with HIPMM_E_STATE, keep the block aside, or ask the upstream",
     checks_stack_captures},
    {"leaks", "destroy gives all memory back, also of blocks that are still live",
     "free in destroy every block of the upstream, and all memory of services->host_allocate with its size",
     checks_stack_leaks},
    {.name = NULL},
};
