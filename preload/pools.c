/* SPDX-License-Identifier: MIT */
/* pools.c: see pools.h. */
#include "pools.h"

#include "handles.h"
#include "real.h"
#include "setup.h"
#include "thread.h"

static struct handles known = HANDLES_EMPTY;

/* How the props begin, in every release of HIP and CUDA. */
struct props {
  int allocation_type, handle_types;
  int location_type, location;
};

enum { ALLOCATION_PINNED = 1, LOCATION_DEVICE = 1 };

int pools_create(enum hook hook, hipMemPool_t *pool, const void *given)
{
  const struct props *props = given;
  bool is_outermost = setup_enter();
  int code = real_two(hook, pool, given);
  if (!code && is_outermost && pool && props)
    handles_note(&known, (struct handle){.handle = *pool,
                                         .device = props->location,
                                         .is_plain = props->allocation_type == ALLOCATION_PINNED &&
                                                     props->location_type == LOCATION_DEVICE && !props->handle_types});
  return thread_finish(hook, OUTCOME_PASSED, code);
}

/* Forgotten first: once it is destroyed another thread may be given its handle for a new one. */
int pools_destroy(enum hook hook, hipMemPool_t pool)
{
  struct handle handle;
  bool is_outermost = thread_enter(), was_known = is_outermost && handles_forget(&known, pool, &handle);
  int code = real_pointer(hook, pool);
  if (code && was_known) handles_note(&known, handle);
  return thread_finish(hook, OUTCOME_PASSED, code);
}

int pools_of_device(enum hook hook, hipMemPool_t *pool, int device)
{
  struct handle handle;
  bool is_outermost = setup_enter();
  int code = ((int (*)(hipMemPool_t *, int))real_function_of(hook))(pool, device);
  if (!code && is_outermost && pool && !handles_find(&known, *pool, &handle))
    handles_note(&known, (struct handle){.handle = *pool, .device = device, .is_plain = true});
  thread_leave();
  return code;
}

bool pools_find(hipMemPool_t pool, int *device_out)
{
  struct handle handle;
  if (!handles_find(&known, pool, &handle) || !handle.is_plain) return false;
  *device_out = handle.device;
  return true;
}
