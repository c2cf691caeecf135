/* SPDX-License-Identifier: MIT */
/* checks_stack.c: checks of the plugin as a part of a stack: the calls to its upstream, its values and reports, trims, and
 * its end. */
#include "../../../core/runtime/hip.h"
#include "../../../core/stack/instance.h"
#include "kit.h"

#include <hipmm/stream.h>
#include <stdlib.h>
#include <string.h>

/* ---- What is passed on ----------------------------------------------------------------------------------------- */

static const char *checks_stack_name(hipmm_stream_t stream)
{
  if (!stream) return "the default stream";
  return stream == HIPMM_PER_THREAD_STREAM ? "the thread's default stream" : "a stream that was created";
}

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
  if (got->stream != stream)
    kit_fail("the allocation was on %s, and that of the upstream on %s", checks_stack_name(stream),
             checks_stack_name(got->stream));
  kit_free(ptr, bytes, stream);
  if (kit_probe_frees != frees + 1) kit_fail("a free is not passed on to the upstream");
  if (freed->ptr != ptr) kit_fail("%p was freed, and %p in the upstream", ptr, freed->ptr);
  if (freed->bytes != bytes && freed->bytes)
    kit_fail("%zu bytes were freed, and %zu in the upstream", bytes, freed->bytes);
  if (freed->stream != stream)
    kit_fail("the free was on %s, and that of the upstream on %s", checks_stack_name(stream),
             checks_stack_name(freed->stream));
}

/* An upstream may align more than it is asked to, so what comes of it says little. */
static void checks_stack_check_alignment(void)
{
  for (size_t alignment = HIPMM_ALIGNMENT; alignment <= 65536; alignment *= 2) {
    void *ptr = NULL;
    uint64_t calls = kit_probe_tries;
    enum hipmm_status status = hipmm_allocate_aligned(kit_resource, 1000, alignment, NULL, &ptr);
    if (kit_probe_tries != calls && kit_probe_alignment < alignment)
      kit_fail_with_mend("pass the alignment on as it is",
                         "an alignment of %zu bytes was asked for, and one of %zu of the upstream", alignment,
                         kit_probe_alignment);
    if (!status) kit_expect_ok(hipmm_deallocate_aligned(kit_resource, ptr, 1000, alignment, NULL), "its free");
  }
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
  checks_stack_check_passed_on(1000, HIPMM_PER_THREAD_STREAM);
  checks_stack_check_alignment();
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

/* What counts each allocation that succeeds counts none that fails, unless it says so. */
static void checks_stack_query_failures(const struct hipmm_plugin *plugin)
{
  enum { N = 8, MOST_VALUES = 64 };
  int64_t values[3][MOST_VALUES] = {{0}};
  void *ptrs[N];
  uint32_t n = plugin->n_values < MOST_VALUES ? plugin->n_values : MOST_VALUES;
  for (int moment = 0; moment < 3; moment++) {
    for (int i = 0; i < N && moment == 1; i++) ptrs[i] = kit_allocate(1000, HIPMM_ALIGNMENT, NULL);
    for (int i = 0; i < N && moment == 2; i++) (void)!kit_allocate(SIZE_MAX / 4, HIPMM_ALIGNMENT, NULL);
    for (uint32_t row = 0; row < n; row++)
      (void)!hipmm_resource_query(kit_resource, plugin->values[row].name, &values[moment][row]);
  }
  for (int i = 0; i < N; i++)
    if (ptrs[i]) kit_free(ptrs[i], 1000, NULL);
  for (uint32_t row = 0; row < n; row++)
    if (plugin->values[row].unit && !strcmp(plugin->values[row].unit, "allocations") &&
        !strstr(plugin->values[row].doc, "fail") && values[1][row] - values[0][row] == N &&
        values[2][row] != values[1][row])
      kit_fail_with_mend(
          "count an allocation after the upstream has given the memory, or say in its doc that it has those that fail",
          "the value %.100s grows by %d with %d allocations, and by %lld with %d that failed", plugin->values[row].name,
          N, N, (long long)(values[2][row] - values[1][row]), N);
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
  if (ptr) checks_stack_query_failures(plugin);
  checks_stack_perform_all(plugin);
  kit_expect_ok(hipmm_resource_trim(kit_resource, 0), "trim");
  kit_close(0);
}

/* ---- What a trim leaves ---------------------------------------------------------------------------------------- */

/* Nothing needs to be kept after a trim, unless the trim says so. */
static void checks_stack_keep(void)
{
  enum { N = 100 };
  static const size_t sizes[] = {1000, 40000, 300000};
  void *ptrs[N];
  if (!kit_resource_plugin()->max_upstreams) kit_skip("a source has no upstream");
  kit_open("threads");
  for (int i = 0; i < N; i++) ptrs[i] = kit_allocate(sizes[i % 3], HIPMM_ALIGNMENT, NULL);
  for (int i = 0; i < N; i++)
    if (ptrs[i]) kit_free(ptrs[i], sizes[i % 3], NULL);
  kit_expect_hip(hip_table()->DeviceSynchronize(), "hipDeviceSynchronize");
  const uint64_t held = kit_probe_live_bytes();
  if (!held) kit_skip("it keeps no free memory");
  const size_t keeps[] = {SIZE_MAX, (size_t)held};
  for (int i = 0; i < 2; i++) {
    kit_expect_ok(hipmm_resource_trim(kit_resource, keeps[i]), "trim");
    if (kit_probe_live_bytes() < held)
      kit_fail("a trim that is to keep %zu bytes leaves %llu of %llu", keeps[i],
               (unsigned long long)kit_probe_live_bytes(), (unsigned long long)held);
  }
  kit_expect_ok(hipmm_resource_trim(kit_resource, 0), "trim");
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
    {"sizes", "without ops->find, pointers, sizes, alignments and streams are the upstream's, unchanged",
     "pass `bytes`, `alignment`, `stream` and the pointer on as they are, or add ops->find", checks_stack_sizes},
    {"values", "query, perform, find, visit, report, process_end and trim work, for all that the descriptor lists",
     "add the op, or take the row out of the descriptor", checks_stack_tells},
    {"keep", "a trim leaves free memory with the resource, as far as `keep_bytes` says",
     "count what is free, and give back only what is above `keep_bytes`", checks_stack_keep},
    {"leaks", "destroy gives all memory back, also of blocks that are still live",
     "free in destroy every block of the upstream, and all memory of services->host_allocate with its size",
     checks_stack_leaks},
    {.name = NULL},
};
