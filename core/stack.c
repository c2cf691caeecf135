/* SPDX-License-Identifier: MIT */
/* stack.c: builds the live resources of one device from a graph, bottom up, and takes them down again. No part of the
 * allocation path: once built, resources call their upstreams directly. */
#include "stack.h"
#include "hip.h"
#include "log.h"
#include "option.h"
#include "serial.h"
#include "services.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Walking ---- */

/* Marks the nodes that node `top` needs. Every node comes after its upstreams, so one pass downwards is enough. */
static void mark_reached(const struct instance *top, bool *reached)
{
  const struct instance *first = top->stack->instances;
  reached[top - first] = true;
  for (ptrdiff_t i = top - first; i >= 0; i--) {
    const struct instance *instance = &first[i];
    for (size_t u = 0; reached[i] && u < instance->node->n_references; u++)
      reached[instance->node->references[u]] = true;
  }
}

void instance_visit_down(const struct instance *instance, void (*visit)(void *closure, const struct instance *instance),
                         void *closure)
{
  bool reached[GRAPH_MAX_NODES] = {false};
  mark_reached(instance, reached);
  const struct instance *first = instance->stack->instances;
  for (ptrdiff_t i = instance - first; i >= 0; i--)
    if (reached[i]) visit(closure, &first[i]);
}

enum hipmm_status instance_find_below(const struct instance *instance, const void *ptr, struct hipmm_block *block_out)
{
  enum hipmm_status status = HIPMM_E_NOT_SUPPORTED;
  for (size_t i = 0; i < instance->node->n_references; i++) {
    status = instance_find(&instance->stack->instances[instance->node->references[i]], ptr, block_out);
    if (status == HIPMM_OK) return status;
  }
  return status;
}

enum hipmm_status instance_find(const struct instance *instance, const void *ptr, struct hipmm_block *block_out)
{
  const struct hipmm_resource *resource = &instance->resource;
  return resource->ops->find ? resource->ops->find(resource->self, ptr, block_out)
                             : instance_find_below(instance, ptr, block_out);
}

struct search {
  const char *name;
  bool actions;
  const struct instance *found;
  size_t row;
};

static void search_features(void *closure, const struct instance *instance)
{
  struct search *search = closure;
  const struct hipmm_plugin *plugin = &instance->node->plugin->descriptor;
  const struct hipmm_feature *features = search->actions ? plugin->actions : plugin->values;
  uint32_t n = search->actions ? plugin->n_actions : plugin->n_values;
  for (uint32_t row = 0; row < n && !search->found; row++) {
    if (strcmp(features[row].name, search->name)) continue;
    search->found = instance;
    search->row = row;
  }
}

static const struct instance *search_down(const struct instance *instance, const char *name, bool actions,
                                          size_t *row_out)
{
  struct search search = {.name = name, .actions = actions};
  instance_visit_down(instance, search_features, &search);
  if (search.found) *row_out = search.row;
  return search.found;
}

const struct instance *instance_with_value(const struct instance *instance, const char *name, size_t *row_out)
{
  return search_down(instance, name, false, row_out);
}

const struct instance *instance_with_action(const struct instance *instance, const char *name, size_t *row_out)
{
  return search_down(instance, name, true, row_out);
}

/* ---- Counting ---- */

void stack_count_held(struct stack *stack, int64_t bytes)
{
  int64_t now = atomic_fetch_add_explicit(&stack->held_bytes, bytes, memory_order_relaxed) + bytes;
  int_fast64_t peak = atomic_load_explicit(&stack->peak_held_bytes, memory_order_relaxed);
  while (now > peak && !atomic_compare_exchange_weak_explicit(&stack->peak_held_bytes, &peak, now, memory_order_relaxed,
                                                              memory_order_relaxed))
    continue;
}

/* ---- Taking down ---- */

static void destroy_instance(struct instance *instance)
{
  const struct hipmm_plugin *plugin = &instance->node->plugin->descriptor;
  if (instance->created) {
    if (instance->ledger.count && plugin->role == HIPMM_ROLE_SOURCE) {
      char bytes[32];
      log_line(HIPMM_LOG_WARNING, instance->node->name, "device %d: %zu blocks (%s) are still allocated and go with it",
               instance->stack->device, instance->ledger.count,
               text_bytes(instance->ledger.bytes, bytes, sizeof bytes));
    }
    plugin->destroy(instance->self);
  }
  if (instance->options) option_free(plugin->options, plugin->n_options, instance->options);
  free(instance->options);
  free(instance->upstreams);
  ledger_close(&instance->ledger);
  pthread_mutex_destroy(&instance->lock);
}

static void stack_destroy(struct stack *stack)
{
  int previous = hip_enter_device(stack->device);
  for (size_t i = stack->graph->n_nodes; i-- > 0;) destroy_instance(&stack->instances[i]);
  hip_leave_device(stack->device, previous);
  graph_release(stack->graph);
  free(stack->instances);
  free(stack);
}

void stack_retain(struct stack *stack)
{
  atomic_fetch_add_explicit(&stack->references, 1, memory_order_relaxed);
}

void stack_release(struct stack *stack)
{
  if (atomic_fetch_sub_explicit(&stack->references, 1, memory_order_acq_rel) == 1) stack_destroy(stack);
}

/* ---- Building ---- */

static struct hipmm_resource *resolve(void *closure, const char *name)
{
  struct stack *stack = closure;
  int node = graph_find(stack->graph, name);
  return node < 0 ? NULL : &stack->instances[node].resource;
}

/* The thread's record says what is wrong; the graph knows where. */
static enum hipmm_status locate(const struct instance *instance, enum hipmm_status status)
{
  const char *source = instance->stack->graph->source;
  struct hipmm_error error = {.struct_size = sizeof error};
  hipmm_last_error(&error);
  struct hipmm_error located = error;
  located.status = status;
  snprintf(located.resource, sizeof located.resource, "%s", instance->node->name);
  bool whole =
      snprintf(located.file, sizeof located.file, "%s", source) >= 0 &&
      snprintf(located.path, sizeof located.path, "%s%s", instance->node->path, error.path) >= 0 &&
      snprintf(located.message, sizeof located.message, "%s: %s: %s", source, located.path, error.message) >= 0;
  return error_set_located(whole ? &located : &error);
}

static enum hipmm_status fill_options(struct instance *instance)
{
  const struct hipmm_plugin *plugin = &instance->node->plugin->descriptor;
  struct report report = {.source = instance->stack->graph->source};
  size_t free_bytes = 0, total_bytes = 0;
  int code = hip_table()->MemGetInfo(&free_bytes, &total_bytes);
  if (code)
    return locate(instance, error_hip(hip_status(code), instance->node->name, "hipMemGetInfo", code,
                                      hip_table()->GetErrorName(code), 0));
  struct option_context context = {.report = &report,
                                   .path = instance->node->path,
                                   .owner = plugin->type,
                                   .free_bytes = free_bytes ? free_bytes : 1,
                                   .keys = graph_resource_keys,
                                   .takes_objects = true,
                                   .resolve = resolve,
                                   .closure = instance->stack};
  bool filled = option_fill(plugin->options, plugin->n_options, instance->node->object, &context, instance->options);
  if (!filled) {
    free(instance->options);
    instance->options = NULL;
  }
  enum hipmm_status status = filled ? HIPMM_OK : report_raise(&report);
  report_clear(&report);
  return status;
}

static enum hipmm_status create_instance(struct instance *instance)
{
  const struct graph_node *node = instance->node;
  const struct hipmm_plugin *plugin = &node->plugin->descriptor;
  instance->options = calloc(1, plugin->options_bytes + 1);
  instance->upstreams = calloc(node->n_upstreams + 1, sizeof *instance->upstreams);
  if (!instance->options || !instance->upstreams) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  for (size_t i = 0; i < node->n_upstreams; i++)
    instance->upstreams[i] = &instance->stack->instances[node->upstreams[i]].resource;
  enum hipmm_status status = fill_options(instance);
  if (status) return status;
  char nothing;
  void *self = &nothing;
  error_set(HIPMM_OK, "%s", ""); /* so that what is there afterwards is the plugin's word */
  status = plugin->create(&instance->services, instance->options, instance->upstreams, node->n_upstreams, &self);
  if (status && !*hipmm_last_error_message())
    error_set(status, "%s: its plugin failed to create it and gave no reason (%s)", node->name,
              hipmm_status_string(status));
  if (!status && self == &nothing)
    status = error_set(HIPMM_E_PLUGIN, "%s: its plugin says that it is created, but gives no resource", node->name);
  if (status) return locate(instance, status);
  instance->created = true;
  instance->self = self;
  instance->resource = plugin->flags & HIPMM_PLUGIN_NOT_THREAD_SAFE ? (struct hipmm_resource){&serial_ops, instance}
                                                                    : (struct hipmm_resource){plugin->ops, self};
  return HIPMM_OK;
}

static enum hipmm_status create_instances(struct stack *stack)
{
  bool reached[GRAPH_MAX_NODES] = {false};
  mark_reached(&stack->instances[stack->top], reached);
  for (int i = 0; i <= stack->top; i++) {
    enum hipmm_status status = reached[i] ? create_instance(&stack->instances[i]) : HIPMM_OK;
    if (status) return status;
  }
  return HIPMM_OK;
}

static struct stack *stack_new(struct graph *graph, int device)
{
  struct stack *stack = calloc(1, sizeof *stack);
  struct instance *instances = calloc(graph->n_nodes, sizeof *instances);
  if (!stack || !instances) {
    free(stack);
    free(instances);
    return NULL;
  }
  *stack = (struct stack){.device = device, .top = graph_top(graph, device), .graph = graph, .instances = instances};
  atomic_init(&stack->references, 1);
  graph_retain(graph);
  for (size_t i = 0; i < graph->n_nodes; i++) {
    instances[i].node = &graph->nodes[i];
    instances[i].stack = stack;
    services_fill(&instances[i].services, graph->nodes[i].name, device, hip_table());
    ledger_open(&instances[i].ledger);
    pthread_mutex_init(&instances[i].lock, NULL);
  }
  return stack;
}

enum hipmm_status stack_build(struct graph *graph, int device, struct stack **stack_out)
{
  const struct hipmm_hip *hip = hip_table();
  struct stack *stack = stack_new(graph, device);
  if (!stack) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  struct hipmm_error before = {.struct_size =
                                   sizeof before}; /* what was tried in vain on the way to success is no news */
  hipmm_last_error(&before);
  int previous = device;
  int code = hip->GetDevice(&previous);
  if (!code) code = hip->SetDevice(device);
  enum hipmm_status status =
      code ? error_set(hip_status(code), "device %d cannot be used: %s", device, hip->GetErrorString(code))
           : create_instances(stack);
  hip_leave_device(device, previous);
  if (status) {
    stack_release(stack);
    return status;
  }
  error_set_located(&before);
  log_line(HIPMM_LOG_DEBUG, NULL, "device %d: stack built, top is %s", device, graph->nodes[stack->top].name);
  *stack_out = stack;
  return HIPMM_OK;
}
