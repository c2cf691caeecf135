/* SPDX-License-Identifier: MIT */
/* order.c: clocks. A use is the last that a stream does with some bytes; a clock says of each stream how many of its
 * uses have come before. */
#include "order.h"

#include <pthread.h>
#include <stdint.h>

enum { EVENTS = 1 << 16, UNITS = 1 << 20, UNIT = HIPMM_ALIGNMENT };

struct clock {
  uint64_t uses[STREAMS];
};

/* As it was recorded last. One that shares its place with another is forgotten when that is recorded. */
struct event {
  hipmm_hip_event_t handle;
  struct clock clock;
};

/* The last use of some bytes, forgotten like an event. */
struct use {
  uint64_t unit; /* the address in units */
  uint32_t stream;
  uint64_t number; /* 0: none */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct hipmm_hip hip;
static hipmm_stream_t handles[STREAMS];
static struct clock streams[STREAMS], host;
static struct event events[EVENTS];
static struct use uses[UNITS];

/* ---- What is known; the lock is held ---- */

/* STREAMS for one that nobody named. */
static unsigned stream_with(hipmm_stream_t handle)
{
  unsigned stream = 0;
  while (stream < STREAMS && handles[stream] != handle) stream++;
  return stream;
}

static struct event *event_place(hipmm_hip_event_t handle)
{
  return &events[((uint64_t)(uintptr_t)handle * 0x9E3779B97F4A7C15ull >> 40) % EVENTS];
}

static uint64_t unit_of(const void *ptr)
{
  return (uintptr_t)ptr / UNIT;
}

static struct use *use_place(uint64_t unit)
{
  return &uses[unit % UNITS];
}

/* What is not known is as if it came after everything: a mistake may be missed, never made up. */
static struct clock clock_of_everything(void)
{
  struct clock clock;
  for (unsigned i = 0; i < STREAMS; i++) clock.uses[i] = streams[i].uses[i];
  return clock;
}

static void join(struct clock *clock, const struct clock *other)
{
  for (unsigned i = 0; i < STREAMS; i++)
    if (clock->uses[i] < other->uses[i]) clock->uses[i] = other->uses[i];
}

/* ---- The same for who does not hold it ---- */

static struct clock clock_of_stream(hipmm_stream_t handle)
{
  pthread_mutex_lock(&lock);
  unsigned stream = stream_with(handle);
  struct clock clock = stream < STREAMS ? streams[stream] : clock_of_everything();
  pthread_mutex_unlock(&lock);
  return clock;
}

static struct clock clock_of_event(hipmm_hip_event_t handle)
{
  pthread_mutex_lock(&lock);
  const struct event *event = event_place(handle);
  struct clock clock = event->handle == handle ? event->clock : clock_of_everything();
  pthread_mutex_unlock(&lock);
  return clock;
}

static struct clock clock_of_device(void)
{
  pthread_mutex_lock(&lock);
  struct clock clock = clock_of_everything();
  pthread_mutex_unlock(&lock);
  return clock;
}

/* ---- The calls: what they are about is looked at before them, as other threads go on meanwhile ---- */

static int record(hipmm_hip_event_t handle, hipmm_stream_t stream)
{
  struct clock clock = clock_of_stream(stream);
  int code = hip.EventRecord(handle, stream);
  if (code) return code;
  pthread_mutex_lock(&lock);
  *event_place(handle) = (struct event){handle, clock};
  pthread_mutex_unlock(&lock);
  return 0;
}

static int stream_wait(hipmm_stream_t handle, hipmm_hip_event_t event, unsigned flags)
{
  struct clock clock = clock_of_event(event);
  int code = hip.StreamWaitEvent(handle, event, flags);
  if (code) return code;
  pthread_mutex_lock(&lock);
  unsigned stream = stream_with(handle);
  if (stream < STREAMS) join(&streams[stream], &clock);
  pthread_mutex_unlock(&lock);
  return 0;
}

static int joined_by_host(int code, const struct clock *clock)
{
  if (code) return code;
  pthread_mutex_lock(&lock);
  join(&host, clock);
  pthread_mutex_unlock(&lock);
  return 0;
}

static int query(hipmm_hip_event_t event)
{
  struct clock clock = clock_of_event(event);
  return joined_by_host(hip.EventQuery(event), &clock);
}

static int wait_for_event(hipmm_hip_event_t event)
{
  struct clock clock = clock_of_event(event);
  return joined_by_host(hip.EventSynchronize(event), &clock);
}

static int wait_for_stream(hipmm_stream_t stream)
{
  struct clock clock = clock_of_stream(stream);
  return joined_by_host(hip.StreamSynchronize(stream), &clock);
}

static int wait_for_device(void)
{
  struct clock clock = clock_of_device();
  return joined_by_host(hip.DeviceSynchronize(), &clock);
}

/* Waits for the device. */
static int free_memory(void *ptr)
{
  struct clock clock = clock_of_device();
  return joined_by_host(hip.Free(ptr), &clock);
}

void order_follow(struct hipmm_hip *table)
{
  hip = *table;
  table->EventRecord = record;
  table->StreamWaitEvent = stream_wait;
  table->EventQuery = query;
  table->EventSynchronize = wait_for_event;
  table->StreamSynchronize = wait_for_stream;
  table->DeviceSynchronize = wait_for_device;
  table->Free = free_memory;
}

/* ---- The program ---- */

void order_set_handle(unsigned stream, hipmm_stream_t handle)
{
  pthread_mutex_lock(&lock);
  handles[stream] = handle;
  pthread_mutex_unlock(&lock);
}

void order_used(unsigned stream, const void *ptr, size_t bytes)
{
  uint64_t first = unit_of(ptr), last = unit_of((const char *)ptr + bytes - 1);
  pthread_mutex_lock(&lock);
  uint64_t number = ++streams[stream].uses[stream];
  for (uint64_t unit = first; unit <= last; unit++) *use_place(unit) = (struct use){unit, stream, number};
  pthread_mutex_unlock(&lock);
}

unsigned order_last_user(const void *ptr)
{
  pthread_mutex_lock(&lock);
  const struct use *use = use_place(unit_of(ptr));
  unsigned stream = use->unit == unit_of(ptr) && use->number ? use->stream : STREAMS;
  pthread_mutex_unlock(&lock);
  return stream;
}

bool order_is_after(unsigned stream, const void *ptr, size_t bytes)
{
  uint64_t first = unit_of(ptr), last = unit_of((const char *)ptr + bytes - 1);
  bool is_after = true;
  pthread_mutex_lock(&lock);
  for (uint64_t unit = first; unit <= last && is_after; unit++) {
    const struct use *use = use_place(unit);
    if (use->unit != unit) continue;
    is_after = use->number <= streams[stream].uses[use->stream] || use->number <= host.uses[use->stream];
  }
  pthread_mutex_unlock(&lock);
  return is_after;
}
