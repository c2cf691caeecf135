/* SPDX-License-Identifier: MIT */
/* named_resources.c: see named.h. A resource that the device's own stack reaches is taken from it; for another a stack of its own
 * is built, since no device of the graph leads there. */
#include "named_resources.h"

#include "../core/base/error.h"
#include "message.h"

#include <stdatomic.h>
#include <string.h>

/* Whether the memory of every source at or below `node` is of a type among `types`. */
static bool named_resources_gives(const struct graph *graph, int node, const char *const *types)
{
  bool is_reached[GRAPH_MAX_NODES] = {false};
  is_reached[node] = true;
  for (int i = node; i >= 0; i--) {
    const struct graph_node *at = &graph->nodes[i];
    if (!is_reached[i]) continue;
    for (size_t r = 0; r < at->n_references; r++) is_reached[at->references[r]] = true;
    if (at->plugin->descriptor.role != HIPMM_ROLE_SOURCE) continue;
    const char *const *type = types;
    while (*type && strcmp(*type, at->plugin->descriptor.type)) type++;
    if (!*type) return false;
  }
  return true;
}

static void named_resources_serve(struct served_device *served, enum kind kind, const char *const *types)
{
  static atomic_bool said[KIND_COUNT];
  struct stack *own = served->kinds[KIND_DEVICE].stack, *stack = own;
  int node = graph_find(own->graph, kind_name(kind));
  if (node < 0) return;
  if (!named_resources_gives(own->graph, node, types)) {
    message_write_once(&said[kind],
                       "%s: %s: the memory below is not %s memory, so the program gets that from the runtime itself",
                       own->graph->source, own->graph->nodes[node].path, kind_name(kind));
    return;
  }
  if (!own->instances[node].created && stack_build(own->graph, served->device, node, NULL, &stack)) {
    message_write_once(&said[kind], "%s; the program gets %s memory from the runtime itself",
                       hipmm_last_error_message(), kind_name(kind));
    return;
  }
  served->kinds[kind] = (struct served){&stack->instances[node].resource, stack};
}

void named_resources_open(struct served_device *served)
{
  static const char *const managed[] = {"managed", "async_managed", NULL};
  static const char *const pinned[] = {"pinned", NULL};
  named_resources_serve(served, KIND_MANAGED, managed);
  named_resources_serve(served, KIND_PINNED, pinned);
}

void named_resources_close(struct served_device *served)
{
  for (int kind = KIND_DEVICE + 1; kind < KIND_COUNT; kind++) {
    struct stack *stack = served->kinds[kind].stack;
    if (stack && stack != served->kinds[KIND_DEVICE].stack) stack_release(stack);
    served->kinds[kind] = (struct served){NULL, NULL};
  }
}
