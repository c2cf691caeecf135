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

/* Takes the lock, and returns the plugin's ops. NULL, and the lock is not taken, if the calling thread is refused: it has the
 * lock already, or must not wait for it. */
static const struct hipmm_ops *locked_ops_try_enter(struct instance *instance)
{
  bool is_taken = !pthread_mutex_trylock(&instance->lock) ||
                  (!attempt_check_wait(instance) && pthread_mutex_lock(&instance->lock) != EDEADLK);
  return is_taken ? instance->node->plugin->descriptor.ops : NULL;
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

/* The ops with a status: NAME, PARAMETERS, ARGUMENTS. Where the plugin lacks one of `find`, `locate`, `visit_chunks`, `suspend`,
 * `resume`, `report`, `grant_access` and `process_end`, its users call none: they ask the descriptor. */
#define LOCKED_OPS(X)                                                                                             \
  X(allocate, (void *self, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out),                \
    (self, bytes, alignment, stream, ptr_out))                                                                    \
  X(deallocate, (void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream),                   \
    (self, ptr, bytes, alignment, stream))                                                                        \
  X(trim, (void *self, size_t keep_bytes), (self, keep_bytes))                                                    \
  X(query, (void *self, size_t index, int64_t *value_out), (self, index, value_out))                              \
  X(perform, (void *self, size_t index, int64_t *values_out), (self, index, values_out))                          \
  X(find, (void *self, const void *ptr, struct hipmm_block *block_out), (self, ptr, block_out))                   \
  X(reconfigure, (void *self, const char *option, const void *options), (self, option, options))                  \
  X(visit, (void *self, void (*see)(void *closure, const struct hipmm_extent *extent), void *closure),            \
    (self, see, closure))                                                                                         \
  X(locate, (void *self, const void *ptr, struct hipmm_location *location_out), (self, ptr, location_out))        \
  X(visit_chunks,                                                                                                 \
    (void *self, const void *ptr, int (*visitor)(void *closure, const struct hipmm_chunk *chunk), void *closure), \
    (self, ptr, visitor, closure))                                                                                \
  X(suspend, (void *self, enum hipmm_content content), (self, content))                                           \
  X(resume, (void *self), (self))                                                                                 \
  X(report, (void *self, void (*write)(void *closure, const char *line), void *closure), (self, write, closure))  \
  X(grant_access, (void *self, int device), (self, device))                                                       \
  X(process_end, (void *self, enum hipmm_process_end moment), (self, moment))

#define LOCKED_OP(name, parameters, arguments)                                                  \
  static enum hipmm_status locked_ops_##name parameters                                         \
  {                                                                                             \
    struct instance *instance = self;                                                           \
    const struct hipmm_ops *ops = locked_ops_try_enter(instance);                               \
    self = instance->self;                                                                      \
    return ops ? locked_ops_leave(instance, ops->name arguments) : locked_ops_refuse(instance); \
  }
LOCKED_OPS(LOCKED_OP)

static int locked_ops_covers(void *self, const void *ptr)
{
  struct instance *instance = self;
  const struct hipmm_ops *ops = locked_ops_try_enter(instance);
  if (!ops) return 0;
  int covers = ops->covers(instance->self, ptr);
  locked_ops_leave(instance, HIPMM_OK);
  return covers;
}

#define LOCKED_STREAM_OP(name)                                     \
  static void locked_ops_##name(void *self, hipmm_stream_t stream) \
  {                                                                \
    struct instance *instance = self;                              \
    const struct hipmm_ops *ops = locked_ops_try_enter(instance);  \
    if (!ops) return;                                              \
    ops->name(instance->self, stream);                             \
    locked_ops_leave(instance, HIPMM_OK);                          \
  }
LOCKED_STREAM_OP(stream_retire)
LOCKED_STREAM_OP(stream_retain)

#define LOCKED_ENTRY(name, parameters, arguments) .name = locked_ops_##name,
const struct hipmm_ops locked_ops = {.struct_size = sizeof locked_ops,
                                     .covers = locked_ops_covers,
                                     .stream_retire = locked_ops_stream_retire,
                                     .stream_retain = locked_ops_stream_retain,
                                     LOCKED_OPS(LOCKED_ENTRY)};
