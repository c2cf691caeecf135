/* SPDX-License-Identifier: MIT */
/* test_exhausted_graphs.c: graphs of the software device when the host has no memory and no thread left: a capture, a node, an
 * instance or a launch fails as a whole, and the same call then succeeds. */
#include "failures.h"

#include <string.h>

/* ---- Launches ---- */

/* Fills memory of its own, copies it out and counts; the memory is freed by the graph, or by its next launch. */
static hipGraphExec_t new_instance(bool is_freed, char *result, int *runs, void **memory_out)
{
  hipGraph_t graph;
  hipGraphExec_t instance;
  void *memory;
  hipStream_t stream = create_stream();
  assert_ok(hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed));
  assert_ok(hipMallocAsync(&memory, 4096, stream));
  assert_ok(hipMemsetAsync(memory, 7, 4096, stream));
  assert_ok(hipMemcpyAsync(result, memory, 4096, hipMemcpyDeviceToHost, stream));
  assert_ok(hipLaunchHostFunc(stream, count_up, runs));
  if (is_freed) assert_ok(hipFreeAsync(memory, stream));
  assert_ok(hipStreamEndCapture(stream, &graph));
  assert_ok(hipGraphInstantiateWithFlags(&instance, graph, is_freed ? 0 : hipGraphInstantiateFlagAutoFreeOnLaunch));
  assert_ok(hipGraphDestroy(graph));
  assert_ok(hipStreamDestroy(stream));
  *memory_out = memory;
  return instance;
}

/* The second launch waits for the first, and frees its memory. */
static void a_launch_runs_whole_or_not_at_all(void **state)
{
  (void)state;
  for (int is_freed = 0; is_freed < 2; is_freed++) {
    char result[4096] = {0};
    int runs = 0;
    void *memory;
    hipStream_t stream = create_stream();
    hipGraphExec_t instance = new_instance(is_freed, result, &runs, &memory);
    for (int launches = 1; launches <= 3; launches++) {
      assert_in_range(FAIL_EACH_STEP(hipGraphLaunch(instance, stream)), 5, 50);
      if (launches == 2) continue;
      assert_ok(hipStreamSynchronize(stream));
      assert_int_equal(runs, launches);
      assert_true(is_filled(result, 7, sizeof result));
      memset(result, 0, sizeof result);
    }
    if (!is_freed) assert_ok(hipFree(memory));
    assert_ok(hipGraphExecDestroy(instance));
    assert_ok(hipStreamDestroy(stream));
  }
}

/* Memory that a launch allocated stays until its free is in a stream. */
static void memory_of_a_graph_is_freed_or_not(void **state)
{
  (void)state;
  char result[4096];
  void *memory;
  int runs = 0;
  hipGraphExec_t instance = new_instance(false, result, &runs, &memory);
  for (int i = 0; i < 3; i++) {
    hipStream_t stream = create_stream_without_thread(hipStreamNonBlocking);
    assert_ok(hipGraphLaunch(instance, NULL));
    assert_ok(hipStreamSynchronize(NULL));
    assert_int_equal(FAIL_EACH_STEP(hipFreeAsync(memory, stream)),
                     software.config.scheduler == SOFTWARE_THREADS ? 2 : 1);
    assert_ok(hipStreamSynchronize(stream));
    assert_ok(hipStreamDestroy(stream));
  }
  assert_ok(hipGraphExecDestroy(instance));
}

/* ---- Captures and nodes ---- */

static hipGraph_t shared_graph;
static void *given; /* memory of a capture */
static char *plain;
static int n_runs;

static hipError_t capture_an_allocation(hipStream_t stream)
{
  return hipMallocAsync(&given, 10000, stream);
}

static hipError_t capture_an_allocation_and_a_free(hipStream_t stream)
{
  hipError_t error = hipMallocAsync(&given, 10000, stream);
  return error == hipSuccess ? hipFreeAsync(given, stream) : error;
}

static hipError_t capture_a_fill(hipStream_t stream)
{
  return hipMemsetAsync(plain, 1, 1000, stream);
}

static hipError_t capture_a_fork(hipStream_t stream)
{
  hipEvent_t event = NULL;
  hipError_t error = hipMemsetAsync(plain, 1, 1000, stream);
  if (error == hipSuccess) error = hipEventCreate(&event);
  if (error == hipSuccess) error = hipEventRecord(event, stream);
  if (error == hipSuccess) error = hipStreamWaitEvent(stream, event, 0);
  if (event) (void)!hipEventDestroy(event);
  return error;
}

/* The steps of the call count, and not those around it. */
static hipError_t capture(hipStream_t stream, hipError_t (*call)(hipStream_t))
{
  hipGraph_t graph;
  int steps = until_failure;
  until_failure = 0;
  assert_ok(hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed));
  until_failure = steps;
  hipError_t error = call(stream);
  steps = until_failure;
  until_failure = 0;
  hipError_t ended = hipStreamEndCapture(stream, &graph);
  assert_true(error != hipSuccess || ended == hipSuccess);
  if (ended == hipSuccess) assert_ok(hipGraphDestroy(graph));
  until_failure = steps;
  return error;
}

static hipError_t begin_capture(hipStream_t stream)
{
  return hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed);
}

static hipError_t end_capture(hipStream_t stream)
{
  hipGraph_t graph;
  hipError_t error = hipStreamEndCapture(stream, &graph);
  return error == hipSuccess ? hipGraphDestroy(graph) : error;
}

static void a_capture_takes_a_call_or_not(void **state)
{
  (void)state;
  hipError_t (*const calls[])(hipStream_t) = {capture_an_allocation, capture_an_allocation_and_a_free, capture_a_fill,
                                              capture_a_fork};
  hipStream_t stream = create_stream();
  plain = allocate(1000);
  assert_in_range(FAIL_ALL_STEPS(begin_capture(stream), end_capture(stream)), 1, 2);
  assert_ok(end_capture(stream));
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
    assert_in_range(FAIL_ALL_STEPS(capture(stream, calls[i]), hipSuccess), 2, 20);
  assert_ok(hipFree(plain));
  assert_ok(hipStreamDestroy(stream));
}

/* Each kind of node; the last is a graph within a graph. */
static hipError_t add_node(int kind, hipGraph_t graph, hipGraphNode_t *node, hipGraphNode_t after)
{
  hipMemAllocNodeParams memory = {.bytesize = 10000};
  memory.poolProps.allocType = hipMemAllocationTypePinned;
  memory.poolProps.location.type = hipMemLocationTypeDevice;
  const hipMemsetParams fill = {.dst = plain, .elementSize = 1, .width = 1000, .height = 1};
  const hipHostNodeParams host = {.fn = count_up, .userData = &n_runs};
  switch (kind) {
  case 0: return hipGraphAddMemAllocNode(node, graph, &after, 1, &memory);
  case 1: return hipGraphAddMemcpyNode1D(node, graph, &after, 1, plain, plain + 500, 500, hipMemcpyDeviceToDevice);
  case 2: return hipGraphAddMemsetNode(node, graph, &after, 1, &fill);
  case 3: return hipGraphAddHostNode(node, graph, &after, 1, &host);
  case 4: return hipGraphAddChildGraphNode(node, graph, &after, 1, shared_graph);
  default: return hipGraphAddEmptyNode(node, graph, &after, 1);
  }
}

/* A graph with a host function that runs twice, once in a graph within it. */
static hipGraph_t create_nested_graph(void)
{
  hipGraph_t inner, graph;
  hipGraphNode_t first, second;
  const hipHostNodeParams host = {.fn = count_up, .userData = &n_runs};
  assert_ok(hipGraphCreate(&inner, 0));
  assert_ok(hipGraphCreate(&graph, 0));
  assert_ok(hipGraphAddHostNode(&first, inner, NULL, 0, &host));
  assert_ok(hipGraphAddHostNode(&first, graph, NULL, 0, &host));
  assert_ok(hipGraphAddChildGraphNode(&second, graph, &first, 1, inner));
  assert_ok(hipGraphDestroy(inner));
  return graph;
}

static void a_node_is_added_whole_or_not_at_all(void **state)
{
  enum { KINDS = 6 };
  (void)state;
  hipGraph_t graph;
  hipGraphNode_t nodes[KINDS], first;
  hipGraphExec_t instance;
  size_t count;
  shared_graph = create_nested_graph();
  plain = allocate(1000);
  assert_ok(hipGraphCreate(&graph, 0));
  assert_ok(hipGraphAddEmptyNode(&first, graph, NULL, 0));
  for (int kind = 0; kind < KINDS; kind++) /* with no step that fails in secret, as a dependency would be missing */
    assert_in_range(FAIL_ALL_STEPS(add_node(kind, graph, &nodes[kind], first), hipErrorUnknown), 3, 40);
  assert_in_range(FAIL_EACH_STEP(hipGraphAddDependencies(graph, &nodes[3], &nodes[4], 1)), 1, 1);
  assert_ok(hipGraphGetNodes(graph, NULL, &count));
  assert_int_equal(count, KINDS + 1);
  assert_in_range(FAIL_ALL_STEPS(hipGraphInstantiate(&instance, graph, NULL, NULL, 0), hipGraphExecDestroy(instance)),
                  10, 50);
  n_runs = 0;
  hipStream_t stream = create_stream();
  assert_ok(hipGraphLaunch(instance, stream));
  assert_ok(hipStreamSynchronize(stream));
  assert_int_equal(n_runs, 3);
  assert_ok(hipGraphExecDestroy(instance));
  assert_ok(hipStreamDestroy(stream));
  assert_ok(hipGraphDestroy(graph));
  assert_ok(hipGraphDestroy(shared_graph));
  assert_ok(hipFree(plain));
  hipmm_software_reset(); /* the memory of the graph, which no node frees */
}

static void a_node_that_frees_is_added_or_not(void **state)
{
  (void)state;
  hipGraph_t graph;
  hipGraphNode_t node;
  hipMemAllocNodeParams memory = {.bytesize = 10000};
  memory.poolProps.allocType = hipMemAllocationTypePinned;
  memory.poolProps.location.type = hipMemLocationTypeDevice;
  assert_ok(hipGraphCreate(&graph, 0));
  assert_ok(hipGraphAddMemAllocNode(&node, graph, NULL, 0, &memory));
  assert_in_range(FAIL_EACH_STEP(hipGraphAddMemFreeNode(&node, graph, &node, 1, memory.dptr)), 2, 5);
  assert_ok(hipGraphDestroy(graph));
}

int main(void)
{
  static const struct CMUnitTest tests[] = {
      BOTH(a_launch_runs_whole_or_not_at_all), BOTH(memory_of_a_graph_is_freed_or_not),
      BOTH(a_capture_takes_a_call_or_not),     BOTH(a_node_is_added_whole_or_not_at_all),
      BOTH(a_node_that_frees_is_added_or_not),
  };
  return cmocka_run_group_tests_name("software: graphs, no host memory", tests, NULL, NULL);
}
