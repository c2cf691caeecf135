/* SPDX-License-Identifier: MIT */
/* locked_ops.c: puts a lock around the ops of a plugin that is not thread-safe. stack.c installs these ops in place of the
 * plugin's. Such a plugin offers no virtual memory.
 *
 * A resource below may call a function of the program, and that function may call this resource again. The plugin is within
 * an op then, so the call is refused; so is one that would wait for a thread that may wait for this one. */
#include "../base/error.h"
#include "attempt.h"

#include <errno.h>

void locked_ops_init_lock(pthread_mutex_t *lock)
{
  pthread_mutexattr_t knows_owner;
  pthread_mutexattr_init(&knows_owner);
  pthread_mutexattr_settype(&knows_owner, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutex_init(lock, &knows_owner);
  pthread_mutexattr_destroy(&knows_owner);
}

/* Whether the calling thread has the lock now. If it had it before, or must not wait for it, it is refused. */
static bool locked_ops_take(struct instance *instance)
{
  if (!pthread_mutex_trylock(&instance->lock)) return true;
  return !attempt_check_wait(instance) && pthread_mutex_lock(&instance->lock) != EDEADLK;
}

/* NULL, and the lock is not taken, if the calling thread is refused. */
static const struct hipmm_ops *locked_ops_try_enter(struct instance *instance)
{
  return locked_ops_take(instance) ? instance->node->plugin->descriptor.ops : NULL;
}

static enum hipmm_status locked_ops_leave(struct instance *instance, enum hipmm_status status)
{
  pthread_mutex_unlock(&instance->lock);
  return status;
}

/* Ops without a status do nothing instead. */
static enum hipmm_status locked_ops_refuse(const struct instance *instance)
{
  return error_refuse(
      HIPMM_E_STATE, instance->node->name,
      "it is not thread-safe, and a thread is in a call of it that this call cannot wait for: a function "
      "of the program that is called from below cannot use it",
      0, 0, 0);
}

static enum hipmm_status locked_ops_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                             void **ptr_out)
{
  struct instance *instance = self;
  const struct hipmm_ops *ops = locked_ops_try_enter(instance);
  return ops ? locked_ops_leave(instance, ops->allocate(instance->self, bytes, alignment, stream, ptr_out))
             : locked_ops_refuse(instance);
}

static enum hipmm_status locked_ops_deallocate(void *self, void *ptr, size_t bytes, size_t alignment,
                                               hipmm_stream_t stream)
{
  struct instance *instance = self;
  const struct hipmm_ops *ops = locked_ops_try_enter(instance);
  return ops ? locked_ops_leave(instance, ops->deallocate(instance->self, ptr, bytes, alignment, stream))
             : locked_ops_refuse(instance);
}

static enum hipmm_status locked_ops_trim(void *self, size_t keep_bytes)
{
  struct instance *instance = self;
  const struct hipmm_ops *ops = locked_ops_try_enter(instance);
  return ops ? locked_ops_leave(instance, ops->trim(instance->self, keep_bytes)) : locked_ops_refuse(instance);
}

static enum hipmm_status locked_ops_query(void *self, size_t index, int64_t *value_out)
{
  struct instance *instance = self;
  const struct hipmm_ops *ops = locked_ops_try_enter(instance);
  return ops ? locked_ops_leave(instance, ops->query(instance->self, index, value_out)) : locked_ops_refuse(instance);
}

static enum hipmm_status locked_ops_perform(void *self, size_t index, int64_t *values_out)
{
  struct instance *instance = self;
  const struct hipmm_ops *ops = locked_ops_try_enter(instance);
  return ops ? locked_ops_leave(instance, ops->perform(instance->self, index, values_out))
             : locked_ops_refuse(instance);
}

/* Not called where the plugin has none (instance_find()). */
static enum hipmm_status locked_ops_find(void *self, const void *ptr, struct hipmm_block *block_out)
{
  struct instance *instance = self;
  const struct hipmm_ops *ops = locked_ops_try_enter(instance);
  return ops ? locked_ops_leave(instance, ops->find(instance->self, ptr, block_out)) : locked_ops_refuse(instance);
}

static int locked_ops_covers(void *self, const void *ptr)
{
  struct instance *instance = self;
  const struct hipmm_ops *ops = locked_ops_try_enter(instance);
  if (!ops) return 0;
  int covers = ops->covers(instance->self, ptr);
  locked_ops_leave(instance, HIPMM_OK);
  return covers;
}

static enum hipmm_status locked_ops_reconfigure(void *self, const char *option, const void *options)
{
  struct instance *instance = self;
  const struct hipmm_ops *ops = locked_ops_try_enter(instance);
  return ops ? locked_ops_leave(instance, ops->reconfigure(instance->self, option, options))
             : locked_ops_refuse(instance);
}

static enum hipmm_status locked_ops_visit(void *self, void (*see)(void *closure, const struct hipmm_extent *extent),
                                          void *closure)
{
  struct instance *instance = self;
  const struct hipmm_ops *ops = locked_ops_try_enter(instance);
  return ops ? locked_ops_leave(instance, ops->visit(instance->self, see, closure)) : locked_ops_refuse(instance);
}

/* These two are not called where the plugin has none (inspect/pointer.c). */
static enum hipmm_status locked_ops_locate(void *self, const void *ptr, struct hipmm_location *location_out)
{
  struct instance *instance = self;
  const struct hipmm_ops *ops = locked_ops_try_enter(instance);
  return ops ? locked_ops_leave(instance, ops->locate(instance->self, ptr, location_out)) : locked_ops_refuse(instance);
}

static enum hipmm_status locked_ops_visit_chunks(void *self, const void *ptr,
                                                 int (*visitor)(void *closure, const struct hipmm_chunk *chunk),
                                                 void *closure)
{
  struct instance *instance = self;
  const struct hipmm_ops *ops = locked_ops_try_enter(instance);
  return ops ? locked_ops_leave(instance, ops->visit_chunks(instance->self, ptr, visitor, closure))
             : locked_ops_refuse(instance);
}

/* Not called where the plugin has none (suspend.c). */
static enum hipmm_status locked_ops_suspend(void *self, enum hipmm_content content)
{
  struct instance *instance = self;
  const struct hipmm_ops *ops = locked_ops_try_enter(instance);
  return ops ? locked_ops_leave(instance, ops->suspend(instance->self, content)) : locked_ops_refuse(instance);
}

static enum hipmm_status locked_ops_resume(void *self)
{
  struct instance *instance = self;
  const struct hipmm_ops *ops = locked_ops_try_enter(instance);
  return ops ? locked_ops_leave(instance, ops->resume(instance->self)) : locked_ops_refuse(instance);
}

/* Not called where the plugin has none (hipmm_resource_report()). */
static enum hipmm_status locked_ops_report(void *self, void (*write)(void *closure, const char *line), void *closure)
{
  struct instance *instance = self;
  const struct hipmm_ops *ops = locked_ops_try_enter(instance);
  return ops ? locked_ops_leave(instance, ops->report(instance->self, write, closure)) : locked_ops_refuse(instance);
}

static void locked_ops_stream_retire(void *self, hipmm_stream_t stream)
{
  struct instance *instance = self;
  const struct hipmm_ops *ops = locked_ops_try_enter(instance);
  if (!ops) return;
  ops->stream_retire(instance->self, stream);
  locked_ops_leave(instance, HIPMM_OK);
}

static void locked_ops_stream_retain(void *self, hipmm_stream_t stream)
{
  struct instance *instance = self;
  const struct hipmm_ops *ops = locked_ops_try_enter(instance);
  if (!ops) return;
  ops->stream_retain(instance->self, stream);
  locked_ops_leave(instance, HIPMM_OK);
}

/* Not called where the plugin has none (stack_build()). */
static enum hipmm_status locked_ops_device_admit(void *self, int device)
{
  struct instance *instance = self;
  const struct hipmm_ops *ops = locked_ops_try_enter(instance);
  return ops ? locked_ops_leave(instance, ops->device_admit(instance->self, device)) : locked_ops_refuse(instance);
}

/* Not called where the plugin has none (tools/preload/report_ends.c). */
static enum hipmm_status locked_ops_process_end(void *self, enum hipmm_process_end moment)
{
  struct instance *instance = self;
  const struct hipmm_ops *ops = locked_ops_try_enter(instance);
  return ops ? locked_ops_leave(instance, ops->process_end(instance->self, moment)) : locked_ops_refuse(instance);
}

const struct hipmm_ops locked_ops = {.struct_size = sizeof locked_ops,
                                     .allocate = locked_ops_allocate,
                                     .deallocate = locked_ops_deallocate,
                                     .trim = locked_ops_trim,
                                     .query = locked_ops_query,
                                     .perform = locked_ops_perform,
                                     .find = locked_ops_find,
                                     .stream_retire = locked_ops_stream_retire,
                                     .stream_retain = locked_ops_stream_retain,
                                     .reconfigure = locked_ops_reconfigure,
                                     .visit = locked_ops_visit,
                                     .report = locked_ops_report,
                                     .covers = locked_ops_covers,
                                     .device_admit = locked_ops_device_admit,
                                     .locate = locked_ops_locate,
                                     .visit_chunks = locked_ops_visit_chunks,
                                     .process_end = locked_ops_process_end,
                                     .suspend = locked_ops_suspend,
                                     .resume = locked_ops_resume};
