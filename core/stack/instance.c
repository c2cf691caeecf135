/* SPDX-License-Identifier: MIT */
/* instance.c: searches along the dependencies of live resources, and the program's questions to one. Never called on
 * the path of allocations. */
#include "instance.h"
#include "../base/error.h"

#include <hipmm/inspect.h>

/* Called in create: the instance has its dependencies already, but no caller has it yet. */
int instance_is_kept_below(const struct hipmm_services *services)
{
  CLOSURE_EACH_BELOW(below, instance_of_services(services)) {
    const struct hipmm_plugin *plugin = &below->node->plugin->descriptor;
    if (plugin->role == HIPMM_ROLE_SUB_ALLOCATOR || plugin->flags & HIPMM_PLUGIN_KEEPS_MEMORY) return 1;
  }
  return 0;
}

/* An adaptor may forward blocks of any instance in its closure. */
int instance_may_cut_up(const struct hipmm_services *services, const struct hipmm_resource *other_,
                        const struct hipmm_resource *resource)
{
  (void)services;
  const struct instance *other = instance_from(other_), *instance = instance_from(resource);
  bool is_adaptor =
      dependencies_forward_blocks(instance) || instance->node->plugin->descriptor.role == HIPMM_ROLE_ADAPTOR;
  if (!is_adaptor) return dependencies_include(other, instance);
  CLOSURE_EACH(one, instance)
    if (dependencies_include(other, one)) return 1;
  return 0;
}

enum hipmm_status instance_fail_op(const struct instance *instance, enum hipmm_status status, const char *op)
{
  return instance_is_live(&instance->resource) ? error_of_op(status, instance->node->name, op) : status;
}

/* ---- Searches ---- */

/* What the instance knows by itself. `is_settled_out`: no other instance needs to be asked. */
static enum hipmm_status instance_ask(const struct instance *instance, const void *ptr, struct hipmm_block *block_out,
                                      bool *is_settled_out)
{
  const struct hipmm_ops *ops = instance->resource.ops;
  *is_settled_out = false;
  if (!instance->node->plugin->descriptor.ops->find) return HIPMM_E_NOT_SUPPORTED;
  enum hipmm_status status = ops->find(instance->resource.self, ptr, block_out);
  if (status == HIPMM_E_POINTER) *is_settled_out = ops->covers(instance->resource.self, ptr);
  if (status != HIPMM_E_POINTER && status != HIPMM_E_NOT_SUPPORTED) *is_settled_out = true;
  return status;
}

enum hipmm_status instance_find_below(const struct instance *instance, const void *ptr, struct hipmm_block *block_out)
{
  const struct instance_dependencies *dependencies = dependencies_of(instance);
  enum hipmm_status status = dependencies->n_finders ? HIPMM_E_POINTER : HIPMM_E_NOT_SUPPORTED;
  for (size_t i = 0; i < dependencies->n_finders; i++) {
    bool is_settled;
    enum hipmm_status one = instance_ask(dependencies->finders[i], ptr, block_out, &is_settled);
    if (is_settled) return one;
    if (one == HIPMM_E_NOT_SUPPORTED) status = one;
  }
  return status;
}

enum hipmm_status instance_find(const struct instance *instance, const void *ptr, struct hipmm_block *block_out)
{
  bool is_settled;
  enum hipmm_status status = instance_ask(instance, ptr, block_out, &is_settled);
  return is_settled || !dependencies_forward_blocks(instance) ? status : instance_find_below(instance, ptr, block_out);
}

const struct instance *instance_owner_of(const struct instance *instance, const void *ptr)
{
  CLOSURE_EACH(below, instance) {
    const struct hipmm_plugin *plugin = &below->node->plugin->descriptor;
    struct hipmm_block block;
    if (plugin->role == HIPMM_ROLE_ADAPTOR || !plugin->ops->find) continue;
    if (!below->resource.ops->find(below->resource.self, ptr, &block)) return below;
  }
  return NULL;
}

static const struct instance *instance_search_down(const struct instance *instance, const char *name, bool actions,
                                                   size_t *row_out)
{
  CLOSURE_EACH(one, instance) {
    const struct hipmm_plugin *plugin = &one->node->plugin->descriptor;
    uint32_t n = actions ? plugin->n_actions : plugin->n_values;
    *row_out = descriptor_row(actions ? plugin->actions : plugin->values, n, name);
    if (*row_out < n) return one;
  }
  return NULL;
}

const struct instance *instance_with_value(const struct instance *instance, const char *name, size_t *row_out)
{
  return instance_search_down(instance, name, false, row_out);
}

const struct instance *instance_with_action(const struct instance *instance, const char *name, size_t *row_out)
{
  return instance_search_down(instance, name, true, row_out);
}

/* ---- What programs ask and keep ---- */

int64_t instance_held_bytes(const struct instance *instance)
{
  const struct hipmm_plugin *plugin = &instance->node->plugin->descriptor;
  size_t row;
  int64_t value;
  if (plugin->flags & HIPMM_PLUGIN_RECOUNTS && instance_with_value(instance, "reserved_bytes", &row) == instance) {
    const struct error_record before = error_mark();
    if (instance->resource.ops->query(instance->resource.self, row, &value)) error_return_to_mark(&before);
  }
  return atomic_load(&instance->held_bytes);
}

unsigned instance_access(const struct instance *instance)
{
  unsigned access = HIPMM_ACCESS_HOST | HIPMM_ACCESS_DEVICE;
  CLOSURE_EACH(one, instance) {
    const struct hipmm_plugin *plugin = &one->node->plugin->descriptor;
    if (plugin->role != HIPMM_ROLE_SOURCE) continue;
    if (!(plugin->flags & HIPMM_PLUGIN_HOST_MEMORY)) access &= ~(unsigned)HIPMM_ACCESS_HOST;
    if (plugin->flags & HIPMM_PLUGIN_HOST_ALONE) access &= ~(unsigned)HIPMM_ACCESS_DEVICE;
  }
  return access;
}

const struct instance *instance_suspended(const struct instance *instance)
{
  bool keeps_memory = instance->node->plugin->descriptor.role == HIPMM_ROLE_SUB_ALLOCATOR;
  if (keeps_memory) return instance_suspended_below(instance);
  return atomic_load_explicit(&instance->is_suspended, memory_order_relaxed) ? instance : NULL;
}

const struct instance *instance_suspended_below(const struct instance *instance)
{
  CLOSURE_EACH(one, instance)
    if (atomic_load_explicit(&one->is_suspended, memory_order_relaxed)) return one;
  return NULL;
}

static pthread_mutex_t user_data_lock = PTHREAD_MUTEX_INITIALIZER;

void instance_set_user_data(struct instance *instance, struct instance_user_data data)
{
  pthread_mutex_lock(&user_data_lock);
  struct instance_user_data before = instance->user_data;
  instance->user_data = data;
  pthread_mutex_unlock(&user_data_lock);
  if (before.release) before.release(before.data);
}

void *instance_get_user_data(const struct instance *instance)
{
  pthread_mutex_lock(&user_data_lock);
  void *data = instance->user_data.data;
  pthread_mutex_unlock(&user_data_lock);
  return data;
}
