/* SPDX-License-Identifier: MIT */
/* devices.c: the devices that hipmm serves; see devices.h. Devices are opened one at a time; to read an open one takes no
 * lock. */
#include "devices.h"

#include "../../core/framework/framework_device.h"
#include "../../core/runtime/hip.h"
#include "contexts.h"
#include "init.h"
#include "next_symbol.h"
#include "streams.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum device_state { STATE_NEW, STATE_SERVED, STATE_REFUSED };

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
 * The resources that the graph calls "managed" and "pinned" serve these kinds. Where the stack of the device lacks such a
 * resource, it is built there. */

/* Whether the memory of every source at or below `node` is of a type among `types`. */
static bool devices_named_is_of(const struct graph *graph, int node, const char *const *types)
{
  bool is_needed[GRAPH_MAX_NODES] = {false};
  is_needed[node] = true;
  graph_mark_needed(graph, is_needed);
  for (size_t i = 0; i < graph->n_nodes; i++) {
    const struct graph_node *at = &graph->nodes[i];
    if (!is_needed[i] || at->plugin->descriptor.role != HIPMM_ROLE_SOURCE) continue;
    const char *const *type = types;
    while (*type && strcmp(*type, at->plugin->descriptor.type)) type++;
    if (!*type) return false;
  }
  return true;
}

static void devices_open_named(struct served_device *served, enum kind kind, const char *const *types)
{
  static atomic_bool is_written[KIND_COUNT];
  struct stack *own = served->stack;
  int node = graph_find(own->graph, kind_name(kind));
  if (node < 0) return;
  if (!devices_named_is_of(own->graph, node, types)) {
    message_write_once(
        &is_written[kind],
        "%s: %s: the resources below do not give %s memory; the program gets such memory from the runtime",
        own->graph->source, own->graph->nodes[node].path, kind_name(kind));
    return;
  }
  if (by_name_build(own, node)) {
    message_write_once(&is_written[kind], "%s; the program gets %s memory from the runtime", hipmm_last_error_message(),
                       kind_name(kind));
    return;
  }
  served->resources[kind] = &own->instances[node].resource;
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

static enum device_state devices_open_locked(enum family family, int device)
{
  struct served_device *served = &devices[device];
  struct stack *stack;
  struct hipmm_resource *resource;
  int count;
  char why[2200];
  /* Makes CUDA's runtime create the context of the device and make it current, whatever the program did to it. */
  if (family == FAMILY_CUDA && contexts_current_device(family) == device) next_pointer(HOOK_cudaFree, NULL);
  if (device_table_resource_for(device, framework_user_of_process(), &resource) || device_table_stack(device, &stack)) {
    snprintf(why, sizeof why, "device %d: %s", device, hipmm_last_error_message());
    init_refuse(why);
    return STATE_REFUSED;
  }
  device_table_keep(resource);
  served->device = device;
  served->stack = stack;
  served->resources[KIND_DEVICE] = resource;
  atomic_store(&served->lacks_order, false);
  served->may_lack_order = stack->user != STACK_FOR_ANY && !hipmm_device_count(&count) && count > 1;
  devices_make_idle_stream(served);
  devices_open_named(served, KIND_MANAGED, (const char *const[]){"managed", "async_managed", NULL});
  devices_open_named(served, KIND_PINNED, (const char *const[]){"pinned", NULL});
  streams_mark_used(device);
  streams_retain_known(device);
  return STATE_SERVED;
}

struct served_device *devices_get(enum family family, int device)
{
  if (device < 0 || device >= DEVICES_MOST) return NULL;
  if (atomic_load_explicit(&states[device], memory_order_acquire) == STATE_NEW) {
    pthread_mutex_lock(&lock);
    if (atomic_load(&states[device]) == STATE_NEW) atomic_store(&states[device], devices_open_locked(family, device));
    pthread_mutex_unlock(&lock);
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

bool devices_are_mapped_at(void *ptr, void **base_out, size_t *bytes_out)
{
  struct hipmm_block held;
  const struct hipmm_hip *hip = hip_table();
  int code =
      hip->MemGetAddressRange ? hip->MemGetAddressRange(base_out, bytes_out, ptr) : HIPMM_HIP_ERROR_NOT_SUPPORTED;
  if (code && hip->MemGetAddressRange) hip->GetLastError();
  return code || !devices_have_block(*base_out, &held);
}

/* A search for `ptr`, and what was found. */
struct devices_search {
  const char *ptr;
  struct hipmm_block held;
  struct hipmm_extent extent;
  int device;
  bool is_found;
};

typedef void devices_visitor(void *closure, int device, struct instance *instance);

/* Stops when *is_enough is true. */
static void devices_each(devices_visitor *visit, void *closure, const bool *is_enough)
{
  for (int device = 0; device < DEVICES_MOST && !*is_enough; device++) {
    struct served_device *served = devices_if_served(device);
    for (size_t node = served ? served->stack->graph->n_nodes : 0; node-- > 0 && !*is_enough;)
      if (served->stack->instances[node].created) visit(closure, device, &served->stack->instances[node]);
  }
}

void devices_visit(devices_visitor *visit, void *closure)
{
  const bool never = false;
  pthread_mutex_lock(&lock);
  devices_each(visit, closure, &never);
  pthread_mutex_unlock(&lock);
}

static void devices_look_up_start(void *closure, int device, struct instance *instance)
{
  struct devices_search *search = closure;
  (void)device;
  search->is_found = block_map_find(&instance->block_map, search->ptr, &search->held);
}

bool devices_have_block(const void *ptr, struct hipmm_block *held_out)
{
  struct devices_search search = {.ptr = ptr};
  devices_each(devices_look_up_start, &search, &search.is_found);
  if (search.is_found) *held_out = search.held;
  return search.is_found;
}

static void devices_see_extent(void *closure, const struct hipmm_extent *extent)
{
  struct devices_search *search = closure;
  const char *start = extent->ptr;
  if (search->is_found || search->ptr < start || (size_t)(search->ptr - start) >= extent->bytes) return;
  search->extent = *extent;
  search->is_found = true;
}

static void devices_look_at_extents(void *closure, int device, struct instance *instance)
{
  ((struct devices_search *)closure)->device = device;
  (void)instance->resource.ops->visit(instance->resource.self, devices_see_extent, closure);
}

bool devices_find_extent(const void *ptr, struct hipmm_extent *extent_out, struct served_device **served_out)
{
  struct devices_search search = {.ptr = ptr};
  devices_each(devices_look_at_extents, &search, &search.is_found);
  if (!search.is_found) return false;
  *extent_out = search.extent;
  *served_out = devices_if_served(search.device);
  return true;
}

/* Whether memory of this kind comes from a source that gives device memory too. */
static bool devices_is_with_device(const struct served_device *served, enum kind kind)
{
  if (kind == KIND_DEVICE || !served->resources[kind]) return false;
  const struct instance *device = instance_from(served->resources[KIND_DEVICE]);
  CLOSURE_EACH(one, instance_from(served->resources[kind]))
    if (one == device || dependencies_include(device, one)) return true;
  return false;
}

int64_t devices_idle_bytes(const struct served_device *served)
{
  int64_t idle = 0;
  CLOSURE_EACH(one, instance_from(served->resources[KIND_DEVICE])) idle += instance_held_bytes(one);
  for (int kind = 0; kind < KIND_COUNT; kind++)
    if (kind == KIND_DEVICE || devices_is_with_device(served, (enum kind)kind))
      idle -= atomic_load(&served->usage[kind].bytes);
  return idle > 0 ? idle : 0;
}

bool devices_peak_reserved(const struct served_device *served, enum kind kind, int64_t *bytes_out)
{
  if (!served->resources[kind] || devices_is_with_device(served, kind)) return false;
  *bytes_out = 0;
  CLOSURE_EACH(one, instance_from(served->resources[kind])) *bytes_out += atomic_load(&one->peak_held_bytes);
  return true;
}

static void devices_close_device(struct served_device *served)
{
  const struct hipmm_hip *hip = hip_table();
  streams_retain_no_more(served->device);
  if (served->idle) {
    hipmm_stream_retire(served->device, served->idle);
    int previous = hip_enter_device(served->device);
    hip->StreamDestroy(served->idle);
    hip_leave_device(served->device, previous);
  }
  served->stack = NULL;
  memset(served->resources, 0, sizeof served->resources);
  atomic_store(&states[served->device], STATE_NEW);
}

void devices_close(void)
{
  pthread_mutex_lock(&lock);
  for (int device = 0; device < DEVICES_MOST; device++)
    if (devices_if_served(device)) devices_close_device(&devices[device]);
  pthread_mutex_unlock(&lock);
}
