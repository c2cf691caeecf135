/* SPDX-License-Identifier: MIT */
/* checks_hip.c: tells the race detector about hipmm's own calls of the runtime: the waits by which resources keep
 * the order of streams, and the memory that resources get. The functions here replace those of the runtime in
 * hipmm's table, which plugins call too. Also receives the blocks of resources from the core. Called by the core. */
#include "checks.h"

#include "../../core/runtime/hip.h"

static struct hipmm_hip real;

static struct race_stream checks_hip_stream(hipmm_stream_t stream)
{
  int device = 0;
  if (real.GetDevice(&device)) real.GetLastError();
  return checks_stream(device, stream);
}

static bool checks_hip_is_captured(hipmm_stream_t stream)
{
  return hipmm_stream_is_captured(&real, stream);
}

/* ---- Streams and events ---- */

static int checks_hip_add(hipmm_stream_t *stream, unsigned flags, int code)
{
  int device = 0;
  if (!code && !real.GetDevice(&device)) checks_add_stream(device, *stream, flags);
  return code;
}

static int checks_hip_StreamCreateWithFlags(hipmm_stream_t *stream, unsigned flags)
{
  return checks_hip_add(stream, flags, real.StreamCreateWithFlags(stream, flags));
}

static int checks_hip_StreamCreateWithPriority(hipmm_stream_t *stream, unsigned flags, int priority)
{
  return checks_hip_add(stream, flags, real.StreamCreateWithPriority(stream, flags, priority));
}

/* Before the call: another thread may create a stream with this handle as soon as it is gone. */
static int checks_hip_StreamDestroy(hipmm_stream_t stream)
{
  checks_end_stream(stream);
  return real.StreamDestroy(stream);
}

/* The host knows that the stream is over; not while it is captured, when the call fails. */
static int checks_hip_after_stream(hipmm_stream_t stream, int code)
{
  const struct race_stream named = checks_hip_stream(stream);
  if (!code) races_host_after_stream(&named);
  return code;
}

static int checks_hip_StreamSynchronize(hipmm_stream_t stream)
{
  return checks_hip_after_stream(stream, real.StreamSynchronize(stream));
}

static int checks_hip_StreamQuery(hipmm_stream_t stream)
{
  return checks_hip_after_stream(stream, real.StreamQuery(stream));
}

static int checks_hip_DeviceSynchronize(void)
{
  int device = 0, code = real.DeviceSynchronize();
  if (!code && !real.GetDevice(&device)) races_host_after_device(device);
  return code;
}

static int checks_hip_EventRecord(hipmm_hip_event_t event, hipmm_stream_t stream)
{
  bool is_captured = checks_hip_is_captured(stream);
  int code = real.EventRecord(event, stream);
  const struct race_stream named = checks_hip_stream(stream);
  if (!code && !is_captured) races_record(&named, event);
  return code;
}

static int checks_hip_StreamWaitEvent(hipmm_stream_t stream, hipmm_hip_event_t event, unsigned flags)
{
  bool is_captured = checks_hip_is_captured(stream);
  int code = real.StreamWaitEvent(stream, event, flags);
  const struct race_stream named = checks_hip_stream(stream);
  if (!code && !is_captured) races_wait(&named, event);
  return code;
}

static int checks_hip_EventQuery(hipmm_hip_event_t event)
{
  int code = real.EventQuery(event);
  if (!code) races_host_after_event(event);
  return code;
}

static int checks_hip_EventSynchronize(hipmm_hip_event_t event)
{
  int code = real.EventSynchronize(event);
  if (!code) races_host_after_event(event);
  return code;
}

static int checks_hip_EventDestroy(hipmm_hip_event_t event)
{
  races_end_event(event); /* before, as with streams */
  return real.EventDestroy(event);
}

/* ---- Work ---- */

static void checks_hip_work(const char *call, void *to, const void *from, size_t bytes, hipmm_stream_t stream)
{
  const struct race_stream named = checks_hip_stream(stream);
  if (!bytes || checks_hip_is_captured(stream)) return;
  races_work(&named, call, (struct race_access){.start = to, .bytes = bytes},
             (struct race_access){.start = (void *)(uintptr_t)from, .bytes = from ? bytes : 0});
}

static int checks_hip_Memcpy(void *to, const void *from, size_t bytes, int kind)
{
  checks_hip_work("hipMemcpy", to, from, bytes, NULL);
  return checks_hip_after_stream(NULL, real.Memcpy(to, from, bytes, kind));
}

static int checks_hip_MemcpyAsync(void *to, const void *from, size_t bytes, int kind, hipmm_stream_t stream)
{
  checks_hip_work("hipMemcpyAsync", to, from, bytes, stream);
  return real.MemcpyAsync(to, from, bytes, kind, stream);
}

static int checks_hip_MemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                      hipmm_stream_t stream)
{
  checks_hip_work("hipMemcpyPeerAsync", to, from, bytes, stream);
  return real.MemcpyPeerAsync(to, to_device, from, from_device, bytes, stream);
}

static int checks_hip_MemsetAsync(void *ptr, int value, size_t bytes, hipmm_stream_t stream)
{
  checks_hip_work("hipMemsetAsync", ptr, NULL, bytes, stream);
  return real.MemsetAsync(ptr, value, bytes, stream);
}

/* ---- Memory ---- */

static int checks_hip_gave(void *const *ptr, size_t bytes, int code)
{
  if (!code && *ptr) races_driver_gave(*ptr, bytes);
  return code;
}

static int checks_hip_Malloc(void **ptr, size_t bytes)
{
  return checks_hip_gave(ptr, bytes, real.Malloc(ptr, bytes));
}

static int checks_hip_MallocManaged(void **ptr, size_t bytes, unsigned flags)
{
  return checks_hip_gave(ptr, bytes, real.MallocManaged(ptr, bytes, flags));
}

static int checks_hip_HostMalloc(void **ptr, size_t bytes, unsigned flags)
{
  return checks_hip_gave(ptr, bytes, real.HostMalloc(ptr, bytes, flags));
}

static int checks_hip_MallocAsync(void **ptr, size_t bytes, hipmm_stream_t stream)
{
  return checks_hip_gave(ptr, bytes, real.MallocAsync(ptr, bytes, stream));
}

static int checks_hip_MallocFromPoolAsync(void **ptr, size_t bytes, hipmm_hip_mempool_t pool, hipmm_stream_t stream)
{
  return checks_hip_gave(ptr, bytes, real.MallocFromPoolAsync(ptr, bytes, pool, stream));
}

/* Before the call: as soon as the memory is free, another thread may get it. */
static int checks_hip_Free(void *ptr)
{
  races_driver_took(ptr, 0);
  return real.Free(ptr);
}

static int checks_hip_HostFree(void *ptr)
{
  races_driver_took(ptr, 0);
  return real.HostFree(ptr);
}

static int checks_hip_FreeAsync(void *ptr, hipmm_stream_t stream)
{
  races_driver_took(ptr, 0);
  return real.FreeAsync(ptr, stream);
}

static int checks_hip_MemMap(void *ptr, size_t bytes, hipmm_hip_chunk_t chunk)
{
  int code = real.MemMap(ptr, bytes, chunk);
  if (!code) races_driver_gave(ptr, bytes);
  return code;
}

static int checks_hip_MemUnmap(void *ptr, size_t bytes)
{
  races_driver_took(ptr, bytes);
  return real.MemUnmap(ptr, bytes);
}

/* A function that the runtime does not have stays missing. */
#define CHECKS_HIP_PUT(name) (hip->name = hip->name ? checks_hip_##name : NULL)

static void checks_observe_hip(struct hipmm_hip *hip)
{
  real = *hip;
  CHECKS_HIP_PUT(StreamCreateWithFlags);
  CHECKS_HIP_PUT(StreamCreateWithPriority);
  CHECKS_HIP_PUT(StreamDestroy);
  CHECKS_HIP_PUT(StreamSynchronize);
  CHECKS_HIP_PUT(StreamQuery);
  CHECKS_HIP_PUT(StreamWaitEvent);
  CHECKS_HIP_PUT(DeviceSynchronize);
  CHECKS_HIP_PUT(EventRecord);
  CHECKS_HIP_PUT(EventQuery);
  CHECKS_HIP_PUT(EventSynchronize);
  CHECKS_HIP_PUT(EventDestroy);
  CHECKS_HIP_PUT(Memcpy);
  CHECKS_HIP_PUT(MemcpyAsync);
  CHECKS_HIP_PUT(MemcpyPeerAsync);
  CHECKS_HIP_PUT(MemsetAsync);
  CHECKS_HIP_PUT(Malloc);
  CHECKS_HIP_PUT(MallocManaged);
  CHECKS_HIP_PUT(HostMalloc);
  CHECKS_HIP_PUT(MallocAsync);
  CHECKS_HIP_PUT(MallocFromPoolAsync);
  CHECKS_HIP_PUT(Free);
  CHECKS_HIP_PUT(HostFree);
  CHECKS_HIP_PUT(FreeAsync);
  CHECKS_HIP_PUT(MemMap);
  CHECKS_HIP_PUT(MemUnmap);
}

/* ---- Blocks of hipmm's resources ---- */

static struct race_stream checks_stream_of_event(const struct memory_event *event)
{
  struct race_stream named = checks_stream(event->device, event->stream);
  named.is_captured = hipmm_stream_is_captured(hip_table(), event->stream);
  return named;
}

static void checks_allocated(const struct memory_event *event)
{
  const struct race_stream named = checks_stream_of_event(event);
  races_allocated(event, &named);
}

static void *checks_freeing(const struct memory_event *event)
{
  const struct race_stream named = checks_stream_of_event(event);
  return races_freeing(event, &named);
}

#pragma GCC visibility push(default)
const struct memory_observer *hipmm_run_observer(void);

/* For a core of hipmm in this process: the one of this object, and a library that the program uses. */
const struct memory_observer *hipmm_run_observer(void)
{
  static const struct memory_observer observer = {.struct_size = sizeof observer,
                                                  .enter = races_enter,
                                                  .leave = races_leave,
                                                  .allocated = checks_allocated,
                                                  .freeing = checks_freeing,
                                                  .freed = races_freed,
                                                  .destroyed = races_destroyed,
                                                  .observe_hip = checks_observe_hip};
  return races_are_on() ? &observer : NULL;
}
#pragma GCC visibility pop
