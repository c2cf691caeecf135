/* SPDX-License-Identifier: MIT */
/* Every HIP call that hipmm makes during a workload fails once, each in turn, over stacks of all types: what is
 * allocated keeps its data, what could not be done can be done when it is tried again, and in the end everything has
 * been given back. Of a function that is called more often than HIPMM_TEST_FAULTS, only so many calls fail, evenly
 * spread.
 *
 * The workload's own HIP calls are of functions that hipmm does not use (see `of_the_workload`), so that a failure on
 * schedule always hits hipmm. It works on device 1 while device 0 is current, with streams that run as late as they
 * can. */
#include "../../core/cmd/plugin/program.h"
#include "../../core/runtime/hip.h"
#include "../support/support.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEVICE = 1, BLOCKS = 24, COPIES = 64, COPIED_BYTES = 16384 };

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
  bool is_on_host;   /* all memory is */
  char failure[600]; /* the first thing that must not be; empty if none */
};

static struct workload workload;
static atomic_int lost_patterns;

static void note(const char *format, ...) HIPMM_PRINTF(1, 2);

static void note(const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  if (!workload.failure[0]) vsnprintf(workload.failure, sizeof workload.failure, format, arguments);
  va_end(arguments);
}

/* A call failed once; tried again it must do. */
static void expect_ok(const char *call, enum hipmm_status status)
{
  if (status) note("%s, tried again: %s: %s", call, hipmm_status_string(status), hipmm_last_error_message());
}

/* The record of a failure has a text. */
static bool failed(const char *call, enum hipmm_status status)
{
  if (status && !*hipmm_last_error_message()) note("%s fails without a word: %s", call, hipmm_status_string(status));
  return status != HIPMM_OK;
}

/* ---- Steps ---- */

static void build(void)
{
  if (failed("hipmm_resource_get_for_device", hipmm_resource_get_for_device(DEVICE, &workload.resource)))
    expect_ok("hipmm_resource_get_for_device", hipmm_resource_get_for_device(DEVICE, &workload.resource));
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

static void check_on_stream(const struct block *block, hipmm_stream_t stream)
{
  struct copy *copy = &workload.copies[workload.n_copies++];
  *copy = (struct copy){.pattern = block->pattern, .bytes = block->bytes < COPIED_BYTES ? block->bytes : COPIED_BYTES};
  copy->seen = workload.is_on_host ? block->ptr : copy->data;
  if (!workload.is_on_host &&
      hip_table()->MemcpyAsync(copy->data, block->ptr, copy->bytes, 2 /* to the host */, stream))
    note("hipMemcpyAsync");
  if (hip_table()->LaunchHostFunc(stream, check_pattern, copy)) note("hipLaunchHostFunc");
}

static void allocate(int index, size_t bytes, int stream)
{
  struct block *block = &workload.blocks[index];
  void *ptr = NULL;
  if (!workload.resource) return;
  if (failed("hipmm_allocate", hipmm_allocate(workload.resource, bytes, workload.streams[stream], &ptr))) {
    enum hipmm_status status = hipmm_allocate(workload.resource, bytes, workload.streams[stream], &ptr);
    expect_ok("hipmm_allocate", status);
  }
  if (!ptr) return;
  *block = (struct block){ptr, bytes, index + 1};
  if (hip_table()->MemsetAsync(ptr, block->pattern, bytes, workload.streams[stream])) note("hipMemsetAsync");
}

/* Only on the stream that the block was used on: nothing else orders it. */
static void deallocate(int index, int stream, bool knows_size)
{
  struct block *block = &workload.blocks[index];
  size_t bytes = knows_size ? block->bytes : 0;
  if (!block->ptr) return;
  check_on_stream(block, workload.streams[stream]);
  if (failed("hipmm_deallocate", hipmm_deallocate(workload.resource, block->ptr, bytes, workload.streams[stream])))
    expect_ok("hipmm_deallocate", hipmm_deallocate(workload.resource, block->ptr, bytes, workload.streams[stream]));
  block->ptr = NULL;
}

static void trim(size_t keep_bytes)
{
  if (!workload.resource) return;
  if (failed("hipmm_resource_trim", hipmm_resource_trim(workload.resource, keep_bytes)))
    expect_ok("hipmm_resource_trim", hipmm_resource_trim(workload.resource, keep_bytes));
}

/* Grows, reuses on the same stream and across streams, trims, retires a stream, and leaves two blocks behind. */
static void run_steps(size_t unit)
{
  build();
  allocate(0, unit, 0);
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
};

static const char *const of_the_workload[] = {"hipMemsetAsync",
                                              "hipMemcpyAsync",
                                              "hipLaunchHostFunc",
                                              "hipStreamCreateWithFlags",
                                              "hipStreamDestroy",
                                              "hipGetErrorName",
                                              NULL};

static void begin(const struct stack *stack)
{
  char graph[1000];
  workload = (struct workload){.is_on_host = stack->reaches_host};
  atomic_store(&lost_patterns, 0);
  snprintf(graph, sizeof graph,
           "{\"runtime\": {\"type\": \"software\", \"devices\": 2, \"memory\": \"256MiB\", \"scheduler\": \"stepped\", "
           "\"seed\": 5, \"granularity\": \"128KiB\", \"pageable_memory_access\": %s}, \"%s\": %s}",
           stack->reaches_host ? "true" : "false", *stack->stack == '{' ? "resources" : "stack", stack->stack);
  if (hipmm_init_from_string(graph)) note("initialisation: %s", hipmm_last_error_message());
  hip_table()->SetDevice(DEVICE);
  for (int i = 0; i < 2; i++) hip_table()->StreamCreateWithFlags(&workload.streams[i], HIPMM_HIP_STREAM_NON_BLOCKING);
  program_begin(stack->region_bytes);
  hip_table()->HostMalloc((void **)&workload.copies, COPIES * sizeof *workload.copies, HIPMM_HIP_HOST_MALLOC_PORTABLE);
  hip_table()->SetDevice(0);
  software()->reset_calls();
}

/* What must hold after finalize, whatever failed. */
static void check_balance(void)
{
  uint64_t elsewhere = 0, lost = live_on_all_devices(), faults = faults_on_all_devices();
  software()->live(0, &elsewhere, NULL);
  if (elsewhere) note("%llu blocks are on the wrong device", (unsigned long long)elsewhere);
  if (lost) note("%llu blocks or handles were not given back", (unsigned long long)lost);
  if (faults) note("%llu times work ran on memory that was gone", (unsigned long long)faults);
  if (atomic_load(&lost_patterns)) note("%d blocks lost their pattern", atomic_load(&lost_patterns));
}

/* Of the thread; hipmm changes it for some calls. */
static void check_capture_mode(void)
{
  enum { GLOBAL = 0 };
  int mode = GLOBAL;
  int (*exchange)(int *mode);
  void *address = hip_symbol("hipThreadExchangeStreamCaptureMode");
  memcpy(&exchange, &address, sizeof exchange);
  if (exchange(&mode) || mode != GLOBAL) note("the thread was left in capture mode %d", mode);
}

static void end(void)
{
  hipmm_resource_release(workload.resource);
  if (hipmm_finalize()) note("hipmm_finalize: %s", hipmm_last_error_message());
  software()->fail_none();
  int current = -1;
  if (hip_table()->GetDevice(&current) || current) note("device %d was left current", current);
  check_capture_mode();
  hip_table()->SetDevice(DEVICE);
  hip_table()->DeviceSynchronize();
  hip_table()->HostFree(workload.copies);
  program_end();
  check_balance();
  for (int i = 0; i < 2; i++) hip_table()->StreamDestroy(workload.streams[i]);
  software()->reset();
  hip_table()->SetDevice(0);
}

/* ---- Sweeps ---- */

static const struct stack stacks[] = {
    {"device", "[\"device\"]", .unit = 30000},
    {"managed", "[\"managed\"]", .unit = 30000},
    {"pinned", "[\"pinned\"]", .unit = 30000},
    {"host", "[\"host\"]", .unit = 30000, .reaches_host = true},
    {"system", "[\"system\"]", .unit = 30000, .reaches_host = true},
    {"sam_headroom", "[{\"type\": \"sam_headroom\", \"headroom\": \"255MiB\"}]", .unit = 30000, .reaches_host = true},
    {"async", "[\"async\"]", .unit = 30000},
    {"async, for other processes",
     "[{\"type\": \"async\", \"handle_type\": \"posix_fd\", \"peers\": [{\"device\": 0}], "
     "\"initial_pool_size\": \"1MiB\"}]",
     .unit = 30000},
    {"async_view", "[{\"type\": \"async_view\", \"pool\": \"current\"}]", .unit = 30000},
    {"async_managed", "[\"async_managed\"]", .unit = 30000},
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
    {"small pool, mapped, auto",
     "[{\"type\": \"pool\", \"growth\": \"mapped\", \"maximum_size\": \"2MiB\"}, \"device\"]", .unit = 30000},
    {"pool, segments, auto", "[{\"type\": \"pool\", \"growth\": \"segments\", \"initial_size\": \"1MiB\"}, \"device\"]",
     .unit = 80000},
    {"pool, segments, on_free", "[{\"type\": \"pool\", \"growth\": \"segments\", \"record\": \"on_free\"}, \"device\"]",
     .unit = 80000},
    {"prefetch", "[\"prefetch\", \"pool\", \"managed\"]", .unit = 80000},
    {"advise", "[{\"type\": \"advise\", \"read_mostly\": true, \"accessed_by\": [\"cpu\"]}, \"managed\"]",
     .unit = 30000},
    {"pool on async", "[\"pool\", \"async\"]", .unit = 80000},
    {"arena, auto", "[{\"type\": \"arena\", \"arena_size\": \"1MiB\"}, \"device\"]", .unit = 80000},
    {"arena, on_free", "[{\"type\": \"arena\", \"record\": \"on_free\"}, \"device\"]", .unit = 30000},
    {"small arena, lazy", "[{\"type\": \"arena\", \"record\": \"lazy\", \"maximum_size\": \"8MiB\"}, \"device\"]",
     .unit = 50000},
    {"fixed_size", "[{\"type\": \"fixed_size\", \"block_size\": \"32KiB\", \"blocks_per_chunk\": 4}, \"device\"]",
     .unit = 1000},
    {"binning",
     "[{\"type\": \"binning\", \"bins\": [{\"size\": \"32KiB\"}, {\"size\": \"64KiB\"}]}, \"pool\", \"device\"]",
     .unit = 30000},
    {"monotonic", "[{\"type\": \"monotonic\", \"initial_size\": \"64KiB\"}, \"device\"]", .unit = 30000},
    {"monotonic, on_free", "[{\"type\": \"monotonic\", \"record\": \"on_free\"}, \"pool\", \"device\"]", .unit = 30000},
    {"adaptors",
     "[\"statistics\", {\"type\": \"limiting\", \"limit\": \"64MiB\"}, \"thread_safe\", \"pool\", \"device\"]",
     .unit = 30000},
    {"aligned, tracking", "[{\"type\": \"aligned\", \"alignment\": 8192}, \"tracking\", \"pool\", \"device\"]",
     .unit = 30000},
    {"logging, fault", "[\"logging\", {\"type\": \"fault\", \"above\": \"1GiB\"}, \"pool\", \"device\"]",
     .unit = 30000},
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
    {"guard", "[\"guard\", \"pool\", \"device\"]", .unit = 30000},
    {"guard that keeps little", "[{\"type\": \"guard\", \"quarantine_size\": \"200KiB\"}, \"device\"]", .unit = 10000},
    {"pool on a guard", "[{\"type\": \"pool\", \"growth\": \"segments\"}, \"guard\", \"device\"]", .unit = 80000},
};

enum { MOST_NAMES = 200 };

/* What hipmm calls during the workload, and how often. */
struct calls {
  const char *names[MOST_NAMES];
  uint64_t counts[MOST_NAMES];
  size_t n;
};

static bool is_among(const char *const *names, const char *name)
{
  while (names && *names && strcmp(*names, name) != 0) names++;
  return names && *names;
}

static struct calls count_calls(const struct stack *stack)
{
  struct calls calls = {.n = 0};
  uint64_t count;
  const char *name;
  begin(stack);
  run_steps(stack->unit);
  hipmm_resource_release(workload.resource);
  hipmm_finalize();
  for (size_t i = 0; (name = software()->call(i, &count)); i++) {
    if (!count || is_among(of_the_workload, name)) continue;
    calls.names[calls.n] = name;
    calls.counts[calls.n++] = count;
  }
  workload.resource = NULL;
  return calls;
}

static void sweeps(void **state)
{
  const struct stack *stack = *state;
  struct calls calls = count_calls(stack);
  software()->reset();
  if (workload.failure[0]) fail_msg("%s", workload.failure);
  uint64_t runs = 0, most = number_from_environment("HIPMM_TEST_FAULTS", 50);
  assert_true(most);
  char failures[2000] = "";
  for (size_t i = 0; i < calls.n; i++) {
    for (uint64_t nth = 1; nth <= calls.counts[i]; nth += calls.counts[i] / most + 1) {
      begin(stack);
      assert_true(software()->schedule(calls.names[i], nth, 0));
      run_steps(stack->unit);
      end();
      runs++;
      size_t used = strlen(failures);
      if (workload.failure[0])
        snprintf(failures + used, sizeof failures - used, "\n  call %llu of %s fails: %s", (unsigned long long)nth,
                 calls.names[i], workload.failure);
    }
  }
  if (failures[0]) fail_msg("%s", failures);
  assert_in_range(runs, 1, 100000);
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
  snprintf(file, sizeof file, "%s/log.csv", log_folder);
  setenv("RMM_LOG_FILE", file, 1);
}

static void remove_log_file(void)
{
  char file[100];
  unlink(getenv("RMM_LOG_FILE"));
  snprintf(file, sizeof file, "%s/log.dev%d.csv", log_folder, DEVICE);
  unlink(file);
  rmdir(log_folder);
}

int main(void)
{
  log_to_file("error");
  make_log_file();
  struct CMUnitTest tests[1 + sizeof stacks / sizeof *stacks] = {cmocka_unit_test(init_can_be_tried_again)};
  size_t n = 1;
  for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++)
    tests[n++] = (struct CMUnitTest){
        .name = stacks[i].name, .test_func = sweeps, .initial_state = (void *)(uintptr_t)&stacks[i]};
  int failed_tests = _cmocka_run_group_tests("fault", tests, n, NULL, NULL);
  remove_log_file();
  return failed_tests;
}
