/* SPDX-License-Identifier: MIT */
/* probes_streams.c: events, and what the device tells of its memory. */
#include "probes.h"

enum { STREAMS_BYTES = 1 << 20, STREAMS_DELAY_MS = 20, STREAMS_LARGE_BYTES = 64 << 20 };

struct streams_pair {
  hipmm_stream_t first, second;
  hipmm_hip_event_t event;
  void *from, *to;
};

static bool streams_make(struct probe_context *context, struct streams_pair *pair)
{
  const struct hipmm_hip *hip = context->hip;
  return probe_call(context, "StreamCreate", hip->StreamCreateWithFlags(&pair->first, HIPMM_HIP_STREAM_NON_BLOCKING)) &&
         probe_call(context, "StreamCreate",
                    hip->StreamCreateWithFlags(&pair->second, HIPMM_HIP_STREAM_NON_BLOCKING)) &&
         probe_call(context, "EventCreate", hip->EventCreateWithFlags(&pair->event, HIPMM_HIP_EVENT_DISABLE_TIMING)) &&
         probe_call(context, "Malloc", hip->Malloc(&pair->from, STREAMS_BYTES)) &&
         probe_call(context, "Malloc", hip->Malloc(&pair->to, STREAMS_BYTES));
}

static void streams_drop(struct probe_context *context, const struct streams_pair *pair)
{
  const struct hipmm_hip *hip = context->hip;
  (void)hip->DeviceSynchronize();
  if (pair->from) (void)hip->Free(pair->from);
  if (pair->to) (void)hip->Free(pair->to);
  if (pair->event) (void)hip->EventDestroy(pair->event);
  if (pair->second) (void)hip->StreamDestroy(pair->second);
  if (pair->first) (void)hip->StreamDestroy(pair->first);
}

/* The first stream writes late, and the second copies after an event. */
static bool streams_order(struct probe_context *context, const struct streams_pair *pair)
{
  const struct hipmm_hip *hip = context->hip;
  unsigned delay = STREAMS_DELAY_MS;
  bool good = probe_call(context, "MemsetAsync", hip->MemsetAsync(pair->from, 1, STREAMS_BYTES, pair->first)) &&
              probe_delay(context, pair->first, &delay) &&
              probe_call(context, "MemsetAsync", hip->MemsetAsync(pair->from, 2, STREAMS_BYTES, pair->first)) &&
              probe_call(context, "EventRecord", hip->EventRecord(pair->event, pair->first)) &&
              probe_call(context, "StreamWaitEvent", hip->StreamWaitEvent(pair->second, pair->event, 0)) &&
              probe_call(context, "MemcpyAsync",
                         hip->MemcpyAsync(pair->to, pair->from, STREAMS_BYTES, HIPMM_HIP_MEMCPY_DEFAULT, pair->second));
  /* The sleeping function reads `delay`. */
  good = probe_call(context, "DeviceSynchronize", hip->DeviceSynchronize()) && good;
  return good && probe_holds(context, "a copy that waits for the writing stream", pair->to, STREAMS_BYTES, 2);
}

enum probe_verdict probe_event_order(struct probe_context *context)
{
  struct streams_pair pair = {0};
  if (!context->hip->LaunchHostFunc) return PROBE_ABSENT;
  bool good = streams_make(context, &pair) && streams_order(context, &pair);
  streams_drop(context, &pair);
  return good ? PROBE_GOOD : PROBE_BAD;
}

static bool streams_query(struct probe_context *context, const struct streams_pair *pair)
{
  const struct hipmm_hip *hip = context->hip;
  unsigned delay = STREAMS_DELAY_MS;
  bool good = probe_delay(context, pair->first, &delay) &&
              probe_call(context, "EventRecord", hip->EventRecord(pair->event, pair->first));
  int early = good ? hip->EventQuery(pair->event) : 0;
  if (early) (void)hip->GetLastError();
  good = probe_call(context, "StreamSynchronize", hip->StreamSynchronize(pair->first)) && good;
  int late = good ? hip->EventQuery(pair->event) : 0;
  if (late) (void)hip->GetLastError();
  if (good && early != HIPMM_HIP_ERROR_NOT_READY) {
    probe_bad(context, "an event was complete before the work in front of it");
    return false;
  }
  if (good && late) probe_bad(context, "an event was not complete after its stream was waited for (%d)", late);
  return good && !late;
}

enum probe_verdict probe_event_query(struct probe_context *context)
{
  struct streams_pair pair = {0};
  if (!context->hip->LaunchHostFunc) return PROBE_ABSENT;
  bool good = streams_make(context, &pair) && streams_query(context, &pair);
  streams_drop(context, &pair);
  return good ? PROBE_GOOD : PROBE_BAD;
}

/* Another program may change the figure meanwhile, so half of the change is enough. */
enum probe_verdict probe_free_bytes_told(struct probe_context *context)
{
  void *ptr = NULL;
  size_t before = probe_free_bytes(context);
  if (!probe_call(context, "Malloc", context->hip->Malloc(&ptr, STREAMS_LARGE_BYTES))) return PROBE_BAD;
  size_t during = probe_free_bytes(context);
  bool good = probe_call(context, "Free", context->hip->Free(ptr)) &&
              probe_call(context, "DeviceSynchronize", context->hip->DeviceSynchronize());
  size_t after = probe_free_bytes(context);
  if (!good) return PROBE_BAD;
  if (before < during + STREAMS_LARGE_BYTES / 2)
    return probe_bad(context, "%zu MiB were allocated, and %zu MiB less were free", (size_t)STREAMS_LARGE_BYTES >> 20,
                     before > during ? (before - during) >> 20 : 0);
  if (after < during + STREAMS_LARGE_BYTES / 2)
    return probe_bad(context, "%zu MiB were freed, and %zu MiB more were free", (size_t)STREAMS_LARGE_BYTES >> 20,
                     after > during ? (after - during) >> 20 : 0);
  return PROBE_GOOD;
}
