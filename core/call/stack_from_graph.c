/* SPDX-License-Identifier: MIT */
/* stack_from_graph.c: stacks that a library builds from its own graph, beside the table of devices: neither
 * hipmm_init() nor hipmm_finalize() of other users touches them. Called by applications and by libraries in them. */
#include "../base/error.h"
#include "../base/lifecycle.h"
#include "../base/text.h"
#include "../runtime/hip.h"
#include "device_table.h"

/* Opens the runtime, or sees that the graph asks for no other runtime than the one in use. From then on the runtime stays
 * as it is, until the caller lowers lifecycle_own_stacks. */
static enum hipmm_status stack_from_graph_open_runtime(const struct graph *graph)
{
  enum hipmm_status status = lifecycle_begin_change();
  if (status) return status;
  bool is_in_use = lifecycle_users > 0 || atomic_load(&lifecycle_own_stacks) > 0;
  status = hip_open(graph, is_in_use);
  if (!status) lifecycle_mark_runtime();
  if (!status) atomic_fetch_add(&lifecycle_own_stacks, 1);
  lifecycle_end_change((enum lifecycle)atomic_load(&lifecycle_now));
  return status;
}

static enum hipmm_status stack_from_graph_build(struct graph *graph, int device, const char *name,
                                                struct hipmm_resource **resource_out)
{
  struct stack *stack;
  const struct external external = {.name = name ? name : "stack", .is_named = name != NULL, .is_whole = true};
  enum hipmm_status status = stack_from_graph_open_runtime(graph);
  if (status) return status;
  status = device_table_check(device);
  if (!status) status = device_table_build_beside(graph, device, &external, &stack);
  atomic_fetch_sub(&lifecycle_own_stacks, 1); /* the stack counts itself */
  if (status) return status;
  struct instance *top = &stack->instances[stack->top];
  atomic_store(&top->references, 1); /* the caller's, which is the stack's own */
  *resource_out = &top->resource;
  return HIPMM_OK;
}

/* From `file`, or from `json`. What fails on the way to success is not the caller's failure. */
static enum hipmm_status stack_from_graph(int device, const char *name, const char *file, const char *json,
                                          struct hipmm_resource **resource_out)
{
  char shown[TEXT_QUOTE_BYTES];
  struct graph *graph;
  const struct error_record before = error_mark();
  if (lifecycle_refuses_calls()) return lifecycle_check();
  if (!resource_out) return error_set(HIPMM_E_ARGUMENT, "resource_out is NULL");
  if (name && !text_is_name(name))
    return error_set(HIPMM_E_ARGUMENT, "name: %s is not a name; " TEXT_NAME_RULE, text_quote(name, shown, sizeof shown),
                     TEXT_LONGEST_NAME);
  enum hipmm_status status = graph_load(file, json, &graph);
  if (status) return status;
  status = stack_from_graph_build(graph, device, name, resource_out);
  graph_release(graph); /* the stack keeps it */
  if (!status) error_return_to_mark(&before);
  return status;
}

enum hipmm_status hipmm_stack_build_from_file(int device, const char *name, const char *path,
                                              struct hipmm_resource **resource_out)
{
  if (!path && !lifecycle_refuses_calls()) return error_set(HIPMM_E_ARGUMENT, "path is NULL");
  return stack_from_graph(device, name, path, NULL, resource_out);
}

enum hipmm_status hipmm_stack_build_from_string(int device, const char *name, const char *json,
                                                struct hipmm_resource **resource_out)
{
  if (!json && !lifecycle_refuses_calls()) return error_set(HIPMM_E_ARGUMENT, "json is NULL");
  return stack_from_graph(device, name, NULL, json, resource_out);
}
