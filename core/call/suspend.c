/* SPDX-License-Identifier: MIT */
/* suspend.c: hipmm_resource_suspend() and hipmm_resource_resume(): finds the resources below that have the ops, and
 * makes calls fail that need their memory (wrapped_ops.c). Called by applications between phases of their work. */
#include "../base/error.h"
#include "../base/log.h"
#include "../stack/attempt.h"
#include "resource_calls.h"

/* Held around the ops, so that two calls never work on the same resource. Taken before the locks of resources. */
static pthread_mutex_t suspend_lock = PTHREAD_MUTEX_INITIALIZER;

/* What became of the resources that have the ops. */
struct suspend_result {
  unsigned n_changed, n_unchanged; /* by this call; before it */
  bool any_is_unable;              /* and has said why in the thread's record */
  enum hipmm_status status;        /* the first failure */
};

/* `status` is the outcome of an op; the record of the first failure goes to `failure`. */
static void suspend_count(struct suspend_result *result, struct error_record *failure, enum hipmm_status status)
{
  if (!status)
    result->n_changed++;
  else if (status == HIPMM_E_NOT_SUPPORTED)
    result->any_is_unable = true;
  else
    error_keep_first(&result->status, failure, status);
}

static void suspend_mark(struct instance *instance, bool is_suspended)
{
  atomic_store(&instance->is_suspended, is_suspended);
  wrapped_ops_choose_all();
}

/* Allocations are refused before the memory goes. */
static enum hipmm_status suspend_begin(struct instance *instance, enum hipmm_content content)
{
  char accessor[128];
  if (!dependencies_find_accessor(instance, accessor, sizeof accessor)) {
    const struct hipmm_resource *resource = &instance->resource;
    suspend_mark(instance, true);
    enum hipmm_status status = instance_finish_op(instance, resource->ops->suspend(resource->self, content), "suspend");
    if (status) suspend_mark(instance, false);
    return status;
  }
  return error_set(
      HIPMM_E_NOT_SUPPORTED,
      "%s: cannot be suspended while %s depends on it, which reads and writes the blocks itself; take %s out "
      "of the graph",
      instance->node->name, accessor, accessor);
}

static enum hipmm_status suspend_end(struct instance *instance)
{
  enum hipmm_status status =
      instance_finish_op(instance, instance->resource.ops->resume(instance->resource.self), "resume");
  if (!status) suspend_mark(instance, false);
  return status;
}

/* Calls the op of each resource that is not yet in the wanted state, from the top down. `content` is NULL to resume. */
static struct suspend_result suspend_each(const struct instance *top, const enum hipmm_content *content)
{
  struct suspend_result result = {0};
  struct error_record failure;
  CLOSURE_EACH(below, top) {
    const struct hipmm_ops *ops = below->node->plugin->descriptor.ops;
    if (!ops->suspend || !ops->resume) continue;
    if (atomic_load(&below->is_suspended) == (content != NULL))
      result.n_unchanged++;
    else
      suspend_count(&result, &failure, content ? suspend_begin(below, *content) : suspend_end(below));
  }
  if (result.status) error_return_to_mark(&failure);
  return result;
}

/* The other thread may wait for a resource that this one is in. */
static struct suspend_result suspend_refuse(const struct instance *top)
{
  return (struct suspend_result){
      .status = error_set(HIPMM_E_STATE,
                          "%s: another thread suspends or resumes a resource, and a function of the program that is "
                          "called in the middle of an allocation does not wait for it",
                          top->node->name)};
}

static struct suspend_result suspend_each_locked(const struct instance *top, const enum hipmm_content *content)
{
  if (pthread_mutex_trylock(&suspend_lock)) {
    if (attempt_is_in_program()) return suspend_refuse(top);
    pthread_mutex_lock(&suspend_lock);
  }
  struct suspend_result result = suspend_each(top, content);
  pthread_mutex_unlock(&suspend_lock);
  return result;
}

/* The resource was found, and `content` is as above. Of several resources, some may be able and others not. On a full device,
 * the idle memory of other resources may be enough to resume. */
static enum hipmm_status suspend_change(const struct instance *top, const enum hipmm_content *content)
{
  struct suspend_result result = suspend_each_locked(top, content);
  if (!content && result.status == HIPMM_E_OUT_OF_MEMORY) {
    unsigned n_changed = result.n_changed;
    (void)hipmm_device_trim(top->stack->device, 0); /* a resource that fails gives nothing */
    result = suspend_each_locked(top, content);
    result.n_changed += n_changed;
  }
  if (result.status) return result.status;
  if (result.n_changed && result.any_is_unable)
    log_line(HIPMM_LOG_WARNING, top->node->name, "not all memory below is suspended: %s", hipmm_last_error_message());
  if (result.n_changed) return HIPMM_OK;
  if (result.n_unchanged && content)
    return error_set(HIPMM_E_STATE, "%s: is suspended already; resume it first (hipmm_resource_resume())",
                     top->node->name);
  if (result.any_is_unable) return HIPMM_E_NOT_SUPPORTED;
  if (result.n_unchanged) return error_set(HIPMM_E_STATE, "%s: is not suspended", top->node->name);
  return error_set(HIPMM_E_NOT_SUPPORTED,
                   "%s: neither it nor a resource below it can give memory back that is allocated; a pool with "
                   "\"growth\": \"mapped\" can, directly over device",
                   top->node->name);
}

enum hipmm_status hipmm_resource_suspend(struct hipmm_resource *resource, enum hipmm_content content)
{
  struct resource_call call;
  enum hipmm_status status = resource_call_begin(resource, "", NULL, &call);
  if (status) return status;
  if (content != HIPMM_CONTENT_KEEP && content != HIPMM_CONTENT_DISCARD)
    status = error_set(HIPMM_E_ARGUMENT, "content is %d; write HIPMM_CONTENT_KEEP or HIPMM_CONTENT_DISCARD", content);
  return resource_call_end(&call, status ? status : suspend_change(call.instance, &content));
}

enum hipmm_status hipmm_resource_resume(struct hipmm_resource *resource)
{
  struct resource_call call;
  enum hipmm_status status = resource_call_begin(resource, "", NULL, &call);
  return status ? status : resource_call_end(&call, suspend_change(call.instance, NULL));
}
