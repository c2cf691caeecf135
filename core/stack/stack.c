/* SPDX-License-Identifier: MIT */
/* stack.c: builds the live resources of one device from a graph, bottom up, and destroys them. Not on the allocation path:
 * resources call their upstreams directly. */
#include "stack.h"
#include "../base/lifecycle.h"
#include "../base/log.h"
#include "../base/memory_observer.h"
#include "../base/text.h"
#include "../base/units.h"
#include "../plugin/plugin.h"
#include "../runtime/hip.h"
#include "attempt.h"
#include "instance_options.h"
#include "stream_registry.h"

#include <stdlib.h>
#include <string.h>

/* ---- Destroying ---- */

static void stack_destroy_instance(struct instance *instance)
{
  const struct hipmm_plugin *plugin = &instance->node->plugin->descriptor;
  if (instance->is_owed) {
    if (instance->block_map.sizes.count && plugin->role == HIPMM_ROLE_SOURCE)
      log_line(HIPMM_LOG_WARNING, instance->node->name, "device %d: %zu block%s (%s) still allocated, freed with it",
               instance->stack->device, instance->block_map.sizes.count, text_plural(instance->block_map.sizes.count),
               UNITS_BYTES(instance->block_map.bytes));
    wrapped_ops_remove(instance);
    hip_observer_enter();
    plugin->destroy(instance->self);
    hip_observer_leave();
    if (hip_observer()) hip_observer()->destroyed(instance);
  }
  instance_set_user_data(instance, (struct instance_user_data){NULL, NULL});
  instance_options_free_all(instance);
  free(instance->upstreams);
  dependencies_close(instance);
  block_map_close(&instance->block_map);
  pthread_mutex_destroy(&instance->setting);
  pthread_mutex_destroy(&instance->lock);
}

/* Stacks of each device: all, and those that have got their device access to the memory of others. */
static atomic_uint stacks_of[STACK_MOST_DEVICES], granted_of[STACK_MOST_DEVICES];

/* Each instance before what it depends on: that is not the order of the graph where a resource gained a dependency. */
static void stack_destroy_instances(struct stack *stack)
{
  struct instance *order[GRAPH_MAX_NODES];
  for (size_t i = 0; i < stack->graph->n_nodes; i++) order[i] = &stack->instances[i];
  qsort(order, stack->graph->n_nodes, sizeof *order, dependencies_by_creation);
  for (size_t i = 0; i < stack->graph->n_nodes; i++) stack_destroy_instance(order[i]);
}

static void stack_destroy(struct stack *stack)
{
  stack_unlist(stack);
  if (stack->is_granted) atomic_fetch_sub(&granted_of[stack->device], 1);
  atomic_fetch_sub(&stacks_of[stack->device], 1);
  int previous = hip_enter_device(stack->device);
  stack_destroy_instances(stack);
  hip_leave_device(stack->device, previous);
  for (size_t i = 0; i < stack->external.n; i++) stack_release(instance_from(stack->external.resources[i])->stack);
  free((void *)(uintptr_t)stack->external.resources);
  if (stack->external.is_whole) atomic_fetch_sub(&lifecycle_own_stacks, 1);
  instance_memory_free(stack->instances, stack->graph->n_nodes);
  graph_release(stack->graph);
  free(stack);
}

/* ---- Building ---- */

/* The thread's error says what is wrong; adds where in the graph. */
static enum hipmm_status stack_locate(const struct instance *instance, enum hipmm_status status)
{
  return error_locate(status, instance->node->name, instance->stack->graph->source, instance->node->path);
}

/* The call makes a context, which a source of host memory without percentages needs only when it is used. */
static enum hipmm_status stack_ask_device(struct instance *instance)
{
  const struct hipmm_plugin *plugin = &instance->node->plugin->descriptor;
  size_t free_bytes = 0, total_bytes = 0;
  bool is_asked = !(plugin->flags & HIPMM_PLUGIN_HOST_MEMORY);
  for (size_t i = 0; i < plugin->n_options; i++) is_asked |= (plugin->options[i].flags & HIPMM_OPTION_PERCENT) != 0;
  if (!is_asked) return HIPMM_OK;
  int code = hip_table()->MemGetInfo(&free_bytes, &total_bytes);
  if (code) return stack_locate(instance, hip_refuse(instance->node->name, "hipMemGetInfo", code, 0));
  instance->free_bytes = free_bytes ? free_bytes : 1;
  instance->stack->device_bytes = total_bytes;
  return HIPMM_OK;
}

static enum hipmm_status stack_fill_options(struct instance *instance)
{
  struct diagnostics report = {.source = instance->stack->graph->source};
  enum hipmm_status status = stack_ask_device(instance);
  if (status) return status;
  struct instance_options *set = instance_options_new(instance, instance->node->object, instance->node->path, &report);
  status = set ? HIPMM_OK : diagnostics_raise(&report);
  diagnostics_clear(&report);
  if (status) return status;
  instance_options_add(instance, set);
  atomic_store(&instance->options, set);
  return HIPMM_OK;
}

static enum hipmm_status stack_find_upstreams(struct instance *instance)
{
  const struct graph_node *node = instance->node;
  const struct external *external = &instance->stack->external;
  instance->upstreams = calloc(node->n_upstreams + external->n_upstreams + 1, sizeof *instance->upstreams);
  if (!instance->upstreams) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  for (size_t i = 0; i < node->n_upstreams; i++)
    instance->upstreams[instance->n_upstreams++] = &instance->stack->instances[node->upstreams[i]].resource;
  for (size_t i = 0; i < external->n_upstreams; i++)
    instance->upstreams[instance->n_upstreams++] = external->resources[i];
  return HIPMM_OK;
}

struct stack_creation {
  struct instance *instance;
  void *self; /* `nothing` if the plugin has written none */
  char nothing;
};

static enum hipmm_status stack_call_create(void *creation_)
{
  struct stack_creation *creation = creation_;
  struct instance *instance = creation->instance;
  creation->self = &creation->nothing;
  error_set(HIPMM_OK, "%s", ""); /* a message that is set afterwards is the plugin's */
  bool kept_reason = services_keep_reason(true);
  hip_observer_enter();
  enum hipmm_status status =
      instance->node->plugin->descriptor.create(&instance->services, atomic_load(&instance->options)->options,
                                                instance->upstreams, instance->n_upstreams, &creation->self);
  hip_observer_leave();
  services_keep_reason(kept_reason);
  return status;
}

static enum hipmm_status stack_create_instance(struct instance *instance)
{
  const struct graph_node *node = instance->node;
  const struct hipmm_plugin *plugin = &node->plugin->descriptor;
  enum hipmm_status status = stack_find_upstreams(instance);
  if (!status) status = dependencies_open(instance);
  if (!status) status = stack_fill_options(instance);
  if (status) return status;
  struct stack_creation creation = {.instance = instance};
  bool is_tried_once = !this_attempt.is_building; /* nobody would try again what the new resource allocates */
  this_attempt.n_inner += is_tried_once;
  status = attempt_repeat(stack_call_create, &creation);
  this_attempt.n_inner -= is_tried_once;
  if (status && !*hipmm_last_error_message())
    error_set(status, "%s: its plugin failed to create it and gave no reason (%s)", node->name,
              hipmm_status_string(status));
  if (!status && creation.self == &creation.nothing)
    status = error_set(HIPMM_E_PLUGIN, "%s: its plugin reports success, but created no resource", node->name);
  if (status) return stack_locate(instance, status);
  instance->is_owed = true;
  instance->self = creation.self;
  instance->resource = plugin->flags & HIPMM_PLUGIN_NOT_THREAD_SAFE
                           ? (struct hipmm_resource){&locked_ops, instance}
                           : (struct hipmm_resource){plugin->ops, creation.self};
  if (wrapped_ops_install(instance)) return HIPMM_OK;
  return stack_locate(instance, error_set(HIPMM_E_OUT_OF_MEMORY, "%s: no host memory left for its record", node->name));
}

static void stack_prepare_instance(struct stack *stack, size_t i)
{
  struct instance *instance = &stack->instances[i];
  instance->node = &stack->graph->nodes[i];
  instance->stack = stack;
  block_map_open(&instance->block_map);
  locked_ops_init_lock(&instance->lock);
  locked_ops_init_lock(&instance->setting);
}

/* After a failure: destroys what nobody has seen yet, so that it can be created again. Keeps the thread's error. */
static void stack_discard_hidden(struct stack *stack)
{
  const struct error_record failure = error_mark();
  for (size_t i = stack->graph->n_nodes; i-- > 0;) {
    struct instance *instance = &stack->instances[i];
    if (instance->created || !instance->upstreams) continue;
    stack_destroy_instance(instance);
    instance_memory_clear(instance, 1);
    stack_prepare_instance(stack, i);
  }
  error_return_to_mark(&failure);
}

/* Node `top` and what it needs, as far as that is not there. A node comes after its references. */
static enum hipmm_status stack_create_instances(struct stack *stack, int top)
{
  const struct graph *graph = stack->graph;
  bool is_needed[GRAPH_MAX_NODES] = {false};
  enum hipmm_status status = HIPMM_OK;
  is_needed[top] = true;
  graph_mark_needed(graph, is_needed);
  for (int i = 0; !status && i <= top; i++) {
    if (!is_needed[i] || stack->instances[i].is_owed) continue;
    instance_services_fill(&stack->instances[i]);
    status = stack_create_instance(&stack->instances[i]);
  }
  if (status) stack_discard_hidden(stack);
  return status;
}

static struct stack *stack_new(struct graph *graph, int device, int top, enum stack_user user)
{
  struct stack *stack = calloc(1, sizeof *stack);
  struct instance *instances = instance_memory_allocate(graph->n_nodes);
  if (!stack || !instances) {
    free(stack);
    instance_memory_free(instances, graph->n_nodes);
    return NULL;
  }
  *stack = (struct stack){.device = device,
                          .top = top,
                          .user = user,
                          .graph = graph,
                          .instances = instances,
                          .entry.destroy = stack_destroy};
  atomic_init(&stack->entry.holds, 1);
  atomic_fetch_add(&stacks_of[device], 1);
  graph_retain(graph);
  for (size_t i = 0; i < graph->n_nodes; i++) stack_prepare_instance(stack, i);
  return stack;
}

static enum hipmm_status stack_adopt_external(struct stack *stack, const struct external *external)
{
  struct hipmm_resource **resources = calloc(external->n + 1, sizeof *resources);
  if (!resources) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  for (size_t i = 0; i < external->n; i++) {
    resources[i] = external->resources[i];
    stack_retain(instance_from(resources[i])->stack);
  }
  stack->external = *external;
  stack->external.resources = resources;
  stack->external.name = NULL;
  if (external->is_whole) atomic_fetch_add(&lifecycle_own_stacks, 1);
  return HIPMM_OK;
}

/* Whether all instances that are to be created are sources of host memory, as far as node `top` needs them. */
static bool stack_needs_only_host(const struct stack *stack, int top)
{
  bool is_needed[GRAPH_MAX_NODES] = {false}, is_host = true;
  is_needed[top] = true;
  graph_mark_needed(stack->graph, is_needed);
  for (int i = 0; i <= top; i++)
    if (is_needed[i] && !stack->instances[i].is_owed)
      is_host &= (stack->instances[i].node->plugin->descriptor.flags & HIPMM_PLUGIN_HOST_MEMORY) != 0;
  return is_host;
}

/* Creates the instances on their device, whatever device is current. hipSetDevice makes the device's own context, which a
 * stack of host memory may not need yet. Another stack needs the call also where the device is current, since the thread
 * may have a context of the driver's interface. */
static enum hipmm_status stack_create_on_device(struct stack *stack, int top)
{
  const struct hipmm_hip *hip = hip_table();
  const struct error_record before = error_mark();
  int previous = stack->device;
  const char *call = "hipGetDevice";
  int code = hip->GetDevice(&previous);
  if (!code && (previous != stack->device || !stack_needs_only_host(stack, top)))
    code = hip->SetDevice(stack->device), call = "hipSetDevice";
  enum hipmm_status status = code ? error_set(hip_status(code), "device %d cannot be used: %s: %s (%s)", stack->device,
                                              call, hip->GetErrorName(code), hip->GetErrorString(code))
                                  : stack_create_instances(stack, top);
  hip_leave_device(stack->device, previous);
  if (!status) error_return_to_mark(&before); /* failures on the way to success are not reported */
  return status;
}

/* Lists the stack, and gives it its name. */
static enum hipmm_status stack_enter_list(struct stack *stack, const struct external *external)
{
  if (!external) return stack_list(stack, NULL, false);
  enum hipmm_status status = stack_adopt_external(stack, external);
  if (!status) status = stack_list(stack, external->name, external->is_named);
  return status || external->is_whole ? status : graph_rename(stack->graph, stack->entry.name);
}

/* ---- Access of devices to memory ---- */

static enum hipmm_status stack_grant_access(const struct stack *stack, int device)
{
  enum hipmm_status status = HIPMM_OK;
  if (stack->user != STACK_FOR_PYTORCH_WITH_INIT || stack->device == device) return HIPMM_OK;
  for (size_t i = 0; !status && i < stack->graph->n_nodes; i++) {
    const struct instance *instance = &stack->instances[i];
    if (instance->created && instance->node->plugin->descriptor.ops->grant_access)
      status = instance->resource.ops->grant_access(instance->resource.self, device);
  }
  return status;
}

/* Admits the devices that have stacks to the memory of this stack. */
static enum hipmm_status stack_grant_others(const struct stack *stack)
{
  enum hipmm_status status = HIPMM_OK;
  for (int device = 0; !status && device < STACK_MOST_DEVICES; device++)
    if (atomic_load(&stacks_of[device])) status = stack_grant_access(stack, device);
  return status;
}

/* For a new stack, which is shown: grants other devices access to its memory, and its device access to the memory of
 * the other stacks, unless an earlier stack of the device has done so. Of two stacks that are built at once, each is
 * counted and shown before it looks for the other, so at least one finds the other. */
static enum hipmm_status stack_grant_devices(struct stack *stack)
{
  enum hipmm_status status = stack_grant_others(stack);
  if (!status && !atomic_load(&granted_of[stack->device]))
    for (struct stack *other = stack_next(NULL); other; other = stack_next(other))
      if (!status) status = stack_grant_access(other, stack->device);
  if (status) return status;
  stack->is_granted = true;
  atomic_fetch_add(&granted_of[stack->device], 1);
  return HIPMM_OK;
}

static void stack_retain_stream(void *stack, hipmm_stream_t stream)
{
  stack_notify(stack, stream, STREAM_RETAINED);
}

/* Shows the new instances. The stack is listed before the registry is read: a new stream is told to the stacks that are
 * listed. A stream may be told twice. */
static void stack_show_instances(struct stack *stack)
{
  for (size_t i = 0; i < stack->graph->n_nodes; i++)
    if (stack->instances[i].is_owed) atomic_store(&stack->instances[i].created, true);
  stack_show(stack);
  stream_registry_visit(stack->device, stack_retain_stream, stack);
}

enum hipmm_status stack_extend(struct stack *stack, int node)
{
  enum hipmm_status status = stack_create_on_device(stack, node);
  if (!status) {
    stack_show_instances(stack);
    status = stack_grant_others(stack);
  }
  if (!status) log_line(HIPMM_LOG_DEBUG, NULL, "device %d: %s built", stack->device, stack->graph->nodes[node].name);
  return status;
}

enum hipmm_status stack_build(struct graph *graph, int device, int top, const struct external *external,
                              enum stack_user user, struct stack **stack_out)
{
  struct stack *stack = stack_new(graph, device, top, user);
  if (!stack) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  enum hipmm_status status = stack_enter_list(stack, external);
  if (!status) status = stack_create_on_device(stack, top);
  if (!status) {
    stack_show_instances(stack);
    status = stack_grant_devices(stack);
  }
  if (status) {
    stack_release(stack);
    return status;
  }
  log_line(HIPMM_LOG_DEBUG, NULL, "device %d: stack built, top is %s", device, graph->nodes[top].name);
  *stack_out = stack;
  return HIPMM_OK;
}

/* ---- Streams ---- */

void stack_notify(const struct stack *stack, hipmm_stream_t stream, enum stream_event event)
{
  STACK_EACH(instance, stack) {
    const struct hipmm_ops *ops = instance->resource.ops;
    (event == STREAM_RETIRED ? ops->stream_retire : ops->stream_retain)(instance->resource.self, stream);
  }
}

/* ---- Searching ---- */

struct instance *stack_find(const struct stack *stack, const char *name, const char **nearest_out)
{
  struct text_near near = text_near(name);
  for (size_t i = 0; i < stack->graph->n_nodes; i++) {
    bool is_there = stack->instances[i].created;
    if (!is_there && !stack->graph->nodes[i].is_by_name) continue;
    if (is_there && !strcmp(stack->graph->nodes[i].name, name)) return &stack->instances[i];
    text_near_try(&near, stack->graph->nodes[i].name);
  }
  *nearest_out = near.name;
  return NULL;
}
