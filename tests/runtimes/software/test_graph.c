/* SPDX-License-Identifier: MIT */
/* test_graph.c: graphs captured from streams: what becomes a node, memory that nodes allocate and free, launches in the
 * order of their dependencies, and what a capture forbids. */
#include "device.h"
#include <pthread.h>
#include <stdlib.h>

static void begin(hipStream_t stream)
{
  assert_ok(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
}

static hipGraphExec_t instantiate(hipGraph_t graph)
{
  hipGraphExec_t instance;
  assert_ok(hipGraphInstantiate(&instance, graph, NULL, NULL, 0));
  return instance;
}

/* Ends the capture of the stream, and makes an instance that outlives the graph. */
static hipGraphExec_t end(hipStream_t stream)
{
  hipGraph_t graph;
  assert_ok(hipStreamEndCapture(stream, &graph));
  hipGraphExec_t instance = instantiate(graph);
  assert_ok(hipGraphDestroy(graph));
  return instance;
}

static void run(hipGraphExec_t instance, hipStream_t stream)
{
  assert_ok(hipGraphLaunch(instance, stream));
  assert_ok(hipStreamSynchronize(stream));
}

static uint64_t amount(int attribute)
{
  uint64_t value = UINT64_MAX;
  assert_ok(hipDeviceGetGraphMemAttribute(0, (hipGraphMemAttributeType)attribute, &value));
  return value;
}

enum { USED, USED_HIGH, RESERVED, RESERVED_HIGH };

static void copies_and_fills_run_at_each_launch(void **state)
{
  (void)state;
  hipStream_t stream = create_stream();
  char *memory = allocate(1000), source[1000], result[1000] = "";
  int ran = 0;
  assert_ok(hipMemset(memory, 9, 1000));
  assert_ok(hipDeviceSynchronize());
  begin(stream);
  assert_ok(hipMemcpyAsync(memory, source, 500, hipMemcpyHostToDevice, stream));
  assert_ok(hipMemsetAsync(memory + 500, 7, 500, stream));
  assert_ok(hipLaunchHostFunc(stream, count_up, &ran));
  assert_ok(hipMemcpyAsync(result, memory, 1000, hipMemcpyDeviceToHost, stream));
  hipGraphExec_t instance = end(stream);
  assert_ok(hipDeviceSynchronize());
  assert_true(is_filled(memory, 9, 1000));
  for (int i = 1; i <= 3; i++) {
    memset(source, i, sizeof source);
    run(instance, stream);
    assert_true(is_filled(result, i, 500) && is_filled(result + 500, 7, 500));
    assert_int_equal(ran, i);
  }
  assert_ok(hipGraphExecDestroy(instance));
  assert_ok(hipFree(memory));
  assert_ok(hipStreamDestroy(stream));
}

static void memory_of_a_graph_is_there_in_each_launch(void **state)
{
  (void)state;
  hipStream_t stream = create_stream();
  char *memory, result[1000];
  begin(stream);
  assert_ok(hipMallocAsync((void **)&memory, 5000, stream));
  assert_ok(hipMemsetAsync(memory, 3, 5000, stream));
  assert_ok(hipMemcpyAsync(result, memory + 4000, 1000, hipMemcpyDeviceToHost, stream));
  assert_ok(hipFreeAsync(memory, stream));
  assert_hip(hipFreeAsync(memory, stream), hipErrorInvalidValue);
  hipGraphExec_t instance = end(stream);
  assert_int_equal(amount(USED), 8192);
  for (int i = 0; i < 3; i++) {
    memset(result, 0, sizeof result);
    run(instance, stream);
    assert_true(is_filled(result, 3, sizeof result));
  }
  assert_ok(hipGraphExecDestroy(instance));
  assert_int_equal(amount(USED), 0);
  assert_int_equal(amount(RESERVED), 8192);
  assert_ok(hipDeviceGraphMemTrim(0));
  assert_int_equal(amount(RESERVED), 0);
  assert_int_equal(amount(RESERVED_HIGH), 8192);
  uint64_t zero = 0;
  assert_ok(hipDeviceSetGraphMemAttribute(0, (hipGraphMemAttributeType)RESERVED_HIGH, &zero));
  assert_int_equal(amount(RESERVED_HIGH), 0);
  assert_ok(hipStreamDestroy(stream));
}

static void nodes_use_memory_again_that_a_node_before_them_freed(void **state)
{
  (void)state;
  hipStream_t stream = create_stream(), other = create_stream();
  hipEvent_t fork, join;
  void *one, *two, *parallel;
  assert_ok(hipEventCreate(&fork));
  assert_ok(hipEventCreate(&join));
  begin(stream);
  assert_ok(hipEventRecord(fork, stream));
  assert_ok(hipStreamWaitEvent(other, fork, 0));
  assert_ok(hipMallocAsync(&one, MIB, stream));
  assert_ok(hipMemsetAsync(one, 1, MIB, stream));
  assert_ok(hipFreeAsync(one, stream));
  assert_ok(hipMallocAsync(&parallel, MIB, other));
  assert_ok(hipMallocAsync(&two, MIB, stream));
  assert_ptr_equal(two, one);
  assert_ptr_not_equal(parallel, one);
  assert_ok(hipMemsetAsync(two, 2, MIB, stream));
  assert_ok(hipMemsetAsync(parallel, 3, MIB, other));
  assert_ok(hipFreeAsync(two, stream));
  assert_ok(hipFreeAsync(parallel, other));
  assert_ok(hipEventRecord(join, other));
  assert_ok(hipStreamWaitEvent(stream, join, 0));
  hipGraphExec_t instance = end(stream);
  assert_int_equal(amount(USED), 2 * MIB);
  for (int i = 0; i < 5; i++) run(instance, stream);
  assert_ok(hipGraphExecDestroy(instance));
  assert_ok(hipEventDestroy(fork));
  assert_ok(hipEventDestroy(join));
  assert_ok(hipStreamDestroy(stream));
  assert_ok(hipStreamDestroy(other));
}

static void memory_that_the_graph_does_not_free_is_freed_by_a_call(void **state)
{
  (void)state;
  hipStream_t stream = create_stream();
  char *memory;
  begin(stream);
  assert_ok(hipMallocAsync((void **)&memory, 1000, stream));
  assert_ok(hipMemsetAsync(memory, 5, 1000, stream));
  hipGraphExec_t instance = end(stream);
  assert_hip(hipFreeAsync(memory, stream), hipErrorInvalidValue); /* no launch has allocated it */
  assert_hip(hipFree(memory), hipErrorInvalidValue);
  run(instance, stream);
  assert_true(is_filled(memory, 5, 1000));
  assert_hip(hipGraphLaunch(instance, stream), hipErrorInvalidValue);
  assert_ok(hipFreeAsync(memory, stream));
  assert_hip(hipFreeAsync(memory, stream), hipErrorInvalidValue);
  run(instance, stream);
  assert_ok(hipFree(memory));
  assert_ok(hipGraphLaunch(instance, stream));
  assert_ok(hipGraphExecDestroy(instance)); /* the memory stays, as it was not freed */
  assert_ok(hipStreamSynchronize(stream));
  assert_true(is_filled(memory, 5, 1000));
  assert_ok(hipFreeAsync(memory, stream));
  assert_ok(hipStreamSynchronize(stream));
  assert_hip(hipFree(memory), hipErrorInvalidValue);
  assert_int_equal(amount(USED), 0);
  assert_ok(hipStreamDestroy(stream));
}

/* hipFree() waits for the work of the device before the memory goes. */
static void a_call_that_frees_memory_of_a_graph_waits(void **state)
{
  (void)state;
  hipStream_t stream = create_stream();
  char *memory;
  begin(stream);
  assert_ok(hipMallocAsync((void **)&memory, 1000, stream));
  hipGraphExec_t instance = end(stream);
  run(instance, stream);
  assert_ok(hipMemsetAsync(memory, 6, 1000, stream));
  assert_ok(hipFree(memory));
  assert_int_equal(hipmm_software_pending(), 0);
  assert_ok(hipStreamSynchronize(stream));
  assert_ok(hipGraphExecDestroy(instance));
  assert_ok(hipStreamDestroy(stream));
}

static void memory_can_be_freed_by_the_next_launch(void **state)
{
  (void)state;
  hipStream_t stream = create_stream();
  hipGraph_t graph;
  hipGraphExec_t instance, second;
  void *memory;
  begin(stream);
  assert_ok(hipMallocAsync(&memory, 1000, stream));
  assert_ok(hipMemsetAsync(memory, 5, 1000, stream));
  assert_ok(hipStreamEndCapture(stream, &graph));
  assert_ok(hipGraphInstantiateWithFlags(&instance, graph, hipGraphInstantiateFlagAutoFreeOnLaunch));
  assert_hip(hipGraphInstantiateWithFlags(&second, graph, 0), hipErrorNotSupported);
  for (int i = 0; i < 3; i++) assert_ok(hipGraphLaunch(instance, stream));
  assert_ok(hipStreamSynchronize(stream));
  assert_ok(hipFree(memory));
  assert_ok(hipGraphExecDestroy(instance));
  assert_ok(hipGraphInstantiateWithFlags(&second, graph, 0));
  assert_ok(hipGraphExecDestroy(second));
  assert_ok(hipGraphDestroy(graph));
  assert_ok(hipStreamDestroy(stream));
}

static void launches_of_one_instance_do_not_overlap(void **state)
{
  (void)state;
  hipStream_t first = create_stream(), second = create_stream();
  char *memory;
  char *kept = allocate(1000);
  begin(first);
  assert_ok(hipMallocAsync((void **)&memory, 1000, first));
  assert_ok(hipMemsetAsync(memory, 5, 1000, first));
  assert_ok(hipMemcpyAsync(kept, memory, 1000, hipMemcpyDeviceToDevice, first));
  assert_ok(hipFreeAsync(memory, first));
  hipGraphExec_t instance = end(first);
  for (int i = 0; i < 5; i++) assert_ok(hipGraphLaunch(instance, i % 2 ? first : second));
  assert_ok(hipGraphExecDestroy(instance)); /* while it runs */
  assert_ok(hipDeviceSynchronize());
  assert_true(is_filled(kept, 5, 1000));
  assert_ok(hipFree(kept));
  assert_ok(hipStreamDestroy(first));
  assert_ok(hipStreamDestroy(second));
}

static void a_use_after_the_free_is_a_fault(void **state)
{
  (void)state;
  hipStream_t stream = create_stream(), other = create_stream();
  hipEvent_t fork, join;
  char *memory;
  assert_ok(hipEventCreate(&fork));
  assert_ok(hipEventCreate(&join));
  begin(stream);
  assert_ok(hipMallocAsync((void **)&memory, 1000, stream));
  assert_ok(hipEventRecord(fork, stream));
  assert_ok(hipStreamWaitEvent(other, fork, 0));
  assert_ok(hipMemsetAsync(memory, 5, 1000, other)); /* in parallel to the free */
  assert_ok(hipFreeAsync(memory, stream));
  assert_ok(hipEventRecord(join, other));
  assert_ok(hipStreamWaitEvent(stream, join, 0));
  hipGraphExec_t instance = end(stream);
  uint64_t faults = 0;
  for (int i = 0; i < 20 && !faults; i++) {
    assert_ok(hipGraphLaunch(instance, stream));
    (void)!hipStreamSynchronize(stream);
    faults = hipmm_software_faults(0);
  }
  assert_true(faults > 0); /* the stepped scheduler draws the wrong order sooner or later */
}

/* ---- The state of a capture ------------------------------------------------------------------------------------ */

static hipStreamCaptureStatus status_of(hipStream_t stream)
{
  hipStreamCaptureStatus status = (hipStreamCaptureStatus)-1;
  assert_ok(hipStreamIsCapturing(stream, &status));
  return status;
}

static void a_stream_says_whether_it_captures(void **state)
{
  (void)state;
  hipStream_t stream = create_stream(), other = create_stream();
  hipEvent_t fork;
  hipStreamCaptureStatus status;
  unsigned long long id = 0, same = 0;
  hipGraph_t graph, ended;
  const hipGraphNode_t *nodes;
  size_t count = 9;
  char *memory = allocate(100);
  assert_ok(hipEventCreate(&fork));
  assert_int_equal(status_of(stream), hipStreamCaptureStatusNone);
  begin(stream);
  assert_hip(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal), hipErrorIllegalState);
  assert_int_equal(status_of(stream), hipStreamCaptureStatusActive);
  assert_int_equal(status_of(other), hipStreamCaptureStatusNone);
  assert_ok(hipEventRecord(fork, stream));
  assert_ok(hipStreamWaitEvent(other, fork, 0));
  assert_int_equal(status_of(other), hipStreamCaptureStatusActive);
  assert_ok(hipStreamGetCaptureInfo(stream, &status, &id));
  assert_ok(hipMemsetAsync(memory, 1, 100, stream));
  assert_ok(hipStreamGetCaptureInfo_v2(stream, &status, &same, &graph, &nodes, &count));
  assert_true(id > 0 && same == id);
  assert_int_equal(count, 1);
  assert_hip(hipGraphDestroy(graph), hipErrorIllegalState);
  assert_hip(hipStreamEndCapture(other, &ended), hipErrorStreamCaptureUnmatched);
  assert_ok(hipStreamEndCapture(stream, &ended));
  assert_ptr_equal(ended, graph);
  assert_int_equal(status_of(stream), hipStreamCaptureStatusNone);
  assert_int_equal(status_of(other), hipStreamCaptureStatusNone);
  assert_ok(hipGraphGetNodes(ended, NULL, &count));
  assert_int_equal(count, 1);
  assert_hip(hipStreamEndCapture(stream, &ended), hipErrorIllegalState);
  assert_hip(hipStreamBeginCapture(NULL, hipStreamCaptureModeGlobal), hipErrorStreamCaptureUnsupported);
  assert_ok(hipGraphDestroy(graph));
  assert_hip(hipGraphDestroy(graph), hipErrorInvalidValue);
  assert_ok(hipEventDestroy(fork));
  assert_ok(hipFree(memory));
  assert_ok(hipStreamDestroy(stream));
  assert_ok(hipStreamDestroy(other));
}

static void a_stream_that_forks_must_join(void **state)
{
  (void)state;
  hipStream_t stream = create_stream(), other = create_stream();
  hipEvent_t fork;
  hipGraph_t graph;
  char *memory = allocate(100);
  assert_ok(hipEventCreate(&fork));
  begin(stream);
  assert_ok(hipMemsetAsync(memory, 1, 100, stream));
  assert_ok(hipEventRecord(fork, stream));
  assert_ok(hipStreamEndCapture(stream, &graph));
  assert_hip(hipEventQuery(fork), hipErrorCapturedEvent);
  assert_ok(hipGraphDestroy(graph));
  begin(stream);
  assert_ok(hipEventRecord(fork, stream));
  assert_ok(hipStreamWaitEvent(other, fork, 0));
  assert_ok(hipMemsetAsync(memory, 1, 100, other));
  assert_hip(hipStreamEndCapture(stream, &graph), hipErrorStreamCaptureUnjoined);
  assert_null(graph);
  assert_int_equal(status_of(other), hipStreamCaptureStatusNone);
  assert_hip(hipEventQuery(fork), hipErrorCapturedEvent);
  assert_ok(hipEventRecord(fork, stream));
  assert_ok(hipEventSynchronize(fork));
  assert_ok(hipEventDestroy(fork));
  assert_ok(hipFree(memory));
  assert_ok(hipStreamDestroy(stream));
  assert_ok(hipStreamDestroy(other));
}

/* Calls that end a capture, on the stream that captures. */
static hipError_t wait_for(hipStream_t stream)
{
  return hipStreamSynchronize(stream);
}

static hipError_t query(hipStream_t stream)
{
  return hipStreamQuery(stream);
}

static hipError_t wait_for_device(hipStream_t stream)
{
  (void)stream;
  return hipDeviceSynchronize();
}

static hipError_t allocate_memory(hipStream_t stream)
{
  void *memory;
  (void)stream;
  return hipMalloc(&memory, 100);
}

static hipError_t copy_and_wait(hipStream_t stream)
{
  char from[4] = "abc", to[4];
  return hipMemcpyWithStream(to, from, 4, hipMemcpyDefault, stream);
}

static void a_call_that_is_forbidden_ends_the_capture(void **state)
{
  (void)state;
  hipError_t (*const calls[])(hipStream_t) = {wait_for, query, wait_for_device, allocate_memory, copy_and_wait};
  hipStream_t stream = create_stream();
  hipGraph_t graph;
  char *memory = allocate(100);
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    begin(stream);
    assert_hip(calls[i](stream), hipErrorStreamCaptureUnsupported);
    assert_int_equal(status_of(stream), hipStreamCaptureStatusInvalidated);
    assert_hip(hipMemsetAsync(memory, 1, 100, stream), hipErrorStreamCaptureInvalidated);
    assert_hip(hipStreamEndCapture(stream, &graph), hipErrorStreamCaptureInvalidated);
    assert_null(graph);
  }
  assert_ok(hipMemsetAsync(memory, 1, 100, stream));
  assert_ok(hipStreamSynchronize(stream));
  assert_true(is_filled(memory, 1, 100));
  assert_ok(hipFree(memory));
  assert_ok(hipStreamDestroy(stream));
}

static void the_default_stream_would_wait_for_a_capture(void **state)
{
  (void)state;
  hipStream_t blocking, other = create_stream();
  hipGraph_t graph;
  hipStreamCaptureStatus status;
  char *memory = allocate(100);
  assert_ok(hipStreamCreate(&blocking));
  begin(blocking);
  assert_hip(hipStreamIsCapturing(NULL, &status), hipErrorStreamCaptureImplicit);
  assert_int_equal(status_of(blocking), hipStreamCaptureStatusActive);
  assert_hip(hipMemsetAsync(memory, 1, 100, NULL), hipErrorStreamCaptureImplicit);
  assert_hip(hipStreamEndCapture(blocking, &graph), hipErrorStreamCaptureInvalidated);
  begin(other);
  assert_ok(hipMemsetAsync(memory, 1, 100, NULL)); /* no blocking stream captures */
  assert_ok(hipStreamEndCapture(other, &graph));
  assert_ok(hipGraphDestroy(graph));
  assert_ok(hipFree(memory));
  assert_ok(hipStreamDestroy(blocking));
  assert_ok(hipStreamDestroy(other));
}

struct attempt {
  hipStreamCaptureMode mode;
  hipStream_t stream;
  hipError_t allocated, ended;
};

static void *attempt_in_thread(void *argument)
{
  struct attempt *attempt = argument;
  void *memory = NULL;
  hipGraph_t graph;
  (void)!hipThreadExchangeStreamCaptureMode(&attempt->mode);
  attempt->allocated = hipMalloc(&memory, 100);
  (void)!hipFree(memory);
  attempt->ended = hipStreamEndCapture(attempt->stream, &graph);
  return NULL;
}

static struct attempt in_thread(hipStream_t stream, hipStreamCaptureMode mode)
{
  pthread_t thread;
  struct attempt attempt = {.mode = mode, .stream = stream};
  assert_int_equal(pthread_create(&thread, NULL, attempt_in_thread, &attempt), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  return attempt;
}

/* The most telling of several reasons is given. */
static void forbidden_calls_have_the_error_of_their_reason(void **state)
{
  (void)state;
  hipStream_t blocking;
  hipEvent_t event;
  hipGraph_t graph;
  char *memory = allocate(100), local[100] = "";
  assert_ok(hipStreamCreate(&blocking));
  assert_ok(hipEventCreate(&event));
  begin(blocking);
  assert_ok(hipEventRecord(event, blocking));
  assert_hip(hipEventQuery(event), hipErrorCapturedEvent);
  assert_hip(hipEventSynchronize(event), hipErrorCapturedEvent);
  assert_ok(hipStreamEndCapture(blocking, &graph));
  assert_ok(hipGraphDestroy(graph));
  begin(blocking);
  assert_hip(hipMemcpy(memory, local, 100, hipMemcpyHostToDevice), hipErrorStreamCaptureImplicit);
  assert_hip(hipMemset(memory, 0, 100), hipErrorStreamCaptureImplicit);
  assert_hip(hipStreamEndCapture(blocking, &graph), hipErrorStreamCaptureInvalidated);
  assert_ok(hipEventDestroy(event));
  assert_ok(hipFree(memory));
  assert_ok(hipStreamDestroy(blocking));
}

static void a_graph_can_be_empty(void **state)
{
  (void)state;
  hipGraph_t graph;
  assert_hip(hipGraphCreate(&graph, 1), hipErrorInvalidValue);
  assert_hip(hipGraphCreate(NULL, 0), hipErrorInvalidValue);
  assert_ok(hipGraphCreate(&graph, 0));
  hipGraphExec_t instance = instantiate(graph);
  assert_ok(hipGraphLaunch(instance, NULL));
  assert_ok(hipDeviceSynchronize());
  assert_ok(hipGraphExecDestroy(instance));
  assert_ok(hipGraphDestroy(graph));
}

static void the_modes_say_what_other_threads_may_do(void **state)
{
  (void)state;
  hipStream_t stream = create_stream();
  hipGraph_t graph;
  static const struct {
    hipStreamCaptureMode capture, thread;
    bool is_allowed;
  } rows[] = {
      {hipStreamCaptureModeGlobal, hipStreamCaptureModeGlobal, false},
      {hipStreamCaptureModeGlobal, hipStreamCaptureModeThreadLocal, true},
      {hipStreamCaptureModeGlobal, hipStreamCaptureModeRelaxed, true},
      {hipStreamCaptureModeThreadLocal, hipStreamCaptureModeGlobal, true},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_ok(hipStreamBeginCapture(stream, rows[i].capture));
    struct attempt attempt = in_thread(stream, rows[i].thread);
    assert_hip(attempt.allocated, rows[i].is_allowed ? hipSuccess : hipErrorStreamCaptureUnsupported);
    assert_hip(attempt.ended, hipErrorStreamCaptureWrongThread);
    assert_hip(hipStreamEndCapture(stream, &graph), rows[i].is_allowed ? hipSuccess : hipErrorStreamCaptureInvalidated);
    if (rows[i].is_allowed) assert_ok(hipGraphDestroy(graph));
  }
  assert_ok(hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed));
  assert_hip(in_thread(stream, hipStreamCaptureModeGlobal).ended, hipSuccess);
  assert_ok(hipStreamDestroy(stream));
}

static void captures_do_not_mix(void **state)
{
  (void)state;
  hipStream_t one = create_stream(), other = create_stream(), plain = create_stream();
  hipEvent_t event;
  hipGraph_t graph;
  assert_ok(hipEventCreate(&event));
  assert_ok(hipStreamBeginCapture(one, hipStreamCaptureModeRelaxed));
  assert_ok(hipStreamBeginCapture(other, hipStreamCaptureModeRelaxed));
  assert_ok(hipEventRecord(event, one));
  assert_hip(hipStreamWaitEvent(other, event, 0), hipErrorStreamCaptureMerge);
  assert_hip(hipStreamEndCapture(other, &graph), hipErrorStreamCaptureInvalidated);
  assert_ok(hipEventRecord(event, plain));
  assert_hip(hipStreamWaitEvent(one, event, 0), hipErrorStreamCaptureIsolation);
  assert_hip(hipStreamEndCapture(one, &graph), hipErrorStreamCaptureInvalidated);
  assert_ok(hipEventDestroy(event));
  assert_ok(hipStreamDestroy(one));
  assert_ok(hipStreamDestroy(other));
  assert_ok(hipStreamDestroy(plain));
}

static void a_stream_that_captures_can_be_destroyed(void **state)
{
  (void)state;
  hipStream_t stream = create_stream();
  void *memory;
  begin(stream);
  assert_ok(hipMallocAsync(&memory, 1000, stream));
  assert_ok(hipStreamDestroy(stream));
  assert_int_equal(amount(USED), 0);
}

static void a_reset_frees_graphs(void **state)
{
  (void)state;
  hipStream_t stream = create_stream();
  hipGraph_t graph;
  void *one, *two;
  begin(stream);
  assert_ok(hipMallocAsync(&one, 1000, stream));
  assert_ok(hipStreamEndCapture(stream, &graph));
  assert_ok(hipGraphLaunch(instantiate(graph), stream));
  begin(stream);
  assert_ok(hipMallocAsync(&two, 1000, stream));
  hipmm_software_reset();
  assert_hip(hipGraphDestroy(graph), hipErrorInvalidValue);
  assert_int_equal(amount(RESERVED), 0);
}

/* ---- What is refused ------------------------------------------------------------------------------------------- */

static void nothing_is_added_to_a_capture_that_is_invalid(void **state)
{
  (void)state;
  hipStream_t stream = create_stream(), other = create_stream();
  hipEvent_t event;
  hipGraph_t graph;
  void *refused;
  char *memory = allocate(100);
  assert_ok(hipEventCreate(&event));
  begin(stream);
  assert_ok(hipEventRecord(event, stream));
  assert_hip(query(stream), hipErrorStreamCaptureUnsupported);
  assert_hip(hipStreamWaitEvent(other, event, 0), hipErrorStreamCaptureInvalidated);
  assert_int_equal(status_of(other), hipStreamCaptureStatusNone);
  assert_hip(hipEventRecord(event, stream), hipErrorStreamCaptureInvalidated);
  assert_hip(hipMallocAsync(&refused, 65 * MIB, stream), hipErrorStreamCaptureInvalidated);
  assert_hip(hipFreeAsync(memory, stream), hipErrorStreamCaptureInvalidated);
  assert_hip(hipStreamEndCapture(stream, &graph), hipErrorStreamCaptureInvalidated);
  assert_ok(hipMemset(memory, 1, 100)); /* it was not freed */
  assert_ok(hipDeviceSynchronize());
  assert_ok(hipFree(memory));
  assert_ok(hipEventDestroy(event));
  assert_ok(hipStreamDestroy(stream));
  assert_ok(hipStreamDestroy(other));
}

static void see_nothing(hipStream_t stream, hipError_t status, void *argument)
{
  (void)stream, (void)status, (void)argument;
}

static void wrong_captures_are_refused(void **state)
{
  (void)state;
  int local = 0;
  hipStream_t stream = create_stream(), wrong = (hipStream_t)&local;
  hipEvent_t event;
  hipGraph_t graph = NULL;
  hipGraphExec_t instance = NULL;
  hipStreamCaptureStatus status;
  unsigned long long id = 7;
  const hipGraphNode_t *nodes = NULL;
  size_t count = 7;
  void *memory = allocate(100);
  assert_ok(hipEventCreate(&event));
  assert_hip(hipStreamBeginCapture(stream, (hipStreamCaptureMode)3), hipErrorInvalidValue);
  assert_hip(hipStreamBeginCapture(stream, (hipStreamCaptureMode)-1), hipErrorInvalidValue);
  assert_hip(hipStreamBeginCapture(wrong, hipStreamCaptureModeGlobal), hipErrorInvalidHandle);
  assert_hip(hipStreamEndCapture(wrong, &graph), hipErrorInvalidHandle);
  assert_hip(hipStreamIsCapturing(wrong, &status), hipErrorInvalidHandle);
  assert_hip(hipStreamIsCapturing(stream, NULL), hipErrorInvalidValue);
  assert_hip(hipStreamGetCaptureInfo_v2(wrong, &status, &id, &graph, &nodes, &count), hipErrorInvalidHandle);
  assert_ok(hipStreamGetCaptureInfo_v2(stream, &status, &id, &graph, &nodes, &count));
  assert_int_equal(status, hipStreamCaptureStatusNone);
  assert_true(id == 7 && !graph && !nodes && count == 7);
  begin(stream);
  assert_hip(hipStreamEndCapture(stream, NULL), hipErrorInvalidValue);
  assert_hip(hipFreeAsync(memory, stream), hipErrorInvalidValue); /* as it is of no graph */
  assert_ok(hipStreamGetCaptureInfo_v2(stream, &status, &id, &graph, &nodes, &count));
  assert_hip(hipGraphInstantiate(&instance, graph, NULL, NULL, 0), hipErrorIllegalState);
  assert_null(instance);
  assert_ok(hipEventRecord(event, stream));
  assert_hip(hipStreamWaitEvent(NULL, event, 0), hipErrorStreamCaptureImplicit);
  assert_int_equal(status_of(stream), hipStreamCaptureStatusActive);
  assert_hip(hipStreamAddCallback(stream, see_nothing, NULL, 0), hipErrorStreamCaptureUnsupported);
  assert_hip(hipStreamEndCapture(stream, &graph), hipErrorStreamCaptureInvalidated);
  assert_ok(hipFree(memory));
  assert_ok(hipEventDestroy(event));
  assert_ok(hipStreamDestroy(stream));
}

static void wrong_graphs_and_instances_are_refused(void **state)
{
  (void)state;
  int local = 0;
  size_t count;
  uint64_t value;
  hipGraph_t graph, wrong = (hipGraph_t)&local;
  hipGraphExec_t instance = NULL;
  hipGraphNode_t node;
  hipStream_t stream = create_stream();
  assert_ok(hipGraphCreate(&graph, 0));
  assert_hip(hipGraphInstantiate(NULL, graph, NULL, NULL, 0), hipErrorInvalidValue);
  assert_hip(hipGraphInstantiate(&instance, wrong, NULL, NULL, 0), hipErrorInvalidValue);
  assert_hip(hipGraphInstantiateWithFlags(&instance, graph, 16), hipErrorInvalidValue);
  assert_null(instance);
  assert_hip(hipGraphGetNodes(wrong, &node, &count), hipErrorInvalidValue);
  assert_hip(hipGraphGetNodes(graph, &node, NULL), hipErrorInvalidValue);
  assert_hip(hipDeviceGetGraphMemAttribute(1000000, (hipGraphMemAttributeType)USED, &value), hipErrorInvalidDevice);
  assert_hip(hipDeviceGetGraphMemAttribute(0, (hipGraphMemAttributeType)9, &value), hipErrorInvalidValue);
  assert_hip(hipDeviceGetGraphMemAttribute(0, (hipGraphMemAttributeType)USED, NULL), hipErrorInvalidValue);
  instance = instantiate(graph);
  assert_hip(hipGraphLaunch(instance, (hipStream_t)&local), hipErrorInvalidHandle);
  begin(stream);
  assert_hip(hipGraphLaunch(instance, stream), hipErrorStreamCaptureUnsupported);
  assert_ok(hipStreamDestroy(stream));
  assert_ok(hipGraphExecDestroy(instance));
  assert_ok(hipGraphDestroy(graph));
}

/* ---- What a capture leaves alone ------------------------------------------------------------------------------- */

static void another_device_is_waited_for_beside_a_capture(void **state)
{
  (void)state;
  hipStream_t stream = create_stream();
  hipGraph_t graph;
  assert_ok(hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed));
  assert_ok(hipSetDevice(1));
  assert_ok(hipDeviceSynchronize());
  assert_ok(hipSetDevice(0));
  assert_ok(hipStreamEndCapture(stream, &graph));
  assert_ok(hipGraphDestroy(graph));
  assert_ok(hipStreamDestroy(stream));
}

/* The copy runs at a launch only, so the call does not wait for what the stream has. */
static void a_copy_to_the_host_waits_for_nothing_in_a_capture(void **state)
{
  (void)state;
  hipStream_t stream = create_stream();
  char *memory = allocate(100), result[100];
  assert_ok(hipMemsetAsync(memory, 1, 100, stream));
  begin(stream);
  assert_ok(hipMemcpyAsync(result, memory, 100, hipMemcpyDeviceToHost, stream));
  assert_int_equal(hipmm_software_pending(), 1);
  hipGraphExec_t instance = end(stream);
  assert_ok(hipGraphExecDestroy(instance));
  assert_ok(hipDeviceSynchronize());
  assert_ok(hipFree(memory));
  assert_ok(hipStreamDestroy(stream));
}

/* First without a node that it depends on, then with one. */
static void a_stream_may_join_a_capture_again_and_again(void **state)
{
  (void)state;
  hipStream_t stream = create_stream(), other = create_stream();
  hipEvent_t event;
  hipStreamCaptureStatus status;
  const hipGraphNode_t *nodes;
  size_t count = 0;
  char *memory = allocate(100);
  assert_ok(hipEventCreate(&event));
  for (size_t n_nodes = 0; n_nodes < 2; n_nodes++) {
    begin(stream);
    if (n_nodes) assert_ok(hipMemsetAsync(memory, 1, 100, stream));
    assert_ok(hipEventRecord(event, stream));
    for (int i = 0; i < 3; i++) assert_ok(hipStreamWaitEvent(other, event, 0));
    assert_ok(hipStreamGetCaptureInfo_v2(other, &status, NULL, NULL, &nodes, &count));
    assert_int_equal(status, hipStreamCaptureStatusActive);
    assert_int_equal(count, n_nodes);
    hipGraphExec_t instance = end(stream);
    assert_ok(hipGraphExecDestroy(instance));
  }
  assert_ok(hipEventDestroy(event));
  assert_ok(hipFree(memory));
  assert_ok(hipStreamDestroy(stream));
  assert_ok(hipStreamDestroy(other));
}

#define BOTH(test)                                         \
  {#test " (threads)", test, start_threads, finish, NULL}, \
  {                                                        \
#test " (stepped)", test, start_stepped, finish, NULL  \
  }

int main(void)
{
  static const struct CMUnitTest tests[] = {
      BOTH(copies_and_fills_run_at_each_launch),
      BOTH(memory_of_a_graph_is_there_in_each_launch),
      BOTH(nodes_use_memory_again_that_a_node_before_them_freed),
      BOTH(memory_that_the_graph_does_not_free_is_freed_by_a_call),
      BOTH(a_call_that_frees_memory_of_a_graph_waits),
      BOTH(memory_can_be_freed_by_the_next_launch),
      BOTH(launches_of_one_instance_do_not_overlap),
      {"a use after the free is a fault", a_use_after_the_free_is_a_fault, start_stepped, finish_untidy, NULL},
      BOTH(a_stream_says_whether_it_captures),
      BOTH(a_stream_that_forks_must_join),
      BOTH(a_call_that_is_forbidden_ends_the_capture),
      BOTH(the_default_stream_would_wait_for_a_capture),
      BOTH(forbidden_calls_have_the_error_of_their_reason),
      BOTH(a_graph_can_be_empty),
      BOTH(the_modes_say_what_other_threads_may_do),
      BOTH(captures_do_not_mix),
      BOTH(a_stream_that_captures_can_be_destroyed),
      BOTH(a_reset_frees_graphs),
      BOTH(nothing_is_added_to_a_capture_that_is_invalid),
      BOTH(wrong_captures_are_refused),
      BOTH(wrong_graphs_and_instances_are_refused),
      BOTH(another_device_is_waited_for_beside_a_capture),
      {"a copy to the host waits for nothing in a capture", a_copy_to_the_host_waits_for_nothing_in_a_capture,
       start_stepped, finish, NULL},
      BOTH(a_stream_may_join_a_capture_again_and_again),
  };
  return cmocka_run_group_tests_name("software: graphs", tests, NULL, NULL);
}
