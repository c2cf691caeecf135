/* SPDX-License-Identifier: MIT */
/* api.c: initialisation, and the allocation path's entrance: arguments are checked here once, then the top of the stack
 * is called. */
#include "api.h"
#include "base/environment.h"
#include "base/error.h"
#include "base/lifecycle.h"
#include "base/log.h"
#include "config.h"
#include "container/pinned_resource.h"
#include "runtime/hip.h"
#include "stack/device_table.h"
#include "stack/handle.h"
#include "stack/instance.h"

#include <limits.h>

const char *const api_named_resources[] = {"managed", "pinned", NULL};

const char *hipmm_version(void)
{
  return PACKAGE_VERSION;
}

const char *hipmm_runtime(void)
{
  return hip_name();
}

/* ---- Life ---- */

/* Takes the graph over, whatever comes of it. */
static enum hipmm_status api_start(struct graph *graph)
{
  int count = 0;
  enum hipmm_status status = hip_open(graph, &count);
  if (status)
    graph_release(graph);
  else
    device_table_open(graph, count);
  return status;
}

/* Reads a graph from `file`, or from `json`, or takes the built-in one when both are NULL. */
static enum hipmm_status api_read_and_start(const char *file, const char *json)
{
  struct diagnostics report = {.source = file ? file : json ? "<string>" : "<built in>"};
  struct graph *graph = NULL;
  enum hipmm_status status = file   ? graph_from_file(file, &report, &graph)
                             : json ? graph_from_string(json, report.source, &report, &graph)
                                    : graph_built_in(&report, &graph);
  if (!status) graph_warn_unused(graph, api_named_resources, &report);
  if (status)
    status = diagnostics_raise(&report);
  else
    diagnostics_raise(&report); /* the warnings */
  diagnostics_clear(&report);
  return status ? status : api_start(graph);
}

/* What fails on the way to success, such as a runtime that "auto" finds no device of, is not the caller's failure. */
static enum hipmm_status api_initialise(const char *file, const char *json)
{
  struct hipmm_error before = {.struct_size = sizeof before};
  hipmm_last_error(&before);
  enum hipmm_status status = lifecycle_begin_change();
  if (status) return status;
  if (atomic_load(&lifecycle_now) == LIFECYCLE_READY) {
    lifecycle_end_change(LIFECYCLE_READY);
    return error_set(HIPMM_E_STATE, "hipmm is initialised already; call hipmm_finalize() first");
  }
  status = api_read_and_start(file, json);
  lifecycle_end_change(status ? LIFECYCLE_BEFORE : LIFECYCLE_READY);
  if (!status) error_set_located(&before);
  return status;
}

enum hipmm_status hipmm_init(void)
{
  char buffer[PATH_MAX];
  const char *file = environment_find_config(buffer, sizeof buffer);
  log_line(HIPMM_LOG_INFO, "config", "%s", file ? file : "no file found: a plain device resource");
  return api_initialise(file, NULL);
}

enum hipmm_status hipmm_init_from_file(const char *path)
{
  return path ? api_initialise(path, NULL)
              : error_set(HIPMM_E_ARGUMENT, "path is NULL; hipmm_init() searches for a file");
}

enum hipmm_status hipmm_init_from_string(const char *json)
{
  return json ? api_initialise(NULL, json) : error_set(HIPMM_E_ARGUMENT, "json is NULL");
}

enum hipmm_status hipmm_finalize(void)
{
  enum hipmm_status status = lifecycle_begin_change();
  if (status) return status;
  status = lifecycle_check();
  if (!status) {
    lifecycle_await_calls();
    pinned_resource_close();
    device_table_close();
    handle_release_idle();
    resource_warn_of_held();
  }
  lifecycle_end_change(LIFECYCLE_BEFORE);
  return status;
}

/* ---- Memory ---- */

/* What is usual: everything is there. The rest is told apart later. */
static inline bool api_is_usual(const struct hipmm_resource *resource)
{
  return __builtin_expect(resource && !lifecycle_is_forked(), 1);
}

static enum hipmm_status api_check_call(size_t alignment)
{
  if (lifecycle_is_barred()) return lifecycle_check();
  if (alignment && !(alignment & (alignment - 1))) return HIPMM_OK;
  return error_refuse(HIPMM_E_ARGUMENT, NULL, "alignment {0} is not a power of two", alignment, 0, 0);
}

/* Finds the resource to use where the caller gave none: `*thread_out` is not NULL then, and the resource lasts until
 * lifecycle_leave_here(). */
static enum hipmm_status api_enter(struct hipmm_resource **resource, struct caller_here **thread_out)
{
  *thread_out = NULL;
  if (*resource) return HIPMM_OK;
  struct caller_here *thread = lifecycle_enter_here();
  if (!thread) return HIPMM_E_STATE;
  enum hipmm_status status = device_table_current_resource(resource);
  if (status)
    lifecycle_leave_here(thread);
  else
    *thread_out = thread;
  return status;
}

enum hipmm_status hipmm_allocate_aligned(struct hipmm_resource *resource, size_t bytes, size_t alignment,
                                         hipmm_stream_t stream, void **ptr_out)
{
  struct caller_here *thread;
  enum hipmm_status status = api_check_call(alignment);
  if (!status && !ptr_out) status = error_set(HIPMM_E_ARGUMENT, "ptr_out is NULL");
  if (!status) status = api_enter(&resource, &thread);
  if (status) return status;
  if (alignment < HIPMM_ALIGNMENT) alignment = HIPMM_ALIGNMENT;
  status = instance_finish_op(instance_from(resource),
                              resource->ops->allocate(resource->self, bytes, alignment, stream, ptr_out), "allocate");
  if (thread) lifecycle_leave_here(thread);
  return status;
}

enum hipmm_status hipmm_deallocate_aligned(struct hipmm_resource *resource, void *ptr, size_t bytes, size_t alignment,
                                           hipmm_stream_t stream)
{
  struct caller_here *thread;
  enum hipmm_status status = api_check_call(alignment);
  if (!status) status = api_enter(&resource, &thread);
  if (status) return status;
  if (alignment < HIPMM_ALIGNMENT) alignment = HIPMM_ALIGNMENT;
  status = instance_finish_op(instance_from(resource),
                              resource->ops->deallocate(resource->self, ptr, bytes, alignment, stream), "deallocate");
  if (thread) lifecycle_leave_here(thread);
  return status;
}

enum hipmm_status hipmm_allocate(struct hipmm_resource *resource, size_t bytes, hipmm_stream_t stream, void **ptr_out)
{
  if (api_is_usual(resource) && ptr_out)
    return instance_finish_op(instance_from(resource),
                              resource->ops->allocate(resource->self, bytes, HIPMM_ALIGNMENT, stream, ptr_out),
                              "allocate");
  return hipmm_allocate_aligned(resource, bytes, HIPMM_ALIGNMENT, stream, ptr_out);
}

enum hipmm_status hipmm_deallocate(struct hipmm_resource *resource, void *ptr, size_t bytes, hipmm_stream_t stream)
{
  if (api_is_usual(resource))
    return instance_finish_op(instance_from(resource),
                              resource->ops->deallocate(resource->self, ptr, bytes, HIPMM_ALIGNMENT, stream),
                              "deallocate");
  return hipmm_deallocate_aligned(resource, ptr, bytes, HIPMM_ALIGNMENT, stream);
}
