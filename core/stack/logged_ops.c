/* SPDX-License-Identifier: MIT */
/* logged_ops.c: tells the debug log of the calls of a resource: failed allocations and refused frees at debug, every call at
 * trace. stack.c installs these ops when a stack is built while the log wants them, so that other stacks pay nothing.
 *
 * The ops have the plugin's own `self`, which other ops and an upstream's mapping get too. A tree finds the rest by it. */
#include "../base/cancel.h"
#include "../base/error.h"
#include "../base/log.h"
#include "instance.h"

#include <search.h>
#include <stdlib.h>

/* The ops of an instance, and what they were. */
struct logged {
  struct hipmm_ops ops;
  const struct hipmm_ops *plain;
  void *self;
  const char *name;
};

static void *logged_by_self;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static int logged_ops_compare(const void *left, const void *right)
{
  uintptr_t a = (uintptr_t)((const struct logged *)left)->self, b = (uintptr_t)((const struct logged *)right)->self;
  return a < b ? -1 : a > b;
}

/* The record lives as long as the resource, so it lasts for each call. */
static const struct logged *logged_ops_of(void *self)
{
  const struct logged key = {.self = self};
  int cancel = cancel_forbid();
  pthread_rwlock_rdlock(&lock);
  struct logged **found = tfind(&key, &logged_by_self, logged_ops_compare);
  const struct logged *logged = *found;
  pthread_rwlock_unlock(&lock);
  cancel_allow(cancel);
  return logged;
}

static enum hipmm_status logged_ops_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                             void **ptr_out)
{
  const struct logged *logged = logged_ops_of(self);
  enum hipmm_status status = logged->plain->allocate(self, bytes, alignment, stream, ptr_out);
  if (status)
    log_line(HIPMM_LOG_DEBUG, logged->name, "allocation of %zu bytes on stream %p failed: %s", bytes, stream,
             hipmm_last_error_message());
  else
    log_line(HIPMM_LOG_TRACE, logged->name, "allocated %zu bytes on stream %p: %p", bytes, stream, *ptr_out);
  return status;
}

static enum hipmm_status logged_ops_deallocate(void *self, void *ptr, size_t bytes, size_t alignment,
                                               hipmm_stream_t stream)
{
  const struct logged *logged = logged_ops_of(self);
  enum hipmm_status status = logged->plain->deallocate(self, ptr, bytes, alignment, stream);
  if (status)
    log_line(HIPMM_LOG_DEBUG, logged->name, "free of %p (%zu bytes) on stream %p refused: %s", ptr, bytes, stream,
             hipmm_last_error_message());
  else
    log_line(HIPMM_LOG_TRACE, logged->name, "freed %p (%zu bytes) on stream %p", ptr, bytes, stream);
  return status;
}

void logged_ops_install(struct instance *instance)
{
  if (!log_wants(HIPMM_LOG_DEBUG)) return;
  struct logged *logged = malloc(sizeof *logged);
  if (!logged) return;
  *logged = (struct logged){.ops = *instance->resource.ops,
                            .plain = instance->resource.ops,
                            .self = instance->resource.self,
                            .name = instance->node->name};
  logged->ops.allocate = logged_ops_allocate;
  logged->ops.deallocate = logged_ops_deallocate;
  pthread_rwlock_wrlock(&lock);
  struct logged **entered = tsearch(logged, &logged_by_self, logged_ops_compare);
  pthread_rwlock_unlock(&lock);
  if (entered && *entered == logged)
    instance->resource.ops = &logged->ops;
  else
    free(logged); /* no host memory, or another instance has the same `self` */
}

void logged_ops_remove(const struct instance *instance)
{
  const struct hipmm_ops *ops = instance->resource.ops;
  if (ops->allocate != logged_ops_allocate) return;
  struct logged *logged = (struct logged *)(uintptr_t)ops;
  pthread_rwlock_wrlock(&lock);
  tdelete(logged, &logged_by_self, logged_ops_compare);
  pthread_rwlock_unlock(&lock);
  free(logged);
}
