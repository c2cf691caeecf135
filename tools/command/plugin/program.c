/* SPDX-License-Identifier: MIT */
/* program.c: see program.h. HIP calls may fail on schedule in here: then they are tried again. */
#include "program.h"
#include "../../../core/runtime/hip.h"

enum { KEPT_MOST = 64 };

static void *region;
static void *kept[KEPT_MOST]; /* freed in captures, whose graphs may use them later */
static int n_kept;

/* Host memory that stays in place: copies of it are work on streams, as for a device's. */
static enum hipmm_status program_allocate_host(void *arg, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                               void **ptr_out)
{
  (void)arg, (void)alignment, (void)stream; /* pages, which are aligned to more than is asked for here */
  int code = hip_table()->HostMalloc(ptr_out, bytes, HIPMM_HIP_HOST_MALLOC_PORTABLE);
  return code ? HIPMM_E_OUT_OF_MEMORY : HIPMM_OK;
}

static void program_free_host(void *arg, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  const struct hipmm_hip *hip = hip_table();
  (void)arg, (void)bytes, (void)alignment;
  if (hipmm_stream_is_captured(hip, stream) && n_kept < KEPT_MOST) {
    kept[n_kept++] = ptr;
    return;
  }
  if (hip->StreamSynchronize(stream) && hip->DeviceSynchronize()) hip->DeviceSynchronize();
  if (hip->HostFree(ptr)) hip->HostFree(ptr);
}

/* Leaves it at the failure. */
static int program_give_up(void *arg, size_t bytes)
{
  (void)arg, (void)bytes;
  return 0;
}

static void program_ignore(void *arg, const struct hipmm_event *event)
{
  (void)arg, (void)event;
}

void program_begin(size_t region_bytes)
{
  struct hipmm_hooks hooks = {.struct_size = sizeof hooks, .callback = program_ignore};
  struct hipmm_failure_handler failure = {.struct_size = sizeof failure, .callback = program_give_up};
  struct hipmm_allocator allocator = {sizeof allocator, program_allocate_host, program_free_host, NULL};
  struct hipmm_region registered = {.struct_size = sizeof registered, .bytes = region_bytes};
  hipmm_allocator_register("program", &allocator);
  hipmm_failure_handler_register("program", &failure);
  hipmm_hooks_register("program", &hooks);
  if (!region_bytes || hip_table()->Malloc(&region, region_bytes)) return;
  registered.ptr = region;
  hipmm_region_register("region", &registered);
}

void program_end(void)
{
  if (region) hip_table()->Free(region);
  region = NULL;
  while (n_kept) hip_table()->HostFree(kept[--n_kept]);
}
