/* SPDX-License-Identifier: MIT */
/* streams.c: see streams.h. Streams are non-blocking, as the frameworks make theirs: none is ordered after another by
 * HIP itself, so that a wrong reuse has nothing to hide behind. */
#include "streams.h"

#include "../runtime/hip.h"
#include "cmd.h"
#include <stdlib.h>

/* The largest of the handles that HIP gives a meaning: default, legacy default, per-thread default. */
enum { STREAM_LAST_SPECIAL = 2 };

static bool streams_stream_is_special(uint64_t handle)
{
  return handle <= STREAM_LAST_SPECIAL;
}

static bool streams_stream_fail(const char *call, int code)
{
  say("replay: hip%s: %s", call, hip_table()->GetErrorName(code));
  return false;
}

/* Ours last until streams_destroy, and the stack may rely on it. */
static bool streams_stream_make(uint64_t handle, int device, hipStream_t *stream_out)
{
  if (streams_stream_is_special(handle)) {
    *stream_out = (hipStream_t)(uintptr_t)handle;
    return true;
  }
  int code = hip_table()->StreamCreateWithFlags(stream_out, HIPMM_HIP_STREAM_NON_BLOCKING);
  if (code != HIPMM_HIP_SUCCESS) return streams_stream_fail("StreamCreateWithFlags", code);
  if (!hipmm_stream_retain(device, *stream_out)) return true;
  say("replay: %s", hipmm_last_error_message());
  hip_table()->StreamDestroy(*stream_out);
  return false;
}

static void streams_destroy_first(const struct trace *trace, size_t n, int device, hipStream_t *streams)
{
  for (size_t i = 0; i < n; i++) {
    if (streams_stream_is_special(trace->streams[i])) continue;
    hipmm_stream_retire(device, streams[i]);
    hip_table()->StreamDestroy(streams[i]);
  }
  free(streams);
}

bool streams_make(const struct trace *trace, int device, hipStream_t **streams_out)
{
  int code = hip_table()->SetDevice(device);
  if (code != HIPMM_HIP_SUCCESS) return streams_stream_fail("SetDevice", code);
  hipStream_t *streams = calloc(trace->n_streams + 1, sizeof *streams);
  if (!streams) {
    say("replay: out of memory");
    return false;
  }
  for (size_t i = 0; i < trace->n_streams; i++) {
    if (streams_stream_make(trace->streams[i], device, &streams[i])) continue;
    streams_destroy_first(trace, i, device, streams);
    return false;
  }
  *streams_out = streams;
  return true;
}

void streams_destroy(const struct trace *trace, int device, hipStream_t *streams)
{
  hip_table()->DeviceSynchronize();
  streams_destroy_first(trace, trace->n_streams, device, streams);
}
