/* SPDX-License-Identifier: MIT */
/* pinned_resource.c: pinned memory for host buffers whose caller names no resource. Each device's is a stack of its own,
 * built at first use from a graph of one resource, and let go by hipmm_finalize(). */
#include "../base/error.h"
#include "../base/lifecycle.h"
#include "../call/device_table.h"
#include "storage.h"

static struct stack *stacks[STACK_MOST_DEVICES]; /* NULL: not built yet */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void pinned_resource_close(void)
{
  for (int device = 0; device < STACK_MOST_DEVICES; device++) {
    pthread_mutex_lock(&lock);
    struct stack *stack = stacks[device];
    stacks[device] = NULL;
    pthread_mutex_unlock(&lock);
    if (stack) stack_release(stack);
  }
}

static enum hipmm_status pinned_resource_build(int device, struct stack **stack_out)
{
  struct graph *graph = NULL;
  struct diagnostics report = {.source = "<host buffers>"};
  enum hipmm_status status = graph_from_string("{\"stack\": [\"pinned\"]}", report.source, &report, &graph);
  if (status) status = diagnostics_raise(&report);
  diagnostics_clear(&report);
  if (status) return status;
  status = stack_build(graph, device, graph_top(graph, device), NULL, STACK_FOR_ANY, stack_out);
  graph_release(graph); /* the stack keeps it */
  return status;
}

static enum hipmm_status pinned_resource_find(int device, struct hipmm_resource **resource_out)
{
  enum hipmm_status status = HIPMM_OK;
  pthread_mutex_lock(&lock);
  struct stack **stack = &stacks[device];
  if (!*stack) status = pinned_resource_build(device, stack);
  if (!status) {
    *resource_out = &(*stack)->instances[(*stack)->top].resource;
    hipmm_resource_retain(*resource_out);
  }
  pthread_mutex_unlock(&lock);
  return status;
}

enum hipmm_status pinned_resource_get(int device, struct hipmm_resource **resource_out)
{
  enum hipmm_status status = lifecycle_enter();
  if (status) return status;
  status = device_table_check(device);
  if (!status) status = pinned_resource_find(device, resource_out);
  lifecycle_leave();
  return status;
}

bool pinned_resource_is_one(const struct hipmm_resource *resource)
{
  CLOSURE_EACH(one, instance_from(resource)) {
    const struct hipmm_plugin *plugin = &one->node->plugin->descriptor;
    if (plugin->role == HIPMM_ROLE_SOURCE && !(plugin->flags & HIPMM_PLUGIN_HOST_MEMORY)) return false;
  }
  return true;
}
