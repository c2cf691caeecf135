/* SPDX-License-Identifier: MIT */
/* device_table.c: the per-device table. A read is two atomic loads, so that a call without a resource stays cheap. A
 * resource that is replaced is released once all calls that may have borrowed it have ended: at the latest when the table
 * closes. */
#include "device_table.h"
#include "../base/error.h"
#include "../base/lifecycle.h"
#include "../reclaim/reclaim.h"
#include "../runtime/hip.h"
#include "../stack/physical.h"
#include "../stack/stream_registry.h"

#include <stdlib.h>

/* A resource that the program made current, with a reference. */
struct retained {
  struct hipmm_resource *resource;
  bool is_kept; /* until the table closes */
  uint64_t number;
  struct retained *next;
};

struct device_table_entry {
  struct stack *_Atomic stack;             /* NULL: not built yet */
  struct hipmm_resource *_Atomic resource; /* the current one; NULL while there is no stack */
  struct retained *retained;               /* of `resource`; NULL: the stack has it. Under the lock, like the rest */
  struct building building;                /* of the stack */
};

atomic_uint device_table_generation = 2;

static struct device_table_entry entries[STACK_MOST_DEVICES];
static struct graph *graph_in_use;
static struct retained *replaced; /* no longer current; the last one first, so that numbers fall */
static uint64_t last_number;

/* Taken to say who builds what, and to make a resource current. Not held while something is built, which may call functions
 * of the program. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t building_over = PTHREAD_COND_INITIALIZER;

static _Thread_local unsigned n_buildings; /* that the thread has under way */

int device_table_count(void)
{
  int count = hip_device_count();
  return count < STACK_MOST_DEVICES ? count : STACK_MOST_DEVICES;
}

void device_table_open(struct graph *graph)
{
  graph_in_use = graph;
  physical_set_limit(graph);
  atomic_fetch_add(&device_table_generation, 1);
}

static void device_table_replace(struct retained *retained)
{
  if (!retained) return;
  retained->number = ++last_number;
  retained->next = replaced;
  replaced = retained;
}

static void device_table_release_list(struct retained *list)
{
  while (list) {
    struct retained *retained = list;
    list = retained->next;
    hipmm_resource_release(retained->resource);
    free(retained);
  }
}

void device_table_close(void)
{
  atomic_fetch_add(&device_table_generation, 1);
  stream_registry_retire_all(); /* a program may end its streams without a word from now on */
  struct stack *stacks[STACK_MOST_DEVICES];
  for (int device = 0; device < STACK_MOST_DEVICES; device++) {
    stacks[device] = atomic_exchange(&entries[device].stack, NULL);
    atomic_store(&entries[device].resource, NULL);
    device_table_replace(entries[device].retained);
    entries[device].retained = NULL;
  }
  for (int device = 0; device < STACK_MOST_DEVICES; device++)
    if (stacks[device]) stack_release(stacks[device]);
  struct retained *list = replaced;
  replaced = NULL;
  device_table_release_list(list);
  physical_set_limit(NULL);
  graph_release(graph_in_use);
  graph_in_use = NULL;
}

enum hipmm_status device_table_check(int device)
{
  if (device >= 0 && device < device_table_count()) return HIPMM_OK;
  return error_set(HIPMM_E_NO_DEVICE, "device %d does not exist: runtime %s has %d, numbered from 0", device,
                   hip_name(), device_table_count());
}

enum hipmm_status device_table_graph(int device, struct graph **graph_out)
{
  enum hipmm_status status = device_table_check(device);
  if (status) return status;
  graph_retain(graph_in_use);
  *graph_out = graph_in_use;
  return HIPMM_OK;
}

const struct graph *device_table_graph_in_use(void)
{
  return graph_in_use;
}

/* Waits until no thread builds it; the lock is held. Refuses the thread that builds it, in a function of the program. Refuses
 * others that cannot wait: the builder may wait for what this thread builds, or for a resource that it is in. */
static enum hipmm_status device_table_await(const struct building *building)
{
  bool may_wait = !n_buildings && !attempt_is_in_program();
  while (building->is_under_way && may_wait) pthread_cond_wait(&building_over, &lock);
  if (!building->is_under_way) return HIPMM_OK;
  if (pthread_equal(building->builder, pthread_self()))
    return error_set(HIPMM_E_STATE,
                     "this is called from within the building of a device's stack, which must end first");
  return error_set(HIPMM_E_STATE,
                   "another thread builds it, and a function of the program that is called while memory is "
                   "allocated, or a stack is built, does not wait for that");
}

enum hipmm_status device_table_build_alone(struct building *building, enum hipmm_status (*build)(void *closure),
                                           void *closure)
{
  pthread_mutex_lock(&lock);
  enum hipmm_status status = device_table_await(building);
  if (!status) {
    *building = (struct building){true, pthread_self()};
    pthread_mutex_unlock(&lock);
    n_buildings++;
    status = build(closure);
    n_buildings--;
    pthread_mutex_lock(&lock);
    building->is_under_way = false;
    pthread_cond_broadcast(&building_over);
  }
  pthread_mutex_unlock(&lock);
  return status;
}

struct device_table_building {
  int device;
  enum stack_user user;
};

/* A resource that the program made current meanwhile stays current. */
static enum hipmm_status device_table_build_stack(void *building_)
{
  const struct device_table_building *building = building_;
  int device = building->device;
  struct device_table_entry *entry = &entries[device];
  struct hipmm_resource *none = NULL;
  struct stack *stack;
  if (atomic_load(&entry->stack)) return HIPMM_OK; /* another thread has built it */
  enum hipmm_status status =
      stack_build(graph_in_use, device, graph_top(graph_in_use, device), NULL, building->user, &stack);
  if (status) return status;
  atomic_compare_exchange_strong(&entry->resource, &none, &stack->instances[stack->top].resource);
  atomic_store(&entry->stack, stack);
  return HIPMM_OK;
}

struct stack *device_table_stack_if_built(int device)
{
  if (device < 0 || device >= STACK_MOST_DEVICES) return NULL;
  return atomic_load_explicit(&entries[device].stack, memory_order_acquire);
}

static enum hipmm_status device_table_build(void *building)
{
  int device = ((const struct device_table_building *)building)->device;
  return device_table_build_alone(&entries[device].building, device_table_build_stack, building);
}

static enum hipmm_status device_table_stack_for(int device, enum stack_user user, struct stack **stack_out)
{
  struct device_table_building building = {device, user};
  enum hipmm_status status = device_table_check(device);
  if (!status && !device_table_stack_if_built(device)) status = reclaim_build(device_table_build, &building);
  if (!status) *stack_out = device_table_stack_if_built(device);
  return status;
}

struct building_beside {
  struct graph *graph;
  int device;
  const struct external *external;
  struct stack *stack;
};

static enum hipmm_status device_table_build_again(void *building_)
{
  struct building_beside *building = building_;
  return stack_build(building->graph, building->device, graph_top(building->graph, building->device),
                     building->external, STACK_FOR_ANY, &building->stack);
}

enum hipmm_status device_table_build_beside(struct graph *graph, int device, const struct external *external,
                                            struct stack **stack_out)
{
  struct building_beside building = {graph, device, external, NULL};
  enum hipmm_status status = reclaim_build(device_table_build_again, &building);
  if (!status) *stack_out = building.stack;
  return status;
}

enum hipmm_status device_table_stack(int device, struct stack **stack_out)
{
  return device_table_stack_for(device, STACK_FOR_ANY, stack_out);
}

struct hipmm_resource *device_table_resource_if_built(int device)
{
  if (device < 0 || device >= STACK_MOST_DEVICES) return NULL;
  return atomic_load(&entries[device].resource); /* in one order with caller_enter(): see callers_have_left() */
}

enum hipmm_status device_table_resource_for(int device, enum stack_user user, struct hipmm_resource **resource_out)
{
  struct stack *stack;
  struct hipmm_resource *resource = device_table_resource_if_built(device);
  enum hipmm_status status = resource ? HIPMM_OK : device_table_stack_for(device, user, &stack);
  if (!status) *resource_out = resource ? resource : device_table_resource_if_built(device);
  return status;
}

enum hipmm_status device_table_resource(int device, struct hipmm_resource **resource_out)
{
  return device_table_resource_for(device, STACK_FOR_ANY, resource_out);
}

enum hipmm_status device_table_current(int *device_out)
{
  int device, code = hip_table()->GetDevice(&device);
  if (code) return hip_refuse(NULL, "hipGetDevice", code, 0);
  *device_out = device;
  return HIPMM_OK;
}

enum hipmm_status device_table_enter(int device, int *previous_out)
{
  int previous = 0;
  enum hipmm_status status = device_table_current(&previous);
  if (status) return status;
  int code = previous == device ? 0 : hip_table()->SetDevice(device);
  if (code) return hip_refuse(NULL, "hipSetDevice", code, 0);
  *previous_out = previous;
  return HIPMM_OK;
}

enum hipmm_status device_table_current_resource(struct hipmm_resource **resource_out)
{
  int device = 0;
  enum hipmm_status status = device_table_current(&device);
  return status ? status : device_table_resource(device, resource_out);
}

static enum hipmm_status device_table_enter_with(struct hipmm_resource **resource, struct caller_thread **thread_out,
                                                 enum hipmm_status (*find)(struct hipmm_resource **resource_out))
{
  *thread_out = NULL;
  if (*resource) return HIPMM_OK;
  struct caller_thread *thread = lifecycle_enter_thread();
  if (!thread) return HIPMM_E_STATE;
  enum hipmm_status status = find(resource);
  if (status)
    lifecycle_leave_thread(thread);
  else
    *thread_out = thread;
  return status;
}

enum hipmm_status device_table_enter_call(struct hipmm_resource **resource, struct caller_thread **thread_out)
{
  return device_table_enter_with(resource, thread_out, device_table_current_resource);
}

static enum hipmm_status device_table_current_if_built(struct hipmm_resource **resource_out)
{
  int device = 0;
  enum hipmm_status status = device_table_current(&device);
  if (status) return status;
  *resource_out = device_table_resource_if_built(device);
  if (*resource_out) return HIPMM_OK;
  return error_refuse(HIPMM_E_POINTER, NULL, "nothing was allocated from device {0}: it has no stack yet",
                      (uint64_t)device, 0, 0);
}

enum hipmm_status device_table_enter_free(struct hipmm_resource **resource, struct caller_thread **thread_out)
{
  return device_table_enter_with(resource, thread_out, device_table_current_if_built);
}

/* Releases what was replaced, unless a call may still have it: then the next replacement tries again. A call of this thread
 * that began with such a resource, and called a function of the program, has it too. */
static void device_table_release_replaced(void)
{
  struct retained *list = NULL, **at = &replaced;
  pthread_mutex_lock(&lock);
  uint64_t last = replaced ? last_number : 0;
  pthread_mutex_unlock(&lock);
  if (!last || !callers_have_left()) return;
  pthread_mutex_lock(&lock);
  while (*at) {
    struct retained *retained = *at;
    if (retained->number > last || retained->is_kept) {
      at = &retained->next;
      continue;
    }
    *at = retained->next;
    retained->next = list;
    list = retained;
  }
  pthread_mutex_unlock(&lock);
  device_table_release_list(list);
}

void device_table_keep(const struct hipmm_resource *resource)
{
  pthread_mutex_lock(&lock);
  struct retained *retained = entries[instance_from(resource)->stack->device].retained;
  if (!retained || retained->resource != resource)
    for (retained = replaced; retained && retained->resource != resource;) retained = retained->next;
  if (retained) retained->is_kept = true; /* otherwise the stack has it */
  pthread_mutex_unlock(&lock);
}

static enum hipmm_status device_table_check_resource(int device, const struct hipmm_resource *resource)
{
  enum hipmm_status status = device_table_check(device);
  if (!status && resource) status = resource_check(resource);
  if (status || !resource || hipmm_resource_device(resource) == device) return status;
  return error_set(HIPMM_E_ARGUMENT, "resource %s serves device %d and cannot be made current on device %d",
                   hipmm_resource_name(resource), hipmm_resource_device(resource), device);
}

enum hipmm_status device_table_set_resource(int device, struct hipmm_resource *resource,
                                            struct hipmm_resource **previous_out)
{
  struct hipmm_resource *previous = NULL;
  enum hipmm_status status = device_table_check_resource(device, resource);
  if (!status && previous_out) status = device_table_resource(device, &previous);
  if (status) return status;
  struct retained *retained = resource ? malloc(sizeof *retained) : NULL;
  if (resource && !retained) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  struct device_table_entry *entry = &entries[device];
  pthread_mutex_lock(&lock);
  status = device_table_await(&entry->building);
  if (!status) {
    struct stack *stack = device_table_stack_if_built(device);
    if (retained) {
      *retained = (struct retained){.resource = resource};
      hipmm_resource_retain(resource);
    } else if (stack) {
      resource = &stack->instances[stack->top].resource;
    }
    previous = atomic_exchange(&entry->resource, resource);
    device_table_replace(entry->retained);
    entry->retained = retained;
  }
  pthread_mutex_unlock(&lock);
  if (status) {
    free(retained);
    return status;
  }
  if (previous_out) {
    hipmm_resource_retain(previous);
    *previous_out = previous;
  }
  device_table_release_replaced();
  return HIPMM_OK;
}
