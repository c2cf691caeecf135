/* SPDX-License-Identifier: MIT */
/* wrapped_ops.c: ops around a plugin's own. They write failed allocations and refused frees to the log at debug, and
 * every call at trace. They refuse allocations from a suspended resource. They report the blocks that the program gets
 * and frees to a race detector, if there is one (../base/memory_observer.h). A resource has these ops only while one of
 * these tasks needs them; otherwise it has the plugin's own, so that calls pay nothing. stack.c installs them; log.h
 * says when the log wants other lines, and suspend.c when a resource was suspended or resumed.
 *
 * The ops have the plugin's own `self`, which other ops and an upstream's mapping get too. A tree finds the rest by
 * it. */
#include "../base/error.h"
#include "../base/key_tree.h"
#include "../base/log.h"
#include "../base/memory_observer.h"
#include "../runtime/hip.h"
#include "stack.h"

#include <hipmm/inspect.h>
#include <stdlib.h>

/* The ops of an instance, and what they were. */
struct logged {
  struct key_tree_node by_self; /* first; major: the plugin's self */
  struct hipmm_ops ops;
  const struct hipmm_ops *plain;
  struct instance *instance;
};

static struct key_tree_node *logged_by_self;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

/* The record lives as long as the resource, so it lasts for each call. */
static const struct logged *wrapped_ops_of(void *self)
{
  pthread_rwlock_rdlock(&lock);
  const struct logged *logged = (const struct logged *)key_tree_at(logged_by_self, (uintptr_t)self);
  pthread_rwlock_unlock(&lock);
  return logged;
}

/* A suspended resource still serves what needs no memory. */
static enum hipmm_status wrapped_ops_check_awake(const struct instance *instance, size_t bytes)
{
  const struct instance *suspended = bytes ? instance_suspended(instance) : NULL;
  if (!suspended) return HIPMM_OK;
  return error_refuse(HIPMM_E_STATE, suspended->node->name,
                      "cannot allocate {0:bytes}: it is suspended; resume it first (hipmm_resource_resume())", bytes, 0,
                      0);
}

static void wrapped_ops_log_allocation(const struct logged *logged, enum hipmm_status status, size_t bytes,
                                       hipmm_stream_t stream, const void *ptr)
{
  if (status)
    log_line(HIPMM_LOG_DEBUG, logged->instance->node->name, "allocation of %zu bytes on stream %p failed: %s", bytes,
             stream, hipmm_last_error_message());
  else
    log_line(HIPMM_LOG_TRACE, logged->instance->node->name, "allocated %zu bytes on stream %p: %p", bytes, stream, ptr);
}

static void wrapped_ops_log_free(const struct logged *logged, enum hipmm_status status, size_t bytes,
                                 hipmm_stream_t stream, const void *ptr)
{
  if (status)
    log_line(HIPMM_LOG_DEBUG, logged->instance->node->name, "free of %p (%zu bytes) on stream %p refused: %s", ptr,
             bytes, stream, hipmm_last_error_message());
  else
    log_line(HIPMM_LOG_TRACE, logged->instance->node->name, "freed %p (%zu bytes) on stream %p", ptr, bytes, stream);
}

static struct memory_event wrapped_ops_event(const struct logged *logged, void *ptr, size_t bytes,
                                             hipmm_stream_t stream)
{
  return (struct memory_event){.owner = logged->instance,
                               .resource = logged->instance->node->name,
                               .device = logged->instance->stack->device,
                               .ptr = ptr,
                               .bytes = bytes,
                               .stream = stream,
                               .is_host_accessible = instance_access(logged->instance) & HIPMM_ACCESS_HOST};
}

static enum hipmm_status wrapped_ops_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                              void **ptr_out)
{
  const struct logged *logged = wrapped_ops_of(self);
  const struct memory_observer *observer = hip_observer();
  bool is_observed = hip_observer_enter();
  enum hipmm_status status = wrapped_ops_check_awake(logged->instance, bytes);
  if (!status) status = logged->plain->allocate(self, bytes, alignment, stream, ptr_out);
  if (is_observed && !status) {
    const struct memory_event event = wrapped_ops_event(logged, *ptr_out, bytes, stream);
    observer->allocated(&event);
  }
  hip_observer_leave();
  if (status != HIPMM_CALL_AGAIN && log_wants(HIPMM_LOG_DEBUG))
    wrapped_ops_log_allocation(logged, status, bytes, stream, status ? NULL : *ptr_out);
  return status;
}

static enum hipmm_status wrapped_ops_deallocate(void *self, void *ptr, size_t bytes, size_t alignment,
                                                hipmm_stream_t stream)
{
  const struct logged *logged = wrapped_ops_of(self);
  const struct memory_observer *observer = hip_observer();
  bool is_observed = hip_observer_enter();
  const struct memory_event event = wrapped_ops_event(logged, ptr, bytes, stream);
  void *token = is_observed ? observer->freeing(&event) : NULL;
  enum hipmm_status status = logged->plain->deallocate(self, ptr, bytes, alignment, stream);
  if (token) observer->freed(token, status != HIPMM_OK);
  hip_observer_leave();
  if (log_wants(HIPMM_LOG_DEBUG)) wrapped_ops_log_free(logged, status, bytes, stream, ptr);
  return status;
}

/* Calls in which a plugin may work on memory of its own, such as blocks that it keeps to look at: what it does there is no
 * work of the program. NAME, PARAMETERS, ARGUMENTS. */
#define OBSERVED_OPS(X)                                                                          \
  X(trim, (void *self, size_t keep_bytes), (self, keep_bytes))                                   \
  X(perform, (void *self, size_t index, int64_t *values_out), (self, index, values_out))         \
  X(reconfigure, (void *self, const char *option, const void *options), (self, option, options)) \
  X(process_end, (void *self, enum hipmm_process_end moment), (self, moment))

#define OBSERVED_OP(name, parameters, arguments)              \
  static enum hipmm_status wrapped_ops_##name parameters      \
  {                                                           \
    const struct logged *logged = wrapped_ops_of(self);       \
    hip_observer_enter();                                     \
    enum hipmm_status status = logged->plain->name arguments; \
    hip_observer_leave();                                     \
    return status;                                            \
  }
OBSERVED_OPS(OBSERVED_OP)

/* ---- Which ops are current ---- */

/* Calls of other threads read the pointer meanwhile, without a lock and not as an atomic: it is in the plugins' ABI. Each
 * of them finds one table or the other, and both are complete and last as long as the resource. ThreadSanitizer is told
 * nothing of the store. */
__attribute__((no_sanitize("thread"))) static void wrapped_ops_choose(struct logged *logged)
{
  bool is_needed = log_wants(HIPMM_LOG_DEBUG) || hip_observer() || instance_suspended(logged->instance);
  const struct hipmm_ops *ops = is_needed ? &logged->ops : logged->plain;
  if (logged->instance->resource.ops != ops) __atomic_store_n(&logged->instance->resource.ops, ops, __ATOMIC_RELEASE);
}

void wrapped_ops_choose_all(void)
{
  pthread_rwlock_wrlock(&lock);
  struct key_tree_node *node = key_tree_at_least(logged_by_self, 0, 0);
  for (; node; node = key_tree_next(logged_by_self, node)) wrapped_ops_choose((struct logged *)node);
  pthread_rwlock_unlock(&lock);
}

/* The log may call a function of the program, so nothing is served at once. Not NULL: a caller tests an op in one table, and
 * may find the other table when it calls the op. */
static int wrapped_ops_try_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out)
{
  (void)self, (void)bytes, (void)alignment, (void)stream, (void)ptr_out;
  return 0;
}

static int wrapped_ops_try_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  (void)self, (void)ptr, (void)bytes, (void)alignment, (void)stream;
  return 0;
}

bool wrapped_ops_install(struct instance *instance)
{
  log_watch(wrapped_ops_choose_all);
  struct logged *logged = malloc(sizeof *logged);
  if (!logged) return false;
  *logged = (struct logged){.by_self.major = (uintptr_t)instance->resource.self,
                            .ops = *instance->resource.ops,
                            .plain = instance->resource.ops,
                            .instance = instance};
  if (logged->ops.try_allocate) logged->ops.try_allocate = wrapped_ops_try_allocate;
  if (logged->ops.try_deallocate) logged->ops.try_deallocate = wrapped_ops_try_deallocate;
  logged->ops.allocate = wrapped_ops_allocate;
  logged->ops.deallocate = wrapped_ops_deallocate;
#define OBSERVED_ENTRY(name, parameters, arguments) logged->ops.name = wrapped_ops_##name;
  OBSERVED_OPS(OBSERVED_ENTRY)
  pthread_rwlock_wrlock(&lock);
  bool is_first = !key_tree_at(logged_by_self, logged->by_self.major);
  if (is_first) {
    key_tree_insert(&logged_by_self, &logged->by_self);
    wrapped_ops_choose(logged);
  }
  pthread_rwlock_unlock(&lock);
  if (!is_first) free(logged); /* another instance has the same `self` */
  return true;
}

void wrapped_ops_remove(struct instance *instance)
{
  pthread_rwlock_wrlock(&lock);
  struct logged *logged = (struct logged *)key_tree_at(logged_by_self, (uintptr_t)instance->resource.self);
  if (logged && logged->instance != instance) logged = NULL;
  if (logged) {
    instance->resource.ops = logged->plain;
    key_tree_remove(&logged_by_self, &logged->by_self);
  }
  pthread_rwlock_unlock(&lock);
  free(logged);
}
