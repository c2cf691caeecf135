/* SPDX-License-Identifier: MIT */
/* streams.c: see bench_streams.h. */
#include "streams.h"

#include "../../runtime/hip.h"
#include "bench.h"
#include <stdlib.h>

static bool bench_streams_fail(const char *call, int code)
{
  say("bench: hip%s: %s", call, hip_table()->GetErrorName(code));
  return false;
}

bool bench_streams_retain(size_t n, hipStream_t const *streams)
{
  for (size_t i = 0; i < n; i++) {
    if (hipmm_stream_retain(BENCH_DEVICE, streams[i]) == HIPMM_OK) continue;
    say("bench: %s", hipmm_last_error_message());
    return false;
  }
  return true;
}

void bench_streams_destroy(size_t n, hipStream_t *streams)
{
  hip_table()->DeviceSynchronize();
  for (size_t i = 0; i < n; i++) {
    hipmm_stream_retire(BENCH_DEVICE, streams[i]);
    hip_table()->StreamDestroy(streams[i]);
  }
  free(streams);
}

bool bench_streams_make(size_t n, hipStream_t **streams_out)
{
  int code = hip_table()->SetDevice(BENCH_DEVICE);
  if (code != HIPMM_HIP_SUCCESS) return bench_streams_fail("SetDevice", code);
  hipStream_t *streams = calloc(n, sizeof *streams);
  size_t made = 0;
  if (!streams) say("bench: out of memory");
  for (; streams && made < n && code == HIPMM_HIP_SUCCESS; made += code == HIPMM_HIP_SUCCESS)
    code = hip_table()->StreamCreateWithFlags(&streams[made], HIPMM_HIP_STREAM_NON_BLOCKING);
  if (code != HIPMM_HIP_SUCCESS) bench_streams_fail("StreamCreateWithFlags", code);
  if (streams && made == n && bench_streams_retain(n, streams)) {
    *streams_out = streams;
    return true;
  }
  if (streams) bench_streams_destroy(made, streams);
  return false;
}
