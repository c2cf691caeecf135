/* SPDX-License-Identifier: MIT */
/* test_graph_nodes.c: graphs that a program builds node by node: copies, fills, memory, graphs within graphs, the order of
 * nodes, and what is refused. */
#include "device.h"

#define after(...) (hipGraphNode_t[]){__VA_ARGS__}, sizeof((hipGraphNode_t[]){__VA_ARGS__}) / sizeof(hipGraphNode_t)
#define after_none NULL, 0

static hipGraph_t new_graph(void)
{
  hipGraph_t graph;
  assert_ok(hipGraphCreate(&graph, 0));
  return graph;
}

/* An instance, which outlives the graph. */
static hipGraphExec_t finish_graph(hipGraph_t graph)
{
  hipGraphExec_t instance;
  assert_ok(hipGraphInstantiate(&instance, graph, NULL, NULL, 0));
  assert_ok(hipGraphDestroy(graph));
  return instance;
}

static void run(hipGraphExec_t instance)
{
  hipStream_t stream = create_stream();
  assert_ok(hipGraphLaunch(instance, stream));
  assert_ok(hipStreamSynchronize(stream));
  assert_ok(hipStreamDestroy(stream));
}

static hipMemAllocNodeParams memory_params(int device, size_t bytes)
{
  hipMemAllocNodeParams params = {.bytesize = bytes};
  params.poolProps.allocType = hipMemAllocationTypePinned;
  params.poolProps.location.type = hipMemLocationTypeDevice;
  params.poolProps.location.id = device;
  return params;
}

static hipMemsetParams fill_params(void *to, unsigned size, unsigned value, size_t width)
{
  return (hipMemsetParams){.dst = to, .elementSize = size, .value = value, .width = width, .height = 1};
}

static void memory_copies_and_fills_are_nodes(void **state)
{
  (void)state;
  hipGraphNode_t allocated, filled, copied, freed, counted;
  char result[1000];
  int ran = 0;
  hipGraph_t graph = new_graph();
  hipMemAllocNodeParams memory = memory_params(0, 5000);
  const hipHostNodeParams host = {.fn = count_up, .userData = &ran};
  assert_ok(hipGraphAddMemAllocNode(&allocated, graph, after_none, &memory));
  const hipMemsetParams fill = fill_params(memory.dptr, 1, 3, 5000);
  assert_ok(hipGraphAddMemsetNode(&filled, graph, after(allocated), &fill));
  assert_ok(hipGraphAddMemcpyNode1D(&copied, graph, after(filled), result, (char *)memory.dptr + 4000, 1000,
                                    hipMemcpyDeviceToHost));
  assert_ok(hipGraphAddHostNode(&counted, graph, after(filled), &host));
  assert_ok(hipGraphAddMemFreeNode(&freed, graph, after(copied, counted), memory.dptr));
  assert_hip(hipGraphAddMemFreeNode(&freed, graph, after(copied), memory.dptr), hipErrorInvalidValue);
  hipGraphExec_t instance = finish_graph(graph);
  for (int i = 1; i <= 3; i++) {
    memset(result, 0, sizeof result);
    run(instance);
    assert_true(is_filled(result, 3, sizeof result));
    assert_int_equal(ran, i);
  }
  assert_ok(hipGraphExecDestroy(instance));
}

/* Memory that a node before has freed is used again, and only behind it. */
static void freed_memory_is_used_again_in_the_graph(void **state)
{
  (void)state;
  hipGraphNode_t one, filled, freed, two, beside, node;
  hipGraph_t graph = new_graph();
  hipMemAllocNodeParams first = memory_params(0, MIB), second = first, third = first;
  assert_ok(hipGraphAddMemAllocNode(&one, graph, after_none, &first));
  const hipMemsetParams fill = fill_params(first.dptr, 4, 0x01010101, MIB / 4);
  assert_ok(hipGraphAddMemsetNode(&filled, graph, after(one), &fill));
  assert_ok(hipGraphAddMemFreeNode(&freed, graph, after(filled), first.dptr));
  assert_ok(hipGraphAddMemAllocNode(&beside, graph, after(one), &third));
  assert_ok(hipGraphAddMemAllocNode(&two, graph, after(freed), &second));
  assert_ptr_equal(second.dptr, first.dptr);
  assert_ptr_not_equal(third.dptr, first.dptr);
  assert_ok(hipGraphAddMemsetNode(&node, graph, after(two), &fill));
  assert_ok(hipGraphAddMemFreeNode(&node, graph, after(node), second.dptr));
  assert_ok(hipGraphAddMemFreeNode(&node, graph, after(beside), third.dptr));
  hipGraphExec_t instance = finish_graph(graph);
  for (int i = 0; i < 4; i++) run(instance);
  assert_ok(hipGraphExecDestroy(instance));
}

static hipGraphNode_t add_free(hipGraph_t graph, hipGraphNode_t *before, void *memory)
{
  hipGraphNode_t node;
  assert_ok(hipGraphAddMemFreeNode(&node, graph, before, before ? 1 : 0, memory));
  return node;
}

/* Memory of a node that depends on `before`. */
static char *add_memory(hipGraph_t graph, hipGraphNode_t before, int device, size_t bytes)
{
  hipGraphNode_t node;
  hipMemAllocNodeParams memory = memory_params(device, bytes);
  assert_ok(hipGraphAddMemAllocNode(&node, graph, &before, 1, &memory));
  return memory.dptr;
}

/* What fits, once, for the same device, and memory of the graph itself. */
static void freed_memory_is_used_again_where_it_fits(void **state)
{
  (void)state;
  hipGraphNode_t node;
  hipGraph_t graph = new_graph(), other = new_graph();
  hipMemAllocNodeParams memory = memory_params(0, MIB);
  hipPointerAttribute_t attributes;
  assert_ok(hipGraphAddMemAllocNode(&node, graph, after_none, &memory));
  char *first = memory.dptr;
  node = add_free(graph, &node, first);
  char *larger = add_memory(graph, node, 0, 2 * MIB);
  assert_true(larger + 2 * MIB <= first || larger >= first + MIB);
  assert_ptr_not_equal(add_memory(graph, node, 0, MIB / 2), first);
  char *far = add_memory(graph, node, 1, MIB);
  assert_ptr_not_equal(far, first);
  assert_ok(hipPointerGetAttributes(&attributes, far));
  assert_int_equal(attributes.device, 1);
  assert_ptr_equal(add_memory(graph, node, 0, MIB), first);
  assert_ptr_not_equal(add_memory(graph, node, 0, MIB), first);
  assert_ok(hipGraphAddEmptyNode(&node, other, after_none));
  node = add_free(other, &node, larger);
  assert_ptr_not_equal(add_memory(other, node, 0, 2 * MIB), larger);
  assert_ok(hipGraphDestroy(other));
  assert_ok(hipGraphDestroy(graph));
}

/* It is there from a launch of the one graph to a launch of the other. */
static void memory_can_be_freed_by_another_graph(void **state)
{
  (void)state;
  hipGraphNode_t node;
  hipGraph_t giver = new_graph(), taker = new_graph();
  hipMemAllocNodeParams memory = memory_params(0, 5000);
  size_t bytes;
  assert_ok(hipGraphAddMemAllocNode(&node, giver, after_none, &memory));
  add_free(taker, NULL, memory.dptr);
  assert_ok(hipMemPtrGetInfo(memory.dptr, &bytes)); /* it can be named still */
  assert_int_equal(bytes, 5000);
  hipGraphExec_t gives = finish_graph(giver), takes = finish_graph(taker);
  hipStream_t stream = create_stream();
  for (int i = 0; i < 2; i++) {
    assert_hip(hipGraphLaunch(takes, stream), hipErrorInvalidValue);
    run(gives);
    assert_ok(hipMemset(memory.dptr, i, 5000));
    assert_ok(hipDeviceSynchronize());
    assert_true(is_filled(memory.dptr, i, 5000));
    run(takes);
    assert_hip(hipFreeAsync(memory.dptr, stream), hipErrorInvalidValue);
  }
  assert_ok(hipGraphExecDestroy(gives));
  assert_hip(hipMemPtrGetInfo(memory.dptr, &bytes), hipErrorInvalidValue);
  assert_hip(hipGraphLaunch(takes, stream), hipErrorInvalidValue); /* its memory is gone for ever */
  assert_ok(hipGraphExecDestroy(takes));
  assert_ok(hipStreamDestroy(stream));
}

/* ---- Order ----------------------------------------------------------------------------------------------------- */

struct step {
  int *next, place;
};

static void take_place(void *step_)
{
  struct step *step = step_;
  step->place = (*step->next)++;
}

static hipGraphNode_t add_step(hipGraph_t graph, struct step *step)
{
  hipGraphNode_t node;
  const hipHostNodeParams params = {.fn = take_place, .userData = step};
  assert_ok(hipGraphAddHostNode(&node, graph, after_none, &params));
  return node;
}

/* Nodes are added in the wrong order, and the dependencies later: 7 to 0 in a row, and 8 and 9 beside them. */
static void dependencies_can_be_added_later(void **state)
{
  enum { N = 10, IN_ROW = 8 };
  (void)state;
  hipGraphNode_t nodes[N], from[N], to[N], listed[N + 1];
  struct step steps[N];
  int next;
  size_t count = N + 1;
  hipGraph_t graph = new_graph();
  for (int i = 0; i < N; i++) {
    steps[i] = (struct step){&next, -1};
    nodes[i] = add_step(graph, &steps[i]);
  }
  for (int i = 0; i + 1 < IN_ROW; i++) {
    from[i] = nodes[i + 1];
    to[i] = nodes[i];
  }
  assert_ok(hipGraphAddDependencies(graph, from, to, IN_ROW - 1));
  assert_ok(hipGraphAddDependencies(graph, from, to, 1)); /* there already */
  assert_ok(hipGraphAddDependencies(graph, &nodes[9], &nodes[3], 1));
  assert_hip(hipGraphAddDependencies(graph, &nodes[0], &nodes[7], 1), hipErrorInvalidValue);
  assert_hip(hipGraphAddDependencies(graph, &nodes[0], &nodes[9], 1), hipErrorInvalidValue);
  assert_hip(hipGraphAddDependencies(graph, &nodes[2], &nodes[2], 1), hipErrorInvalidValue);
  assert_hip(hipGraphAddDependencies(graph, NULL, &nodes[2], 1), hipErrorInvalidValue);
  assert_ok(hipGraphGetRootNodes(graph, listed, &count));
  assert_int_equal(count, 3);
  assert_null(listed[3]);
  assert_ok(hipGraphGetNodes(graph, NULL, &count));
  assert_int_equal(count, N);
  hipGraphExec_t instance = finish_graph(graph);
  for (int launch = 0; launch < 5; launch++) {
    next = 0;
    run(instance);
    assert_int_equal(next, N);
    for (int i = 0; i + 1 < IN_ROW; i++) assert_true(steps[i + 1].place < steps[i].place);
    assert_true(steps[9].place < steps[3].place);
  }
  assert_ok(hipGraphExecDestroy(instance));
}

/* ---- Graphs within graphs -------------------------------------------------------------------------------------- */

static void a_graph_can_be_a_node(void **state)
{
  (void)state;
  enum { BYTES = 4096 };
  char *one = allocate(BYTES), *two = allocate(BYTES), result[BYTES];
  hipGraphNode_t filled, inner, outer, copied, node;
  hipGraph_t innermost = new_graph(), child = new_graph(), graph = new_graph();
  const hipMemsetParams fill = fill_params(one, 2, 0x0505, BYTES / 2);
  assert_ok(hipGraphAddMemcpyNode1D(&node, innermost, after_none, two, one, BYTES, hipMemcpyDeviceToDevice));
  assert_ok(hipGraphAddChildGraphNode(&inner, child, after_none, innermost));
  assert_ok(hipGraphAddEmptyNode(&node, child, after(inner)));
  assert_ok(hipGraphAddMemsetNode(&filled, graph, after_none, &fill));
  assert_ok(hipGraphAddChildGraphNode(&outer, graph, after(filled), child));
  assert_ok(hipGraphAddMemcpyNode1D(&copied, graph, after(outer), result, two, BYTES, hipMemcpyDeviceToHost));
  assert_hip(hipGraphAddChildGraphNode(&node, graph, after_none, graph), hipErrorInvalidValue);
  assert_ok(hipGraphDestroy(innermost));
  assert_ok(hipGraphDestroy(child));
  size_t count;
  assert_ok(hipGraphGetNodes(graph, NULL, &count));
  assert_int_equal(count, 3);
  hipGraphExec_t instance = finish_graph(graph);
  for (int i = 0; i < 6; i++) {
    assert_ok(hipMemset(two, 0, BYTES));
    assert_ok(hipDeviceSynchronize());
    run(instance);
    assert_true(is_filled(result, 5, BYTES));
  }
  assert_ok(hipGraphExecDestroy(instance));
  assert_ok(hipFree(one));
  assert_ok(hipFree(two));
}

static void a_graph_keeps_its_order_as_a_node(void **state)
{
  enum { N = 6 };
  (void)state;
  hipGraphNode_t nodes[N], node;
  struct step steps[N];
  int next;
  hipGraph_t child = new_graph(), graph = new_graph();
  for (int i = 0; i < N; i++) {
    steps[i] = (struct step){&next, -1};
    nodes[i] = add_step(child, &steps[i]);
  }
  assert_ok(hipGraphAddDependencies(child, nodes, nodes + 1, N - 1));
  assert_ok(hipGraphAddChildGraphNode(&node, graph, after_none, child));
  assert_ok(hipGraphDestroy(child));
  hipGraphExec_t instance = finish_graph(graph);
  for (int launch = 0; launch < 3; launch++) {
    next = 0;
    run(instance);
    for (int i = 0; i < N; i++) assert_int_equal(steps[i].place, i);
  }
  assert_ok(hipGraphExecDestroy(instance));
}

static void memory_cannot_be_in_a_child(void **state)
{
  (void)state;
  hipGraphNode_t node;
  hipGraph_t child = new_graph(), graph = new_graph();
  hipMemAllocNodeParams memory = memory_params(0, 100);
  assert_ok(hipGraphAddEmptyNode(&node, child, after_none));
  assert_ok(hipGraphAddMemAllocNode(&node, child, after(node), &memory));
  assert_hip(hipGraphAddChildGraphNode(&node, graph, after_none, child), hipErrorNotSupported);
  assert_ok(hipGraphDestroy(child));
  assert_ok(hipGraphDestroy(graph));
}

/* ---- Rows ------------------------------------------------------------------------------------------------------ */

static void copies_have_three_dimensions(void **state)
{
  (void)state;
  enum { PITCH = 16, ROWS = 4, SLICES = 3, BYTES = PITCH * ROWS * SLICES };
  char *memory = allocate(BYTES), from[BYTES], result[BYTES];
  hipGraphNode_t node;
  hipGraph_t graph = new_graph();
  for (int i = 0; i < BYTES; i++) from[i] = (char)i;
  hipMemcpy3DParms copy = {.kind = hipMemcpyHostToDevice, .extent = {PITCH, ROWS, SLICES}};
  copy.srcPtr = make_hipPitchedPtr(from, PITCH, PITCH, ROWS);
  copy.dstPtr = make_hipPitchedPtr(memory, PITCH, PITCH, ROWS);
  assert_ok(hipGraphAddMemcpyNode(&node, graph, after_none, &copy));
  /* Two rows of 4 bytes of the second slice. */
  hipMemcpy3DParms part = {.kind = hipMemcpyDeviceToHost, .extent = {4, 2, 1}, .srcPos = {3, 1, 1}};
  part.srcPtr = copy.dstPtr;
  part.dstPtr = make_hipPitchedPtr(result, 4, 4, 2);
  assert_ok(hipGraphAddMemcpyNode(&node, graph, after(node), &part));
  part.dstPtr = make_hipPitchedPtr(result, 16, 16, 2);
  part.extent = (struct hipExtent){14, 1, 1}; /* beyond the row, and within the memory */
  assert_hip(hipGraphAddMemcpyNode(&node, graph, after(node), &part), hipErrorInvalidValue);
  copy.extent.height = 2; /* slices with a gap between them */
  assert_hip(hipGraphAddMemcpyNode(&node, graph, after(node), &copy), hipErrorNotSupported);
  hipGraphExec_t instance = finish_graph(graph);
  run(instance);
  for (int row = 0; row < 2; row++)
    for (int i = 0; i < 4; i++) assert_int_equal(result[row * 4 + i], from[PITCH * ROWS + (row + 1) * PITCH + 3 + i]);
  assert_ok(hipGraphExecDestroy(instance));
  assert_ok(hipFree(memory));
}

/* Positions whose offset, and extents whose rows, are more than a number can say. What is left of them would be inside. */
static void positions_that_no_memory_has_are_refused(void **state)
{
  (void)state;
  enum { PITCH = 16, ROWS = 4 };
  static const struct {
    size_t y, z, ysize, height, depth;
  } wrong[] = {
      {.z = SIZE_MAX / ROWS + 1, .ysize = ROWS, .height = 1, .depth = 1},
      {.y = 4, .z = SIZE_MAX / ROWS, .ysize = ROWS, .height = 1, .depth = 1},
      {.y = SIZE_MAX / PITCH + 1, .ysize = ROWS, .height = 1, .depth = 1},
      {.ysize = SIZE_MAX / 2 + 2, .height = SIZE_MAX / 2 + 2, .depth = 2},
  };
  char *memory = allocate(PITCH * ROWS), *other = allocate(PITCH * ROWS);
  hipGraphNode_t node;
  hipGraph_t graph = new_graph();
  for (size_t i = 0; i < 2 * (sizeof wrong / sizeof *wrong); i++) {
    bool is_source = i % 2;
    hipMemcpy3DParms copy = {.kind = hipMemcpyDeviceToDevice,
                             .extent = {PITCH, wrong[i / 2].height, wrong[i / 2].depth}};
    copy.srcPtr = make_hipPitchedPtr(memory, PITCH, PITCH, wrong[i / 2].ysize);
    copy.dstPtr = make_hipPitchedPtr(other, PITCH, PITCH, wrong[i / 2].ysize);
    *(is_source ? &copy.srcPos : &copy.dstPos) = (hipPos){0, wrong[i / 2].y, wrong[i / 2].z};
    assert_hip(hipGraphAddMemcpyNode(&node, graph, after_none, &copy), hipErrorInvalidValue);
  }
  size_t count;
  assert_ok(hipGraphGetNodes(graph, NULL, &count));
  assert_int_equal(count, 0);
  assert_ok(hipGraphDestroy(graph));
  assert_ok(hipFree(memory));
  assert_ok(hipFree(other));
}

static void fills_have_rows(void **state)
{
  (void)state;
  char *memory = allocate(64);
  hipGraphNode_t node;
  hipGraph_t graph = new_graph();
  hipMemsetParams fill = {
      .dst = memory + 4, .elementSize = 4, .value = 0x07070707, .width = 2, .height = 3, .pitch = 16};
  assert_ok(hipMemset(memory, 0, 64));
  assert_ok(hipGraphAddMemsetNode(&node, graph, after_none, &fill));
  fill.pitch = 7;
  assert_hip(hipGraphAddMemsetNode(&node, graph, after_none, &fill), hipErrorInvalidValue);
  fill = fill_params(memory, 3, 0, 1);
  assert_hip(hipGraphAddMemsetNode(&node, graph, after_none, &fill), hipErrorInvalidValue);
  hipGraphExec_t instance = finish_graph(graph);
  assert_ok(hipDeviceSynchronize());
  run(instance);
  for (int i = 0; i < 64; i++) assert_int_equal(memory[i], i < 48 && i % 16 >= 4 && i % 16 < 12 ? 7 : 0);
  assert_ok(hipGraphExecDestroy(instance));
  assert_ok(hipFree(memory));
}

/* ---- What is refused ------------------------------------------------------------------------------------------- */

static void wrong_arguments_are_refused(void **state)
{
  (void)state;
  int local;
  char *plain = allocate(100);
  hipGraphNode_t node, foreign;
  hipGraph_t graph = new_graph(), other = new_graph();
  hipMemAllocNodeParams memory = memory_params(7, 100);
  assert_ok(hipGraphAddEmptyNode(&foreign, other, after_none));
  assert_hip(hipGraphAddEmptyNode(&node, graph, after(foreign)), hipErrorInvalidValue);
  assert_hip(hipGraphAddEmptyNode(&node, graph, NULL, 1), hipErrorInvalidValue);
  assert_hip(hipGraphAddEmptyNode(NULL, graph, after_none), hipErrorInvalidValue);
  assert_hip(hipGraphAddEmptyNode(&node, (hipGraph_t)&local, after_none), hipErrorInvalidValue);
  assert_hip(hipGraphAddMemAllocNode(&node, graph, after_none, &memory), hipErrorInvalidDevice);
  memory = memory_params(0, 0);
  assert_hip(hipGraphAddMemAllocNode(&node, graph, after_none, &memory), hipErrorInvalidValue);
  memory = memory_params(0, 1000 * MIB);
  assert_hip(hipGraphAddMemAllocNode(&node, graph, after_none, &memory), hipErrorOutOfMemory);
  assert_hip(hipGraphAddMemAllocNode(&node, graph, after_none, NULL), hipErrorInvalidValue);
  assert_hip(hipGraphAddMemFreeNode(&node, graph, after_none, &local), hipErrorInvalidValue);
  assert_hip(hipGraphAddMemFreeNode(&node, graph, after_none, NULL), hipErrorInvalidValue);
  assert_hip(hipGraphAddMemFreeNode(&node, graph, after_none, plain), hipErrorInvalidValue); /* of no graph */
  assert_hip(hipGraphAddMemcpyNode1D(&node, graph, after_none, plain, plain + 50, 50, (hipMemcpyKind)77),
             hipErrorInvalidMemcpyDirection);
  assert_hip(hipGraphAddMemcpyNode1D(&node, graph, after_none, &local, &local, 0, hipMemcpyDefault),
             hipErrorInvalidValue);
  assert_hip(hipGraphAddMemcpyNode1D(&node, graph, after_none, &local, &local, 4, hipMemcpyHostToDevice),
             hipErrorInvalidValue);
  assert_hip(hipGraphAddMemcpyNode(&node, graph, after_none, NULL), hipErrorInvalidValue);
  assert_hip(hipGraphAddMemsetNode(&node, graph, after_none, NULL), hipErrorInvalidValue);
  assert_hip(hipGraphAddHostNode(&node, graph, after_none, NULL), hipErrorInvalidValue);
  assert_hip(hipGraphAddChildGraphNode(&node, graph, after_none, NULL), hipErrorInvalidValue);
  size_t count;
  assert_ok(hipGraphGetNodes(graph, NULL, &count));
  assert_int_equal(count, 0);
  assert_ok(hipFree(plain));
  assert_ok(hipGraphDestroy(graph));
  assert_ok(hipGraphDestroy(other));
}

/* Also those that are nodes of others, each once. */
static void a_reset_frees_graphs(void **state)
{
  (void)state;
  hipGraphNode_t node;
  hipGraph_t child = new_graph(), graph = new_graph();
  assert_ok(hipGraphAddEmptyNode(&node, child, after_none));
  assert_ok(hipGraphAddChildGraphNode(&node, graph, after_none, child));
  assert_ok(hipGraphAddChildGraphNode(&node, child, after_none, graph));
  hipmm_software_reset();
  assert_hip(hipGraphDestroy(graph), hipErrorInvalidValue);
  assert_hip(hipGraphDestroy(child), hipErrorInvalidValue);
}

static void memory_needs_a_device_with_pools(void **state)
{
  (void)state;
  hipGraphNode_t node;
  struct software_config config = software.config;
  config.memory_pools = false;
  restart(&config);
  hipGraph_t graph = new_graph();
  hipMemAllocNodeParams memory = memory_params(0, 100);
  assert_hip(hipGraphAddMemAllocNode(&node, graph, after_none, &memory), hipErrorNotSupported);
  assert_ok(hipGraphDestroy(graph));
}

#define BOTH(test)                                         \
  {#test " (threads)", test, start_threads, finish, NULL}, \
  {                                                        \
#test " (stepped)", test, start_stepped, finish, NULL  \
  }

int main(void)
{
  static const struct CMUnitTest tests[] = {
      BOTH(memory_copies_and_fills_are_nodes),
      BOTH(freed_memory_is_used_again_in_the_graph),
      BOTH(freed_memory_is_used_again_where_it_fits),
      BOTH(memory_can_be_freed_by_another_graph),
      BOTH(dependencies_can_be_added_later),
      BOTH(a_graph_can_be_a_node),
      BOTH(a_graph_keeps_its_order_as_a_node),
      BOTH(memory_cannot_be_in_a_child),
      BOTH(copies_have_three_dimensions),
      BOTH(positions_that_no_memory_has_are_refused),
      BOTH(fills_have_rows),
      BOTH(wrong_arguments_are_refused),
      BOTH(a_reset_frees_graphs),
      BOTH(memory_needs_a_device_with_pools),
  };
  return cmocka_run_group_tests_name("software: nodes of graphs", tests, NULL, NULL);
}
