/* SPDX-License-Identifier: MIT */
/* Sweeps (sweep.h) over stacks of all types: every HIP call, allocation of host memory and call on a file of a workload
 * fails once. What is allocated keeps its data, what could not be done can be done when it is tried again, and in the end
 * everything has been given back.
 *
 * The workload's own HIP calls are of functions that hipmm does not use in it (`own_calls`), so that a failure on
 * schedule always hits hipmm. It works on device 1 while device 0 is current, with streams that run as late as they
 * can. */
#include "../../core/plugin/plugin.h"
#include "../../core/runtime/hip.h"
#include "../../tools/command/plugin/program.h"
#include "../support/support.h"
#include "sweep.h"

#include <errno.h>
#include <hipmm/inspect.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEVICE = 1, BLOCKS = 24, COPIES = 64, COPIED_BYTES = 4096 };

struct block {
  char *ptr;
  size_t bytes;
  int pattern;
};

struct workload {
  struct hipmm_resource *resource;
  hipmm_stream_t streams[2];
  struct block blocks[BLOCKS];
  struct copy *copies; /* pinned, or copying would wait for the stream */
  int n_copies;
  bool is_on_host; /* all memory is */
};

static struct workload workload;
static atomic_int lost_patterns;

/* ---- Steps ---- */

static void build(void)
{
  SWEEP_OUT(workload.resource, hipmm_resource_get_for_device, DEVICE);
}

/* What the stream has copied of a block, to be looked at by a host function behind the copy. Of plain host memory there
 * is no copy, which would be of what is there at the call. */
struct copy {
  const char *seen; /* the copy, or the block itself */
  int pattern;
  size_t bytes;
  char data[COPIED_BYTES];
};

static void check_pattern(void *closure)
{
  struct copy *copy = closure;
  for (size_t i = 0; i < copy->bytes; i++)
    if (copy->seen[i] != (char)copy->pattern) {
      atomic_fetch_add(&lost_patterns, 1);
      break;
    }
}

/* The head of a block, or its tail behind that. */
static void check_on_stream(const struct block *block, size_t offset, hipmm_stream_t stream)
{
  struct copy *copy = &workload.copies[workload.n_copies++];
  size_t bytes = block->bytes - offset;
  *copy = (struct copy){.pattern = block->pattern, .bytes = bytes < COPIED_BYTES ? bytes : COPIED_BYTES};
  copy->seen = workload.is_on_host ? block->ptr + offset : copy->data;
  if (!workload.is_on_host &&
      hip_table()->MemcpyAsync(copy->data, block->ptr + offset, copy->bytes, 2 /* to the host */, stream))
    sweep_note("hipMemcpyAsync");
  if (hip_table()->LaunchHostFunc(stream, check_pattern, copy)) sweep_note("hipLaunchHostFunc");
}

static size_t tail_of(const struct block *block)
{
  return block->bytes < COPIED_BYTES ? block->bytes : block->bytes - COPIED_BYTES;
}

static void check_block(const struct block *block, hipmm_stream_t stream)
{
  check_on_stream(block, 0, stream);
  if (tail_of(block) < block->bytes) check_on_stream(block, tail_of(block), stream);
}

static void fill(const struct block *block, hipmm_stream_t stream)
{
  size_t head = block->bytes < COPIED_BYTES ? block->bytes : COPIED_BYTES, tail = tail_of(block);
  if (hip_table()->MemsetAsync(block->ptr, block->pattern, head, stream) ||
      (tail < block->bytes && hip_table()->MemsetAsync(block->ptr + tail, block->pattern, block->bytes - tail, stream)))
    sweep_note("hipMemsetAsync");
}

static void expect_apart(const struct block *block)
{
  for (int i = 0; i < BLOCKS; i++) {
    const struct block *other = &workload.blocks[i];
    if (other->ptr && other->ptr < block->ptr + block->bytes && block->ptr < other->ptr + other->bytes)
      sweep_note("block %d is in block %d", block->pattern, other->pattern);
  }
}

static void allocate(int index, size_t bytes, int stream)
{
  struct block block = {NULL, bytes, index + 1};
  void *ptr = NULL;
  if (!workload.resource || SWEEP_OUT(ptr, hipmm_allocate, workload.resource, bytes, workload.streams[stream]) || !ptr)
    return;
  block.ptr = ptr;
  expect_apart(&block);
  fill(&block, workload.streams[stream]);
  workload.blocks[index] = block;
}

/* Only on the stream that the block was used on: nothing else orders it. A free that fails leaves the block as it is. */
static void deallocate(int index, int stream_index, bool knows_size)
{
  struct block *block = &workload.blocks[index];
  hipmm_stream_t stream = workload.streams[stream_index];
  size_t bytes = knows_size ? block->bytes : 0;
  if (!block->ptr) return;
  check_block(block, stream);
  sweep_mark("hipmm_deallocate");
  if (sweep_has_failed("hipmm_deallocate", hipmm_deallocate(workload.resource, block->ptr, bytes, stream))) {
    check_block(block, stream);
    sweep_again("hipmm_deallocate", hipmm_deallocate(workload.resource, block->ptr, bytes, stream));
  }
  block->ptr = NULL;
}

static void trim(size_t keep_bytes)
{
  if (workload.resource) SWEEP(hipmm_resource_trim, workload.resource, keep_bytes);
}

static void count_extent(void *arg, const struct hipmm_extent *extent)
{
  *(size_t *)arg += extent->state == HIPMM_EXTENT_LIVE;
}

static void ignore_value(void *arg, const struct hipmm_value *value)
{
  (void)arg, (void)value;
}

/* What can be asked of a resource, without a change to it. */
static void inspect(void)
{
  char *json = NULL;
  size_t n_live = 0, held = 0;
  if (!workload.resource) return;
  if (!SWEEP_OUT_ONLY(json, hipmm_snapshot)) hipmm_string_free(json);
  SWEEP(hipmm_resource_visit_values, workload.resource, ignore_value, NULL);
  SWEEP(hipmm_resource_visit_blocks, workload.resource, count_extent, &n_live);
  SWEEP(hipmm_device_held_bytes, DEVICE, &held, NULL);
  SWEEP(hipmm_resource_reset_peaks, workload.resource);
}

/* An option that may change while the resource is in use; NULL: none is set. */
struct setting {
  const char *option, *value;
};

/* Grows, reuses on the same stream and across streams, trims, retires a stream, and leaves two blocks behind. */
static void run_steps(size_t unit, const struct setting *setting)
{
  build();
  allocate(0, unit, 0);
  if (setting->option) SWEEP(hipmm_set, setting->option, setting->value);
  allocate(1, 4 * unit, 0);
  deallocate(0, 0, true);
  allocate(2, unit, 1);
  allocate(3, 16 * unit, 1);
  deallocate(1, 0, true);
  allocate(4, 4 * unit, 1);
  deallocate(2, 1, true);
  deallocate(3, 1, false);
  trim(0);
  allocate(5, 20 * unit, 0);
  for (int i = 0; i < 12; i++) allocate(6 + i, unit / 3 + 1, i % 2);
  for (int i = 0; i < 12; i += 3) deallocate(6 + i, i % 2, true);
  for (int i = 0; i < 12; i += 3) allocate(6 + i, unit / 2, i % 2);
  deallocate(5, 0, false);
  allocate(18, 8 * unit, 1);
  hipmm_stream_retire(DEVICE, workload.streams[0]);
  for (int i = 0; i < 12; i++)
    if (i % 2 == 1) deallocate(6 + i, 1, true);
  allocate(19, 30 * unit, 1);
  inspect();
  deallocate(18, 1, true);
  deallocate(19, 1, true);
  trim(unit);
  for (int i = 0; i < 10; i += 2) deallocate(6 + i, 0, true);
}

/* ---- A run ---- */

struct stack {
  const char *name, *stack; /* an array, or an object of resources */
  size_t unit;
  size_t region_bytes; /* of a region that the program brings; 0: none */
  bool reaches_host;   /* the devices can use all host memory, and this is in it */
  struct setting setting;
};

static const char *const own_calls[] = {"hipMemsetAsync", "hipMemcpyAsync", "hipLaunchHostFunc", NULL};

static void begin(const void *argument)
{
  const struct stack *stack = argument;
  char graph[1000];
  workload = (struct workload){.is_on_host = stack->reaches_host};
  atomic_store(&lost_patterns, 0);
  snprintf(graph, sizeof graph,
           "{\"runtime\": {\"type\": \"software\", \"devices\": 2, \"memory\": \"256MiB\", \"scheduler\": \"stepped\", "
           "\"seed\": 5, \"granularity\": \"128KiB\", \"pageable_memory_access\": %s}, \"%s\": %s}",
           stack->reaches_host ? "true" : "false", *stack->stack == '{' ? "resources" : "stack", stack->stack);
  if (hipmm_init_from_string(graph)) sweep_note("initialisation: %s", hipmm_last_error_message());
  hip_table()->SetDevice(DEVICE);
  for (int i = 0; i < 2; i++) hip_table()->StreamCreateWithFlags(&workload.streams[i], HIPMM_HIP_STREAM_NON_BLOCKING);
  program_begin(stack->region_bytes);
  hip_table()->HostMalloc((void **)&workload.copies, COPIES * sizeof *workload.copies, HIPMM_HIP_HOST_MALLOC_PORTABLE);
  hip_table()->SetDevice(0);
}

static void run(const void *argument)
{
  const struct stack *stack = argument;
  run_steps(stack->unit, &stack->setting);
  hipmm_resource_release(workload.resource);
  SWEEP(hipmm_finalize);
}

static void end(const void *argument)
{
  uint64_t elsewhere = 0;
  (void)argument;
  software()->live(0, &elsewhere, NULL);
  if (elsewhere) sweep_note("%llu blocks are on the wrong device", (unsigned long long)elsewhere);
  hip_table()->SetDevice(DEVICE);
  hip_table()->DeviceSynchronize();
  hip_table()->HostFree(workload.copies);
  program_end();
  if (atomic_load(&lost_patterns)) sweep_note("%d blocks lost their pattern", atomic_load(&lost_patterns));
  for (int i = 0; i < 2; i++) hip_table()->StreamDestroy(workload.streams[i]);
  hip_table()->SetDevice(0);
}

/* ---- Sweeps ---- */

static char recorder[200]; /* a stack that records into a file of this process */

static const struct stack stacks[] = {
    {"device", "[\"device\"]", .unit = 30000},
    {"managed", "[\"managed\"]", .unit = 30000},
    {"pinned", "[\"pinned\"]", .unit = 30000},
    {"pinned, mapped", "[{\"type\": \"pinned\", \"numa_node\": \"0\", \"huge_pages\": \"off\"}]", .unit = 30000},
    {"host", "[\"host\"]", .unit = 30000, .reaches_host = true},
    {"system", "[\"system\"]", .unit = 30000, .reaches_host = true},
    {"sam_headroom", "[{\"type\": \"sam_headroom\", \"headroom\": \"255MiB\"}]", .unit = 30000, .reaches_host = true},
    {"umf", "[\"umf\"]", .unit = 30000, .reaches_host = true},
    {"async", "[\"async\"]", .unit = 30000},
    {"async, for other processes",
     "[{\"type\": \"async\", \"handle_type\": \"posix_fd\", \"peers\": [{\"device\": 0}], "
     "\"initial_pool_size\": \"1MiB\"}]",
     .unit = 30000},
    {"async_view", "[{\"type\": \"async_view\", \"pool\": \"current\"}]", .unit = 30000},
    {"async_managed", "[\"async_managed\"]", .unit = 30000},
    {"async_pinned", "[\"async_pinned\"]", .unit = 30000},
    {"callback", "[{\"type\": \"callback\", \"allocator\": \"program\"}]", .unit = 30000},
    {"fixed_buffer", "[{\"type\": \"fixed_buffer\", \"region\": \"region\"}]", .unit = 30000, .region_bytes = 4 * MIB},
    {"fixed_buffer, on_free", "[{\"type\": \"fixed_buffer\", \"region\": \"region\", \"record\": \"on_free\"}]",
     .unit = 30000, .region_bytes = 4 * MIB},
    {"pool, mapped, auto", "[{\"type\": \"pool\", \"growth\": \"mapped\", \"initial_size\": \"256KiB\"}, \"device\"]",
     .unit = 30000},
    {"pool, mapped, lazy", "[{\"type\": \"pool\", \"growth\": \"mapped\", \"record\": \"lazy\"}, \"device\"]",
     .unit = 30000},
    {"pool, mapped, on_free", "[{\"type\": \"pool\", \"growth\": \"mapped\", \"record\": \"on_free\"}, \"device\"]",
     .unit = 30000},
    {"pool, exportable, auto", "[{\"type\": \"pool\", \"growth\": \"mapped\", \"exportable\": true}, \"device\"]",
     .unit = 600000},
    {"small pool, exportable, lazy",
     "[{\"type\": \"pool\", \"exportable\": true, \"record\": \"lazy\", \"maximum_size\": \"48MiB\"}, \"device\"]",
     .unit = 600000},
    {"pool, for drivers' handles, auto", "[{\"type\": \"pool\", \"ipc\": \"legacy\"}, \"device\"]", .unit = 600000},
    {"small pool, mapped, auto",
     "[{\"type\": \"pool\", \"growth\": \"mapped\", \"maximum_size\": \"2MiB\"}, \"device\"]", .unit = 30000},
    {"pool, segments, auto", "[{\"type\": \"pool\", \"growth\": \"segments\", \"initial_size\": \"1MiB\"}, \"device\"]",
     .unit = 80000},
    {"pool, segments, on_free", "[{\"type\": \"pool\", \"growth\": \"segments\", \"record\": \"on_free\"}, \"device\"]",
     .unit = 80000},
    {"prefetch", "[\"prefetch\", \"pool\", \"managed\"]", .unit = 80000},
    {"advise", "[{\"type\": \"advise\", \"read_mostly\": true, \"accessed_by\": [\"cpu\", \"0\"]}, \"managed\"]",
     .unit = 30000, .setting = {"devices/1/advise/preferred_location", "device"}},
    {"pool on async", "[\"pool\", \"async\"]", .unit = 80000},
    {"arena, auto", "[{\"type\": \"arena\", \"arena_size\": \"1MiB\"}, \"device\"]", .unit = 80000},
    {"arena, on_free", "[{\"type\": \"arena\", \"record\": \"on_free\"}, \"device\"]", .unit = 30000},
    {"small arena, lazy", "[{\"type\": \"arena\", \"record\": \"lazy\", \"maximum_size\": \"48MiB\"}, \"device\"]",
     .unit = 50000},
    {"fixed_size", "[{\"type\": \"fixed_size\", \"block_size\": \"32KiB\", \"blocks_per_chunk\": 4}, \"device\"]",
     .unit = 1000},
    {"binning",
     "[{\"type\": \"binning\", \"bins\": [{\"size\": \"32KiB\"}, {\"size\": \"64KiB\"}]}, \"pool\", \"device\"]",
     .unit = 30000, .setting = {"devices/1/binning/extra_bins", "[{\"size\": \"16KiB\"}]"}},
    {"monotonic", "[{\"type\": \"monotonic\", \"initial_size\": \"64KiB\"}, \"device\"]", .unit = 30000},
    {"monotonic, on_free", "[{\"type\": \"monotonic\", \"record\": \"on_free\"}, \"pool\", \"device\"]", .unit = 30000},
    {"adaptors",
     "[\"statistics\", {\"type\": \"limiting\", \"limit\": \"64MiB\"}, \"thread_safe\", \"pool\", \"device\"]",
     .unit = 30000},
    {"aligned, tracking", "[{\"type\": \"aligned\", \"alignment\": 8192}, \"tracking\", \"pool\", \"device\"]",
     .unit = 30000},
    {"hooks, tracking of stacks",
     "[{\"type\": \"hooks\", \"hooks\": \"program\"}, {\"type\": \"tracking\", \"stacks\": \"all\", \"stack_sample\": "
     "0}, \"pool\", "
     "\"device\"]",
     .unit = 30000},
    {"logging, fault", "[\"logging\", {\"type\": \"fault\", \"above\": \"1GiB\"}, \"pool\", \"device\"]",
     .unit = 30000},
    {"hooks", "[{\"type\": \"hooks\", \"hooks\": \"program\"}, \"pool\", \"device\"]", .unit = 30000},
    {"recording", recorder, .unit = 30000},
    {"failure_callback",
     "[{\"type\": \"failure_callback\", \"callback\": \"program\"}, {\"type\": \"pool\", \"growth\": \"segments\"}, "
     "\"device\"]",
     .unit = 30000},
    {"fallback",
     "{\"top\": {\"type\": \"fallback\", \"upstream\": [\"narrow\", \"wide\"]}, "
     "\"narrow\": {\"type\": \"limiting\", \"limit\": \"256KiB\", \"upstream\": \"pool\"}, "
     "\"pool\": {\"type\": \"pool\", \"upstream\": \"memory\"}, \"memory\": {\"type\": \"device\"}, "
     "\"wide\": {\"type\": \"arena\", \"upstream\": \"more\"}, \"more\": {\"type\": \"device\"}}",
     .unit = 30000},
    {"spilling", "[{\"type\": \"spilling\", \"folder\": \"/tmp\"}, \"pool\", \"device\"]", .unit = 30000},
    {"reserving", "[{\"type\": \"reserving\", \"limit\": \"64MiB\"}, \"pool\", \"device\"]", .unit = 30000},
    {"guard", "[\"guard\", \"pool\", \"device\"]", .unit = 30000},
    {"guard that keeps little",
     "[{\"type\": \"guard\", \"quarantine_size\": \"200KiB\", \"stacks\": \"all\", \"stack_sample\": 0}, \"device\"]",
     .unit = 10000},
    {"pool on a guard", "[{\"type\": \"pool\", \"growth\": \"segments\"}, \"guard\", \"device\"]", .unit = 80000},
};

static void sweeps(void **state)
{
  const struct stack *stack = *state;
  const struct sweep_scenario scenario = {.name = stack->name,
                                          .begin = begin,
                                          .run = run,
                                          .end = end,
                                          .argument = stack,
                                          .reason = "the program's allocator",
                                          .own_calls = own_calls};
  sweep_over(&scenario);
}

static const struct hipmm_plugin *swept_nowhere; /* a type that no stack has */

static void look_for_stack(void *closure, const struct plugin_candidate *candidate)
{
  char word[100];
  (void)closure;
  if (!candidate->plugin || candidate->shadowed) return;
  const struct hipmm_plugin *plugin = &candidate->plugin->descriptor;
  if (plugin->role == HIPMM_ROLE_RUNTIME) return;
  snprintf(word, sizeof word, "\"%s\"", plugin->type);
  for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++)
    if (strstr(stacks[i].stack, word)) return;
  /* These are in functions_process.c, and in tests/plugins/test_served.c, which has a server. */
  if (strcmp(plugin->type, "async_import") != 0 && strcmp(plugin->type, "served") != 0) swept_nowhere = plugin;
}

static void has_a_stack_for_every_type(void **state)
{
  (void)state;
  plugin_scan(NULL, look_for_stack, NULL);
  if (swept_nowhere) fail_msg("%s is in no stack of this file", swept_nowhere->type);
}

/* ---- Failures that go on ---- */

/* Whether the allocation fails where there is no more host memory from its step `nth` on. */
static bool fails_from(uint64_t nth, size_t bytes, void **ptr_out)
{
  interpose_begin_lasting(INTERPOSE_MEMORY, nth, ENOMEM);
  enum hipmm_status status = hipmm_allocate(workload.resource, bytes, workload.streams[0], ptr_out);
  interpose_end();
  if (status && status != HIPMM_E_OUT_OF_MEMORY) sweep_note("hipmm_allocate: %s", hipmm_last_error_message());
  return status != HIPMM_OK;
}

/* Whether there is such a step. */
static bool fail_again_and_again(const struct stack *stack, uint64_t nth)
{
  enum { TRIES = 70 };
  size_t bytes = 30 * stack->unit;
  void *ptr = NULL;
  begin(stack);
  build();
  bool fails = fails_from(nth, bytes, &ptr), is_there = interpose_has_failed();
  for (int i = 1; fails && i < TRIES; i++) fails = fails_from(nth, bytes, &ptr);
  if (fails && hipmm_allocate(workload.resource, bytes, workload.streams[0], &ptr))
    sweep_note("after %d failures at step %llu: %s", TRIES, (unsigned long long)nth, hipmm_last_error_message());
  if (ptr && hipmm_deallocate(workload.resource, ptr, 0, workload.streams[0]))
    sweep_note("hipmm_deallocate: %s", hipmm_last_error_message());
  hipmm_resource_release(workload.resource);
  if (hipmm_finalize()) sweep_note("hipmm_finalize: %s", hipmm_last_error_message());
  end(stack);
  software()->reset();
  return is_there;
}

/* What fails again and again uses nothing up: the attempt after many succeeds. */
static void keeps_nothing_of_failures(void **state)
{
  uint64_t nth = 1;
  interpose_prepare();
  sweep_begin_alone();
  while (fail_again_and_again(*state, nth)) nth++;
  assert_string_equal(sweep_failure(), "");
}

/* ---- Failures before there is a stack ---- */

static void init_can_be_tried_again(void **state)
{
  (void)state;
  static const char *const names[] = {"hipGetDeviceCount:1", "hipGetDeviceCount:2", "hipRuntimeGetVersion:1"};
  int failures = 0;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char graph[200];
    snprintf(graph, sizeof graph,
             "{\"runtime\": {\"type\": \"software\", \"fail\": [\"%s\"]}, \"stack\": [\"device\"]}", names[i]);
    if (hipmm_init_from_string(graph)) {
      failures++;
      assert_string_not_equal(hipmm_last_error_message(), "");
      software()->fail_none();
      assert_ok(hipmm_init_from_string("{\"runtime\": \"software\"}"));
    }
    assert_ok(hipmm_finalize());
    software()->fail_none();
  }
  assert_in_range(failures, 1, 3);
}

/* For the type `logging`, which finds it in the environment. */
static char log_folder[] = "/tmp/hipmm-fault-XXXXXX";

static void make_log_file(void)
{
  char file[100];
  if (!mkdtemp(log_folder)) exit(99);
  snprintf(recorder, sizeof recorder, "[{\"type\": \"recording\", \"file\": \"%s/record\"}, \"pool\", \"device\"]",
           log_folder);
  snprintf(file, sizeof file, "%s/log.csv", log_folder);
  setenv("RMM_LOG_FILE", file, 1);
}

static void remove_log_file(void)
{
  char file[100];
  unlink(getenv("RMM_LOG_FILE"));
  snprintf(file, sizeof file, "%s/log.dev%d.csv", log_folder, DEVICE);
  unlink(file);
  snprintf(file, sizeof file, "%s/record", log_folder);
  unlink(file);
  rmdir(log_folder);
}

static void hear(void *arg, const struct hipmm_event *event)
{
  (void)arg, (void)event;
}

int main(void)
{
  const struct hipmm_hooks hooks = {.struct_size = sizeof hooks, .callback = hear};
  log_to_file("error");
  make_log_file();
  if (hipmm_hooks_register("program", &hooks)) return 99;
  enum { STACKS = sizeof stacks / sizeof *stacks };
  struct CMUnitTest tests[2 + 2 * STACKS] = {cmocka_unit_test(init_can_be_tried_again),
                                             cmocka_unit_test(has_a_stack_for_every_type)};
  size_t n = 2;
  for (size_t i = 0; i < 2 * STACKS; i++)
    tests[n++] = (struct CMUnitTest){.name = stacks[i / 2].name,
                                     .test_func = i % 2 ? keeps_nothing_of_failures : sweeps,
                                     .initial_state = (void *)(uintptr_t)&stacks[i / 2]};
  int failed_tests = _cmocka_run_group_tests("fault", tests, n, NULL, NULL);
  sweep_print_sums();
  remove_log_file();
  return failed_tests;
}
