/* SPDX-License-Identifier: MIT */
/* serial.c: puts a lock round the ops of a plugin that is not thread-safe. The stack builder puts these ops in place of
 * the plugin's; nobody else knows. Such a plugin offers no virtual memory. */
#include "serial.h"

static const struct hipmm_ops *enter(struct instance *instance)
{
  pthread_mutex_lock(&instance->lock);
  return instance->node->plugin->descriptor.ops;
}

static enum hipmm_status leave(struct instance *instance, enum hipmm_status status)
{
  pthread_mutex_unlock(&instance->lock);
  return status;
}

static enum hipmm_status serial_allocate(void *self, size_t bytes, size_t alignment, hipStream_t stream, void **ptr_out)
{
  struct instance *instance = self;
  return leave(instance, enter(instance)->allocate(instance->self, bytes, alignment, stream, ptr_out));
}

static enum hipmm_status serial_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipStream_t stream)
{
  struct instance *instance = self;
  return leave(instance, enter(instance)->deallocate(instance->self, ptr, bytes, alignment, stream));
}

static enum hipmm_status serial_trim(void *self, size_t keep_bytes)
{
  struct instance *instance = self;
  return leave(instance, enter(instance)->trim(instance->self, keep_bytes));
}

static enum hipmm_status serial_query(void *self, size_t index, int64_t *value_out)
{
  struct instance *instance = self;
  return leave(instance, enter(instance)->query(instance->self, index, value_out));
}

static enum hipmm_status serial_perform(void *self, size_t index, int64_t *values_out)
{
  struct instance *instance = self;
  return leave(instance, enter(instance)->perform(instance->self, index, values_out));
}

/* Not called where the plugin has none (instance_find()). */
static enum hipmm_status serial_find(void *self, const void *ptr, struct hipmm_block *block_out)
{
  struct instance *instance = self;
  return leave(instance, enter(instance)->find(instance->self, ptr, block_out));
}

static int serial_covers(void *self, const void *ptr)
{
  struct instance *instance = self;
  int covers = enter(instance)->covers(instance->self, ptr);
  leave(instance, HIPMM_OK);
  return covers;
}

static enum hipmm_status serial_reconfigure(void *self, const char *option, const void *options)
{
  struct instance *instance = self;
  return leave(instance, enter(instance)->reconfigure(instance->self, option, options));
}

static enum hipmm_status serial_visit(void *self, void (*see)(void *closure, const struct hipmm_extent *extent),
                                      void *closure)
{
  struct instance *instance = self;
  return leave(instance, enter(instance)->visit(instance->self, see, closure));
}

/* Not called where the plugin has none (hipmm_resource_report()). */
static enum hipmm_status serial_report(void *self, void (*write)(void *closure, const char *line), void *closure)
{
  struct instance *instance = self;
  return leave(instance, enter(instance)->report(instance->self, write, closure));
}

static void serial_stream_retire(void *self, hipStream_t stream)
{
  struct instance *instance = self;
  enter(instance)->stream_retire(instance->self, stream);
  leave(instance, HIPMM_OK);
}

static void serial_stream_retain(void *self, hipStream_t stream)
{
  struct instance *instance = self;
  enter(instance)->stream_retain(instance->self, stream);
  leave(instance, HIPMM_OK);
}

const struct hipmm_ops serial_ops = {.struct_size = sizeof serial_ops,
                                     .allocate = serial_allocate,
                                     .deallocate = serial_deallocate,
                                     .trim = serial_trim,
                                     .query = serial_query,
                                     .perform = serial_perform,
                                     .find = serial_find,
                                     .stream_retire = serial_stream_retire,
                                     .stream_retain = serial_stream_retain,
                                     .reconfigure = serial_reconfigure,
                                     .visit = serial_visit,
                                     .report = serial_report,
                                     .covers = serial_covers};
