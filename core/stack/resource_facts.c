/* SPDX-License-Identifier: MIT */
/* resource_facts.c: what a program may ask of a live resource besides its values: upstreams, access, the driver's pool,
 * and the program's own pointer. Called by applications. */
#include <hipmm/inspect.h>

#include "../base/error.h"
#include "resource_calls.h"

/* ---- Upstreams ---- */

enum hipmm_status hipmm_resource_upstream_count(struct hipmm_resource *resource, size_t *count_out)
{
  struct resource_call call;
  enum hipmm_status status = resource_call_begin(resource, count_out, "count_out", &call);
  if (status) return status;
  *count_out = call.instance->n_dependencies;
  return resource_call_end(&call, status);
}

enum hipmm_status hipmm_resource_upstream(struct hipmm_resource *resource, size_t index,
                                          struct hipmm_resource **upstream_out)
{
  struct resource_call call;
  enum hipmm_status status = resource_call_begin(resource, upstream_out, "upstream_out", &call);
  if (status) return status;
  const struct instance *instance = call.instance;
  if (index >= instance->n_dependencies)
    return resource_call_end(&call, error_set(HIPMM_E_ARGUMENT, "index %zu: %s has %zu upstreams, numbered from 0",
                                              index, instance->node->name, instance->n_dependencies));
  struct hipmm_resource *upstream = &instance->dependencies[index]->resource;
  hipmm_resource_retain(upstream);
  *upstream_out = upstream;
  return resource_call_end(&call, status);
}

int hipmm_resource_is_equal(const struct hipmm_resource *resource, const struct hipmm_resource *other)
{
  return resource && resource == other;
}

/* ---- Memory ---- */

unsigned instance_access(const struct instance *instance)
{
  unsigned access = HIPMM_ACCESS_HOST | HIPMM_ACCESS_DEVICE;
  for (size_t i = 0; i < instance->n_closure; i++) {
    const struct hipmm_plugin *plugin = &instance->closure[i]->node->plugin->descriptor;
    if (plugin->role != HIPMM_ROLE_SOURCE) continue;
    if (!(plugin->flags & HIPMM_PLUGIN_HOST_MEMORY)) access &= ~(unsigned)HIPMM_ACCESS_HOST;
    if (plugin->flags & HIPMM_PLUGIN_HOST_ALONE) access &= ~(unsigned)HIPMM_ACCESS_DEVICE;
  }
  return access;
}

enum hipmm_status hipmm_resource_access(struct hipmm_resource *resource, unsigned *access_out)
{
  struct resource_call call;
  enum hipmm_status status = resource_call_begin(resource, access_out, "access_out", &call);
  if (status) return status;
  *access_out = instance_access(call.instance);
  return resource_call_end(&call, status);
}

enum hipmm_status hipmm_resource_pool_handle(struct hipmm_resource *resource, void **handle_out)
{
  size_t row;
  int64_t handle = 0;
  struct resource_call call;
  enum hipmm_status status = resource_call_begin(resource, handle_out, "handle_out", &call);
  if (status) return status;
  const struct instance *owner = instance_with_value(call.instance, "pool_handle", &row);
  if (!owner)
    status = error_set(HIPMM_E_NOT_SUPPORTED,
                       "%s: neither it nor a resource below it allocates from a pool of the driver; async does",
                       call.instance->node->name);
  else
    status = owner->resource.ops->query(owner->resource.self, row, &handle);
  if (!status) *handle_out = (void *)(intptr_t)handle;
  return resource_call_end(&call, status);
}

/* ---- The program's own pointer ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Returns the pointer that was there, with its function. */
static struct instance_user_data resource_facts_exchange(struct instance *instance, struct instance_user_data data)
{
  pthread_mutex_lock(&lock);
  struct instance_user_data before = instance->user_data;
  instance->user_data = data;
  pthread_mutex_unlock(&lock);
  return before;
}

void instance_release_user_data(struct instance *instance)
{
  struct instance_user_data before = resource_facts_exchange(instance, (struct instance_user_data){NULL, NULL});
  if (before.release) before.release(before.data);
}

enum hipmm_status hipmm_resource_set_user_data(struct hipmm_resource *resource, void *data, void (*release)(void *data))
{
  struct resource_call call;
  enum hipmm_status status = resource_call_begin(resource, "", NULL, &call);
  if (status) return status;
  struct instance_user_data before = resource_facts_exchange(call.instance, (struct instance_user_data){data, release});
  if (before.release) before.release(before.data);
  return resource_call_end(&call, status);
}

enum hipmm_status hipmm_resource_get_user_data(struct hipmm_resource *resource, void **data_out)
{
  struct resource_call call;
  enum hipmm_status status = resource_call_begin(resource, data_out, "data_out", &call);
  if (status) return status;
  pthread_mutex_lock(&lock);
  *data_out = call.instance->user_data.data;
  pthread_mutex_unlock(&lock);
  return resource_call_end(&call, status);
}
