/* SPDX-License-Identifier: MIT */
/* device_table.c: the per-device table. Reading it is two atomic loads, so that a call without a resource stays cheap;
 * nothing that was ever in force is let go before the table closes, so that a borrowed resource stays good. */
#include "device_table.h"
#include "../base/cancel.h"
#include "../base/error.h"
#include "../base/lifecycle.h"
#include "../base/text.h"
#include "../runtime/hip.h"

#include <stdlib.h>

struct device_table_entry {
  struct stack *_Atomic stack;             /* NULL: not built yet */
  struct hipmm_resource *_Atomic resource; /* in force; NULL while there is no stack */
  bool is_building;                        /* under the lock, as builder is */
  pthread_t builder;
};

/* A resource of another origin that was put in force: the table holds a reference. */
struct kept {
  struct hipmm_resource *resource;
  struct kept *next;
};

atomic_uint device_table_openings = 2;

static struct device_table_entry entries[DEVICE_TABLE_MOST];
static struct graph *graph_in_use;
static atomic_int device_count;
static struct kept *kept_resources;

/* Of building and setting. A stack that is being built may call functions of the program: the lock is not held then. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t building_over = PTHREAD_COND_INITIALIZER;

void device_table_open(struct graph *graph, int count)
{
  device_count = count < DEVICE_TABLE_MOST ? count : DEVICE_TABLE_MOST;
  graph_in_use = graph;
  atomic_fetch_add(&device_table_openings, 1);
}

void device_table_close(void)
{
  atomic_fetch_add(&device_table_openings, 1);
  struct stack *stacks[DEVICE_TABLE_MOST];
  for (int device = 0; device < DEVICE_TABLE_MOST; device++) {
    stacks[device] = atomic_exchange(&entries[device].stack, NULL);
    atomic_store(&entries[device].resource, NULL);
  }
  for (int device = 0; device < DEVICE_TABLE_MOST; device++)
    if (stacks[device]) stack_release(stacks[device]);
  while (kept_resources) {
    struct kept *kept = kept_resources;
    kept_resources = kept->next;
    hipmm_resource_release(kept->resource);
    free(kept);
  }
  graph_release(graph_in_use);
  graph_in_use = NULL;
}

enum hipmm_status device_table_check(int device)
{
  if (device >= 0 && device < device_count) return HIPMM_OK;
  return error_set(HIPMM_E_ARGUMENT, "device %d does not exist: runtime %s has %d, numbered from 0", device, hip_name(),
                   device_count);
}

enum hipmm_status device_table_graph(int device, struct graph **graph_out)
{
  enum hipmm_status status = device_table_check(device);
  if (status) return status;
  graph_retain(graph_in_use);
  *graph_out = graph_in_use;
  return HIPMM_OK;
}

/* Waits until no other thread builds the stack; the lock is held. Refuses the thread that builds it, in a function of
 * the program. */
static enum hipmm_status device_table_await_builder(struct device_table_entry *entry)
{
  while (entry->is_building && !pthread_equal(entry->builder, pthread_self())) pthread_cond_wait(&building_over, &lock);
  if (!entry->is_building) return HIPMM_OK;
  return error_set(HIPMM_E_STATE, "this is called from within the building of a device's stack, which must end first");
}

static void device_table_publish(struct device_table_entry *entry, struct stack *stack)
{
  struct hipmm_resource *none = NULL;
  atomic_compare_exchange_strong(&entry->resource, &none, &stack->instances[stack->top].resource);
  atomic_store(&entry->stack, stack);
}

/* The lock is held, save while the stack is built. */
static enum hipmm_status device_table_build_here(struct device_table_entry *entry, int device)
{
  struct stack *stack;
  entry->is_building = true;
  entry->builder = pthread_self();
  pthread_mutex_unlock(&lock);
  enum hipmm_status status = stack_build(graph_in_use, device, graph_top(graph_in_use, device), NULL, &stack);
  pthread_mutex_lock(&lock);
  if (!status) device_table_publish(entry, stack);
  entry->is_building = false;
  pthread_cond_broadcast(&building_over);
  return status;
}

static enum hipmm_status device_table_build_stack(int device)
{
  struct device_table_entry *entry = &entries[device];
  int cancel = cancel_forbid();
  pthread_mutex_lock(&lock);
  enum hipmm_status status = device_table_await_builder(entry);
  if (!status && !atomic_load(&entry->stack)) status = device_table_build_here(entry, device);
  pthread_mutex_unlock(&lock);
  cancel_allow(cancel);
  return status;
}

struct stack *device_table_stack_if_built(int device)
{
  if (device < 0 || device >= device_count) return NULL;
  return atomic_load_explicit(&entries[device].stack, memory_order_acquire);
}

enum hipmm_status device_table_stack(int device, struct stack **stack_out)
{
  enum hipmm_status status = device_table_check(device);
  if (!status && !device_table_stack_if_built(device)) status = device_table_build_stack(device);
  if (!status) *stack_out = device_table_stack_if_built(device);
  return status;
}

static struct hipmm_resource *device_table_resource_in_force(int device)
{
  if (device < 0 || device >= device_count) return NULL;
  return atomic_load_explicit(&entries[device].resource, memory_order_acquire);
}

enum hipmm_status device_table_resource(int device, struct hipmm_resource **resource_out)
{
  struct stack *stack;
  struct hipmm_resource *resource = device_table_resource_in_force(device);
  enum hipmm_status status = resource ? HIPMM_OK : device_table_stack(device, &stack);
  if (!status) *resource_out = resource ? resource : device_table_resource_in_force(device);
  return status;
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

/* The table's reference; a resource that it keeps already needs no second. */
static enum hipmm_status device_table_keep(struct hipmm_resource *resource)
{
  for (struct kept *kept = kept_resources; kept; kept = kept->next)
    if (kept->resource == resource) return HIPMM_OK;
  struct kept *kept = malloc(sizeof *kept);
  if (!kept) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  *kept = (struct kept){resource, kept_resources};
  kept_resources = kept;
  hipmm_resource_retain(resource);
  return HIPMM_OK;
}

static enum hipmm_status device_table_check_resource(int device, const struct hipmm_resource *resource)
{
  enum hipmm_status status = device_table_check(device);
  if (status || !resource || hipmm_resource_device(resource) == device) return status;
  return error_set(HIPMM_E_ARGUMENT, "resource %s serves device %d and cannot be put in force on device %d",
                   hipmm_resource_name(resource), hipmm_resource_device(resource), device);
}

/* In force from now on. NULL: the top of the device's stack, or what it will be. The stack is built only if the caller wants to see it. */
static enum hipmm_status device_table_put_in_force(int device, struct hipmm_resource *resource,
                                                   struct hipmm_resource **previous_out)
{
  struct hipmm_resource *previous = NULL;
  enum hipmm_status status = device_table_check_resource(device, resource);
  if (!status && previous_out) status = device_table_resource(device, &previous);
  if (status) return status;
  pthread_mutex_lock(&lock);
  status = device_table_await_builder(&entries[device]);
  struct stack *stack = device_table_stack_if_built(device);
  if (!resource && stack) resource = &stack->instances[stack->top].resource;
  if (!status && resource) status = device_table_keep(resource);
  if (!status) previous = atomic_exchange(&entries[device].resource, resource);
  pthread_mutex_unlock(&lock);
  if (!status && previous_out) {
    hipmm_resource_retain(previous);
    *previous_out = previous;
  }
  return status;
}

/* ---- The public side ---- */

/* The call is over. */
static enum hipmm_status device_table_leave(enum hipmm_status status)
{
  lifecycle_leave();
  return status;
}

/* The same; what was found is the caller's. */
static enum hipmm_status device_table_give(enum hipmm_status status, struct hipmm_resource *resource,
                                           struct hipmm_resource **resource_out)
{
  if (!status) hipmm_resource_retain(resource);
  if (!status) *resource_out = resource;
  return device_table_leave(status);
}

static enum hipmm_status device_table_begin_call(const void *argument, const char *name)
{
  enum hipmm_status status = lifecycle_check_argument(argument, name);
  return status ? status : lifecycle_enter();
}

enum hipmm_status hipmm_get_device_resource(int device, struct hipmm_resource **resource_out)
{
  struct hipmm_resource *resource = NULL;
  enum hipmm_status status = device_table_begin_call(resource_out, "resource_out");
  if (status) return status;
  status = device_table_resource(device, &resource);
  return device_table_give(status, resource, resource_out);
}

enum hipmm_status hipmm_get_current_resource(struct hipmm_resource **resource_out)
{
  struct hipmm_resource *resource = NULL;
  enum hipmm_status status = device_table_begin_call(resource_out, "resource_out");
  if (status) return status;
  status = device_table_current_resource(&resource);
  return device_table_give(status, resource, resource_out);
}

static enum hipmm_status device_table_find_named(int device, const char *name, struct hipmm_resource **resource_out)
{
  struct stack *stack;
  const char *nearest = NULL;
  char hint[TEXT_HINT_BYTES];
  enum hipmm_status status = device_table_stack(device, &stack);
  if (status) return status;
  struct instance *instance = stack_find(stack, name, &nearest);
  if (!instance)
    return error_set(HIPMM_E_ARGUMENT, "%s: the stack of device %d has no resource called \"%.100s\"%s",
                     stack->graph->source, device, name, text_hint(nearest, hint, sizeof hint));
  *resource_out = &instance->resource;
  return HIPMM_OK;
}

enum hipmm_status hipmm_get_named_resource(int device, const char *name, struct hipmm_resource **resource_out)
{
  struct hipmm_resource *resource = NULL;
  enum hipmm_status status = lifecycle_check_argument(resource_out, "resource_out");
  if (!status) status = device_table_begin_call(name, "name");
  if (status) return status;
  status = device_table_find_named(device, name, &resource);
  return device_table_give(status, resource, resource_out);
}

enum hipmm_status hipmm_set_device_resource(int device, struct hipmm_resource *resource,
                                            struct hipmm_resource **previous_out)
{
  enum hipmm_status status = lifecycle_enter();
  return status ? status : device_table_leave(device_table_put_in_force(device, resource, previous_out));
}

enum hipmm_status hipmm_set_current_resource(struct hipmm_resource *resource, struct hipmm_resource **previous_out)
{
  int device = 0;
  enum hipmm_status status = lifecycle_enter();
  if (status) return status;
  status = device_table_current(&device);
  return device_table_leave(status ? status : device_table_put_in_force(device, resource, previous_out));
}

enum hipmm_status hipmm_reset_device_resource(int device)
{
  return hipmm_set_device_resource(device, NULL, NULL);
}

enum hipmm_status hipmm_reset_current_resource(void)
{
  return hipmm_set_current_resource(NULL, NULL);
}

enum hipmm_status hipmm_device_count(int *count_out)
{
  enum hipmm_status status = lifecycle_check_argument(count_out, "count_out");
  if (!status) *count_out = device_count;
  return status;
}

enum hipmm_status hipmm_device_current(int *device_out)
{
  enum hipmm_status status = lifecycle_check_argument(device_out, "device_out");
  return status ? status : device_table_current(device_out);
}

enum hipmm_status hipmm_device_held_bytes(int device, size_t *now_out, size_t *peak_out)
{
  struct stack *stack;
  enum hipmm_status status = lifecycle_enter();
  if (status) return status;
  status = device_table_stack(device, &stack);
  if (!status && now_out) *now_out = (size_t)atomic_load(&stack->held_bytes);
  if (!status && peak_out) *peak_out = (size_t)atomic_load(&stack->peak_held_bytes);
  return device_table_leave(status);
}
