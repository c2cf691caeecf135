/* SPDX-License-Identifier: MIT */
/* streams.c: see streams.h. A stream that was made in another way is not promised to last; it works all the same. */
#include "streams.h"

#include "../core/runtime/hip.h"
#include "devices.h"
#include "handle_set.h"
#include "init.h"
#include "next_symbol.h"
#include "reentry.h"

static struct handle_set known = HANDLES_EMPTY;

/* Without a promise the stream works too, less fast. Returns false: the next one. */
static bool streams_promise(const struct handle *handle)
{
  (void)!hipmm_stream_retain(handle->device, (hipStream_t)handle->handle);
  return false;
}

void streams_promise_known(int device)
{
  handle_set_any(&known, device, streams_promise);
}

/* A stream that is being captured cannot be queried. */
static bool streams_is_busy(const struct handle *handle)
{
  const struct hipmm_hip *hip = hip_table();
  int state = 0;
  bool is_busy = (hip->StreamIsCapturing && (hip->StreamIsCapturing((hipStream_t)handle->handle, &state) || state)) ||
                 hip->StreamQuery((hipStream_t)handle->handle);
  if (is_busy) hip->GetLastError();
  return is_busy;
}

bool streams_are_idle(int device)
{
  if (handle_set_any(&known, device, streams_is_busy)) return false;
  int previous = hip_enter_device(device);
  bool is_idle = !streams_is_busy(&(struct handle){.device = device}); /* the default stream */
  hip_leave_device(device, previous);
  return is_idle;
}

static void streams_note(enum family family, hipStream_t stream)
{
  struct handle handle = {.handle = stream, .device = next_current_device(family)};
  devices_mark_used(handle.device);
  handle_set_note(&known, handle);
  if (!init_is_forked() && devices_if_served(handle.device)) (void)streams_promise(&handle);
}

/* What the real function has made, or not. */
static int streams_finish(enum hook hook, bool is_outermost, const hipStream_t *stream, int code)
{
  if (is_outermost && !code && stream) streams_note(hook_family(hook), *stream);
  return reentry_finish(hook, code ? OUTCOME_PASSED : OUTCOME_SERVED, code);
}

int streams_create(enum hook hook, hipStream_t *stream)
{
  bool is_outermost = init_enter();
  return streams_finish(hook, is_outermost, stream, next_pointer(hook, stream));
}

int streams_create_with_flags(enum hook hook, hipStream_t *stream, unsigned flags)
{
  bool is_outermost = init_enter();
  int code = ((int (*)(hipStream_t *, unsigned))next_function_of(hook))(stream, flags);
  return streams_finish(hook, is_outermost, stream, code);
}

int streams_create_with_priority(enum hook hook, hipStream_t *stream, unsigned flags, int priority)
{
  bool is_outermost = init_enter();
  int code = ((int (*)(hipStream_t *, unsigned, int))next_function_of(hook))(stream, flags, priority);
  return streams_finish(hook, is_outermost, stream, code);
}

/* One that we did not see made may be of any device. */
static void streams_retire(hipStream_t stream)
{
  struct handle handle;
  if (handle_set_forget(&known, stream, &handle)) {
    if (devices_if_served(handle.device)) hipmm_stream_retire(handle.device, stream);
    return;
  }
  for (int device = 0; device < DEVICES_MOST; device++)
    if (devices_if_served(device)) hipmm_stream_retire(device, stream);
}

int streams_destroy(enum hook hook, hipStream_t stream)
{
  bool is_outermost = reentry_enter();
  if (is_outermost && (uintptr_t)stream > 2 && !init_is_forked()) streams_retire(stream);
  int code = next_pointer(hook, stream);
  return reentry_finish(hook, code ? OUTCOME_PASSED : OUTCOME_SERVED, code);
}

hipStream_t streams_meant(enum hook hook, hipStream_t stream)
{
  bool is_compiled_so =
      hook == HOOK_cudaMallocAsync_ptsz || hook == HOOK_cudaMallocFromPoolAsync_ptsz || hook == HOOK_cudaFreeAsync_ptsz;
  return is_compiled_so && !stream ? (hipStream_t)2 : stream;
}

int streams_device(enum family family, hipStream_t stream)
{
  struct handle handle;
  int count = 0, device = 0;
  if ((uintptr_t)stream <= 2 || hipmm_device_count(&count) || count <= 1) return next_current_device(family);
  if (handle_set_find(&known, stream, &handle)) return handle.device;
  const struct hipmm_hip *hip = hip_table();
  if (hip->StreamGetDevice && !hip->StreamGetDevice(stream, &device)) return device;
  hip->GetLastError();
  return next_current_device(family);
}
