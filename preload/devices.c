/* SPDX-License-Identifier: MIT */
/* devices.c: the devices that hipmm serves; see devices.h. Devices are opened one at a time; to read an open one takes no
 * lock. */
#include "devices.h"

#include "../core/base/cancel.h"
#include "../core/base/error.h"
#include "../core/runtime/hip.h"
#include "../core/stack/device_table.h"
#include "init.h"
#include "message.h"
#include "next_symbol.h"
#include "streams.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum state { STATE_NEW, STATE_SERVED, STATE_REFUSED };

static struct served_device devices[DEVICES_MOST];
static atomic_int states[DEVICES_MOST];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

const char *kind_name(enum kind kind)
{
  static const char *const names[] = {"device", "managed", "pinned"};
  return names[kind];
}

/* ---- Managed and pinned memory ----
 *
 * The resources that the graph calls "managed" and "pinned" serve these kinds. Where the stack of the device includes
 * such a resource, the stack's instance is taken; for another one a stack of its own is built, since no device of the
 * graph needs it. */

/* Whether the memory of every source at or below `node` is of a type among `types`. */
static bool devices_named_is_of(const struct graph *graph, int node, const char *const *types)
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

static void devices_open_named_kind(struct served_device *served, enum kind kind, const char *const *types)
{
  static atomic_bool is_written[KIND_COUNT];
  struct stack *own = served->kinds[KIND_DEVICE].stack, *stack = own;
  int node = graph_find(own->graph, kind_name(kind));
  if (node < 0) return;
  if (!devices_named_is_of(own->graph, node, types)) {
    message_write_once(
        &is_written[kind],
        "%s: %s: the resources below do not give %s memory; the program gets such memory from the runtime",
        own->graph->source, own->graph->nodes[node].path, kind_name(kind));
    return;
  }
  if (!own->instances[node].created && stack_build(own->graph, served->device, node, NULL, STACK_FOR_ANY, &stack)) {
    message_write_once(&is_written[kind], "%s; the program gets %s memory from the runtime", hipmm_last_error_message(),
                       kind_name(kind));
    return;
  }
  served->kinds[kind] = (struct served){&stack->instances[node].resource, stack};
}

static void devices_open_named(struct served_device *served)
{
  static const char *const managed[] = {"managed", "async_managed", NULL};
  static const char *const pinned[] = {"pinned", NULL};
  devices_open_named_kind(served, KIND_MANAGED, managed);
  devices_open_named_kind(served, KIND_PINNED, pinned);
}

static void devices_close_named(struct served_device *served)
{
  for (int kind = KIND_DEVICE + 1; kind < KIND_COUNT; kind++) {
    struct stack *stack = served->kinds[kind].stack;
    if (stack && stack != served->kinds[KIND_DEVICE].stack) stack_release(stack);
    served->kinds[kind] = (struct served){NULL, NULL};
  }
}

/* ---- Opening ---- */

/* If the stream cannot be created, the default stream takes its place, and to wait for that takes longer. */
static void devices_make_idle_stream(struct served_device *served)
{
  const struct hipmm_hip *hip = hip_table();
  int previous = hip_enter_device(served->device);
  served->idle = NULL;
  if (hip->StreamCreateWithFlags(&served->idle, HIPMM_HIP_STREAM_NON_BLOCKING)) {
    hip->GetLastError();
    served->idle = NULL;
  } else if (hipmm_stream_retain(served->device, served->idle)) {
    hip->GetLastError();
  }
  hip_leave_device(served->device, previous);
}

static enum state devices_open_locked(enum family family, int device)
{
  struct served_device *served = &devices[device];
  struct stack *stack;
  struct hipmm_resource *resource;
  char why[2200];
  /* Makes CUDA's runtime create the context of the device and make it current, whatever the program did to it. */
  if (family == FAMILY_CUDA && next_current_device(family) == device) next_pointer(HOOK_cudaFree, NULL);
  if (device_table_stack(device, &stack) || device_table_resource(device, &resource)) {
    snprintf(why, sizeof why, "device %d: %s", device, hipmm_last_error_message());
    init_refuse(why);
    return STATE_REFUSED;
  }
  served->device = device;
  served->kinds[KIND_DEVICE] = (struct served){resource, stack};
  devices_make_idle_stream(served);
  devices_open_named(served);
  streams_mark_used(device);
  streams_retain_known(device);
  return STATE_SERVED;
}

struct served_device *devices_get(enum family family, int device)
{
  if (device < 0 || device >= DEVICES_MOST) return NULL;
  if (atomic_load_explicit(&states[device], memory_order_acquire) == STATE_NEW) {
    int cancel = cancel_forbid();
    pthread_mutex_lock(&lock);
    if (atomic_load(&states[device]) == STATE_NEW) atomic_store(&states[device], devices_open_locked(family, device));
    pthread_mutex_unlock(&lock);
    cancel_allow(cancel);
  }
  return devices_if_served(device);
}

struct served_device *devices_if_served(int device)
{
  bool is_served = device >= 0 && device < DEVICES_MOST &&
                   atomic_load_explicit(&states[device], memory_order_acquire) == STATE_SERVED;
  return is_served ? &devices[device] : NULL;
}

int devices_count_served(void)
{
  int count = 0;
  for (int device = 0; device < DEVICES_MOST; device++) count += devices_if_served(device) != NULL;
  return count;
}

int devices_wait_for_idle_stream(const struct served_device *served)
{
  int previous = hip_enter_device(served->device), code = hip_table()->StreamSynchronize(served->idle);
  hip_leave_device(served->device, previous);
  return code;
}

/* ---- What is held ---- */

/* A search for `ptr`, and what was found. */
struct devices_search {
  const char *ptr;
  struct hipmm_block held;
  bool is_found;
};

/* Calls `look` for each resource of each stack, until the search has found something. */
static bool devices_search(struct devices_search *search,
                           void (*look)(struct devices_search *search, struct instance *instance))
{
  for (int i = 0; i < DEVICES_MOST * KIND_COUNT && !search->is_found; i++) {
    struct served_device *served = devices_if_served(i / KIND_COUNT);
    struct stack *stack = served ? served->kinds[i % KIND_COUNT].stack : NULL;
    for (size_t node = 0; stack && node < stack->graph->n_nodes && !search->is_found; node++)
      if (stack->instances[node].created) look(search, &stack->instances[node]);
  }
  return search->is_found;
}

static void devices_look_up_start(struct devices_search *search, struct instance *instance)
{
  search->is_found = block_map_find(&instance->block_map, search->ptr, &search->held);
}

bool devices_hold(const void *ptr, struct hipmm_block *held_out)
{
  struct devices_search search = {.ptr = ptr};
  if (!devices_search(&search, devices_look_up_start)) return false;
  *held_out = search.held;
  return true;
}

static void devices_see_extent(void *closure, const struct hipmm_extent *extent)
{
  struct devices_search *search = closure;
  const char *start = extent->ptr;
  search->is_found |= search->ptr >= start && (size_t)(search->ptr - start) < extent->bytes;
}

static void devices_look_at_extents(struct devices_search *search, struct instance *instance)
{
  (void)instance->resource.ops->visit(instance->resource.self, devices_see_extent, search);
}

bool devices_hold_at(const void *ptr)
{
  return devices_search(&(struct devices_search){.ptr = ptr}, devices_look_at_extents);
}

int64_t devices_idle_bytes(const struct served_device *served)
{
  int64_t held = atomic_load(&served->kinds[KIND_DEVICE].stack->held_bytes);
  int64_t live = atomic_load(&served->usage[KIND_DEVICE].bytes);
  return held > live ? held - live : 0;
}

bool devices_peak_reserved(const struct served_device *served, enum kind kind, int64_t *bytes_out)
{
  const struct stack *stack = served->kinds[kind].stack;
  if (!stack || (kind != KIND_DEVICE && stack == served->kinds[KIND_DEVICE].stack)) return false;
  *bytes_out = atomic_load(&stack->peak_held_bytes);
  return true;
}

static void devices_close_device(struct served_device *served)
{
  const struct hipmm_hip *hip = hip_table();
  streams_retain_no_more(served->device);
  devices_close_named(served);
  if (served->idle) {
    hipmm_stream_retire(served->device, served->idle);
    int previous = hip_enter_device(served->device);
    hip->StreamDestroy(served->idle);
    hip_leave_device(served->device, previous);
  }
  served->kinds[KIND_DEVICE] = (struct served){NULL, NULL};
  atomic_store(&states[served->device], STATE_NEW);
}

void devices_close(void)
{
  int cancel = cancel_forbid();
  pthread_mutex_lock(&lock);
  for (int device = 0; device < DEVICES_MOST; device++)
    if (devices_if_served(device)) devices_close_device(&devices[device]);
  pthread_mutex_unlock(&lock);
  cancel_allow(cancel);
}
