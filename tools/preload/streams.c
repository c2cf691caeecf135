/* SPDX-License-Identifier: MIT */
/* streams.c: see streams.h. A stream that was created in another way is not retained; it works all the same. */
#include "streams.h"

#include "../../core/runtime/hip.h"
#include "checks.h"
#include "contexts.h"
#include "devices.h"
#include "init.h"
#include "next_symbol.h"
#include "shortage.h"

#include <stdlib.h>

/* ---- Sets of handles: arrays that are searched from their start: programs have few streams, and fewer pools ---- */

static size_t handle_set_index(const struct handle_set *handles, const void *handle)
{
  size_t i = 0;
  while (i < handles->count && handles->items[i].handle != handle) i++;
  return i;
}

void handle_set_add(struct handle_set *handles, struct program_handle handle)
{
  pthread_mutex_lock(&handles->lock);
  size_t i = handle_set_index(handles, handle.handle);
  if (i == handles->capacity) {
    size_t capacity = handles->capacity ? 2 * handles->capacity : 16;
    struct program_handle *items = realloc(handles->items, capacity * sizeof *items);
    if (items) handles->items = items;
    if (items) handles->capacity = capacity;
  }
  if (i < handles->capacity) handles->items[i] = handle;
  if (i == handles->count && i < handles->capacity) handles->count++;
  pthread_mutex_unlock(&handles->lock);
}

bool handle_set_find(struct handle_set *handles, const void *handle, struct program_handle *found_out)
{
  pthread_mutex_lock(&handles->lock);
  size_t i = handle_set_index(handles, handle);
  bool found = i < handles->count;
  if (found) *found_out = handles->items[i];
  pthread_mutex_unlock(&handles->lock);
  return found;
}

bool handle_set_remove(struct handle_set *handles, const void *handle, struct program_handle *found_out)
{
  pthread_mutex_lock(&handles->lock);
  size_t i = handle_set_index(handles, handle);
  bool found = i < handles->count;
  if (found) {
    *found_out = handles->items[i];
    handles->items[i] = handles->items[--handles->count];
  }
  pthread_mutex_unlock(&handles->lock);
  return found;
}

/* Whether `is` returns true for a handle of the device. Stops at the first. `is` must not use the set. */
static bool handle_set_any(struct handle_set *handles, int device, bool (*is)(const struct program_handle *handle))
{
  bool any = false;
  pthread_mutex_lock(&handles->lock);
  for (size_t i = 0; i < handles->count && !any; i++)
    any = handles->items[i].device == device && is(&handles->items[i]);
  pthread_mutex_unlock(&handles->lock);
  return any;
}

/* ---- The devices that the program uses ---- */

static struct handle_set known = HANDLES_EMPTY; /* streams */

/* A bit for each device: that the program uses, and whose streams are retained. */
static atomic_uint_fast64_t used, retained;

static uint64_t streams_bit(int device)
{
  return device >= 0 && device < DEVICES_MOST ? UINT64_C(1) << device : 0;
}

/* ---- Streams that last ---- */

/* A stream that is not retained is only slower. Always false: see handle_set_any(). */
static bool streams_retain(const struct program_handle *handle)
{
  (void)!hipmm_stream_retain(handle->device, (hipmm_stream_t)handle->handle);
  return false;
}

void streams_retain_known(int device)
{
  handle_set_any(&known, device, streams_retain);
  atomic_fetch_or(&retained, streams_bit(device));
}

void streams_retain_no_more(int device)
{
  atomic_fetch_and(&retained, ~streams_bit(device));
}

/* After the runtime has created the stream, or failed to. */
static int streams_finish(enum hook hook, bool is_outermost, const hipmm_stream_t *stream, unsigned flags, int code)
{
  if (is_outermost && !code && stream) {
    struct program_handle handle = {.handle = *stream, .device = contexts_current_device(hook_family(hook))};
    streams_mark_used(handle.device);
    checks_add_stream(handle.device, *stream, flags);
    if (handle.device >= 0) handle_set_add(&known, handle); /* else it ends with a context that hipmm does not serve */
    if (!init_is_forked() && atomic_load(&retained) & streams_bit(handle.device)) streams_retain(&handle);
  }
  return reentry_finish(hook, code ? OUTCOME_PASSED : OUTCOME_SERVED, code);
}

int streams_create(enum hook hook, hipmm_stream_t *stream)
{
  int code;
  bool is_outermost = init_enter();
  SHORTAGE_REPEAT(hook, is_outermost, code, next_pointer(hook, stream));
  return streams_finish(hook, is_outermost, stream, 0, code);
}

int streams_create_with_flags(enum hook hook, hipmm_stream_t *stream, unsigned flags)
{
  int code;
  bool is_outermost = init_enter();
  SHORTAGE_REPEAT(hook, is_outermost, code,
                  ((int (*)(hipmm_stream_t *, unsigned))next_function_of(hook))(stream, flags));
  return streams_finish(hook, is_outermost, stream, flags, code);
}

int streams_create_with_priority(enum hook hook, hipmm_stream_t *stream, unsigned flags, int priority)
{
  int code;
  bool is_outermost = init_enter();
  SHORTAGE_REPEAT(hook, is_outermost, code,
                  ((int (*)(hipmm_stream_t *, unsigned, int))next_function_of(hook))(stream, flags, priority));
  return streams_finish(hook, is_outermost, stream, flags, code);
}

/* A stream of which hipmm did not see the creation may be of any device. */
static void streams_retire(enum family family, hipmm_stream_t stream)
{
  struct program_handle handle;
  bool is_known = handle_set_remove(&known, stream, &handle);
  for (int device = 0; device < DEVICES_MOST; device++) {
    if ((is_known && device != handle.device) || !(atomic_load(&retained) & streams_bit(device))) continue;
    struct context_switch before = contexts_enter(family, device);
    hipmm_stream_retire(device, stream);
    contexts_leave(before);
  }
}

int streams_destroy(enum hook hook, hipmm_stream_t stream)
{
  bool is_outermost = reentry_enter();
  if (is_outermost && (uintptr_t)stream > 2 && !init_is_forked()) streams_retire(hook_family(hook), stream);
  checks_end_stream(stream); /* before: another thread may create one with this handle as soon as it is gone */
  int code = next_pointer(hook, stream);
  return reentry_finish(hook, code ? OUTCOME_PASSED : OUTCOME_SERVED, code);
}

void streams_forget(int device)
{
  pthread_mutex_lock(&known.lock);
  for (size_t i = known.count; i-- > 0;)
    if (known.items[i].device == device) known.items[i] = known.items[--known.count];
  pthread_mutex_unlock(&known.lock);
}

/* ---- Which stream ---- */

hipmm_stream_t streams_of_caller(enum hook hook, hipmm_stream_t stream)
{
  if (stream) return stream;
  switch (hook) {
  case HOOK_cudaMallocAsync_ptsz:
  case HOOK_cudaMallocFromPoolAsync_ptsz:
  case HOOK_cudaFreeAsync_ptsz:
  case HOOK_cuMemAllocAsync_ptsz:
  case HOOK_cuMemAllocFromPoolAsync_ptsz:
  case HOOK_cuMemFreeAsync_ptsz: return (hipmm_stream_t)2;
  default: return NULL;
  }
}

int streams_device(enum family family, hipmm_stream_t stream)
{
  struct program_handle handle;
  int count = 0, device = 0;
  if ((uintptr_t)stream <= 2 || hipmm_device_count(&count) || count <= 1) return contexts_current_device(family);
  if (handle_set_find(&known, stream, &handle)) return handle.device;
  const struct hipmm_hip *hip = hip_table();
  if (hip->StreamGetDevice && !hip->StreamGetDevice(stream, &device)) return device;
  hip->GetLastError();
  return contexts_current_device(family);
}

/* ---- Work on streams ---- */

/* A query would end the capture of a stream, so a stream that is being captured is not queried. */
static bool streams_is_busy(const struct program_handle *handle)
{
  const struct hipmm_hip *hip = hip_table();
  hipmm_stream_t stream = (hipmm_stream_t)handle->handle;
  int state = 0;
  bool is_busy = hip->StreamIsCapturing && (hip->StreamIsCapturing(stream, &state) || state);
  is_busy = is_busy || hip->StreamQuery(stream);
  if (is_busy) hip->GetLastError();
  return is_busy;
}

bool streams_are_idle(int device)
{
  if (handle_set_any(&known, device, streams_is_busy)) return false;
  int previous = hip_enter_device(device);
  bool is_idle = !streams_is_busy(&(struct program_handle){.device = device}); /* the default stream */
  hip_leave_device(device, previous);
  return is_idle;
}

void streams_mark_used(int device)
{
  uint_fast64_t bit = streams_bit(device);
  if (!(atomic_load_explicit(&used, memory_order_relaxed) & bit)) atomic_fetch_or(&used, bit);
}

int streams_set_device(enum hook hook, int device)
{
  bool is_outermost = init_enter();
  int code = next_int(hook, device);
  if (is_outermost && !code) streams_mark_used(device);
  reentry_leave();
  return code;
}

int streams_retain_context(enum hook hook, void **context, int device)
{
  int code;
  bool is_outermost = reentry_enter();
  SHORTAGE_REPEAT(hook, is_outermost, code, ((int (*)(void **, int))next_function_of(hook))(context, device));
  if (is_outermost && !code) streams_mark_used(device);
  reentry_leave();
  return code;
}

int streams_synchronize_devices(void)
{
  uint_fast64_t mask = atomic_load(&used);
  int first = 0;
  for (int device = 0; device < DEVICES_MOST; device++) {
    if (!(mask & streams_bit(device))) continue;
    int previous = hip_enter_device(device), code = hip_table()->DeviceSynchronize();
    hip_leave_device(device, previous);
    if (!first) first = code;
  }
  return first;
}
