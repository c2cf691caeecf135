/* SPDX-License-Identifier: MIT */
/* api.c: the allocation path's entrance: arguments are checked here once, then the top of the stack is called. */
#include "base/error.h"
#include "base/lifecycle.h"
#include "call/device_table.h"
#include "config.h"
#include "reclaim/reclaim.h"
#include "runtime/hip.h"

const char *hipmm_version(void)
{
  return PACKAGE_VERSION;
}

int hipmm_version_number(void)
{
  return HIPMM_VERSION;
}

const char *hipmm_runtime(void)
{
  return hip_name();
}

/* ---- Memory ---- */

/* The fast path: everything is there. The rest is told apart later. */
static inline bool api_is_fast_path(const struct hipmm_resource *resource)
{
  return __builtin_expect(resource && !lifecycle_is_forked(), 1);
}

static enum hipmm_status api_check_call(size_t alignment)
{
  if (lifecycle_refuses_calls()) return lifecycle_check();
  if (alignment && !(alignment & (alignment - 1))) return HIPMM_OK;
  return error_refuse(HIPMM_E_ARGUMENT, NULL, "alignment {0} is not a power of two", alignment, 0, 0);
}

enum hipmm_status hipmm_allocate_aligned(struct hipmm_resource *resource, size_t bytes, size_t alignment,
                                         hipmm_stream_t stream, void **ptr_out)
{
  struct caller_thread *thread;
  enum hipmm_status status = api_check_call(alignment);
  if (!status && !ptr_out) status = error_set(HIPMM_E_ARGUMENT, "ptr_out is NULL");
  if (!status) status = device_table_enter_call(&resource, &thread);
  if (status) return status;
  if (alignment < HIPMM_ALIGNMENT) alignment = HIPMM_ALIGNMENT;
  status = reclaim_allocate_and_count(resource, bytes, alignment, stream, ptr_out);
  if (thread) lifecycle_leave_thread(thread);
  return status;
}

enum hipmm_status hipmm_deallocate_aligned(struct hipmm_resource *resource, void *ptr, size_t bytes, size_t alignment,
                                           hipmm_stream_t stream)
{
  struct caller_thread *thread;
  enum hipmm_status status = api_check_call(alignment);
  if (!status) status = device_table_enter_free(&resource, &thread);
  if (status == HIPMM_E_POINTER && !ptr) return HIPMM_OK; /* there is no stack, and nothing to free */
  if (status) return status;
  if (alignment < HIPMM_ALIGNMENT) alignment = HIPMM_ALIGNMENT;
  status = instance_deallocate(resource, ptr, bytes, alignment, stream);
  if (thread) lifecycle_leave_thread(thread);
  return status;
}

enum hipmm_status hipmm_allocate(struct hipmm_resource *resource, size_t bytes, hipmm_stream_t stream, void **ptr_out)
{
  if (api_is_fast_path(resource) && ptr_out)
    return reclaim_allocate_and_count(resource, bytes, HIPMM_ALIGNMENT, stream, ptr_out);
  return hipmm_allocate_aligned(resource, bytes, HIPMM_ALIGNMENT, stream, ptr_out);
}

enum hipmm_status hipmm_deallocate(struct hipmm_resource *resource, void *ptr, size_t bytes, hipmm_stream_t stream)
{
  if (api_is_fast_path(resource)) return instance_deallocate(resource, ptr, bytes, HIPMM_ALIGNMENT, stream);
  return hipmm_deallocate_aligned(resource, ptr, bytes, HIPMM_ALIGNMENT, stream);
}
