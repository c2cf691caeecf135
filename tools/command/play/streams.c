/* SPDX-License-Identifier: MIT */
/* streams.c: see streams.h. Frameworks create non-blocking streams too. HIP orders no two of them, so nothing hides a
 * block that is reused too early. */
#include "streams.h"

#include "../../../core/runtime/hip.h"
#include "../cmd.h"
#include <stdlib.h>

/* The largest of the handles that HIP gives a meaning: default, legacy default, per-thread default. */
enum { STREAMS_LAST_SPECIAL = 2 };

static bool streams_is_special(const uint64_t *handles, size_t index)
{
  return handles && handles[index] <= STREAMS_LAST_SPECIAL;
}

static bool streams_fail(const char *call, int code)
{
  say("hip%s: %s", call, hip_table()->GetErrorName(code));
  return false;
}

static bool streams_create(int device, hipmm_stream_t *stream_out)
{
  int code = hip_table()->StreamCreateWithFlags(stream_out, HIPMM_HIP_STREAM_NON_BLOCKING);
  if (code != HIPMM_HIP_SUCCESS) return streams_fail("StreamCreateWithFlags", code);
  if (hipmm_stream_retain(device, *stream_out) == HIPMM_OK) return true;
  say("%s", hipmm_last_error_message());
  hip_table()->StreamDestroy(*stream_out);
  return false;
}

void streams_destroy(const uint64_t *handles, size_t n, int device, hipmm_stream_t *streams)
{
  hip_table()->DeviceSynchronize();
  for (size_t i = 0; i < n; i++) {
    if (streams_is_special(handles, i)) continue;
    hipmm_stream_retire(device, streams[i]);
    hip_table()->StreamDestroy(streams[i]);
  }
  free(streams);
}

bool streams_make(const uint64_t *handles, size_t n, int device, hipmm_stream_t **streams_out)
{
  int code = hip_table()->SetDevice(device);
  if (code != HIPMM_HIP_SUCCESS) return streams_fail("SetDevice", code);
  hipmm_stream_t *streams = calloc(n + 1, sizeof *streams);
  if (!streams) {
    say("out of memory");
    return false;
  }
  for (size_t i = 0; i < n; i++) {
    if (streams_is_special(handles, i)) {
      streams[i] = (hipmm_stream_t)(uintptr_t)handles[i];
    } else if (!streams_create(device, &streams[i])) {
      streams_destroy(handles, i, device, streams);
      return false;
    }
  }
  *streams_out = streams;
  return true;
}
