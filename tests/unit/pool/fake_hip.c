/* SPDX-License-Identifier: MIT */
/* fake_hip.c: streams, events and the device as vector clocks. clocks[s][t] is the last work of stream t that what is
 * submitted to stream s comes after; done[t] is the last work of t that has been executed, and seen[t] the last that
 * the host knows to have been. */
#include "fake.h"

#include <string.h>

enum { MAX_EVENTS = 64, FIRST_HANDLE = 0x7000 };

struct fake_event {
  bool live;
  unsigned stream; /* recorded on; meaningless while clock is all 0 */
  uint64_t clock[FAKE_STREAMS];
};

struct fake_calls fake_calls;
static uint64_t submitted[FAKE_STREAMS], clocks[FAKE_STREAMS][FAKE_STREAMS], done[FAKE_STREAMS], seen[FAKE_STREAMS];
static bool is_dead[FAKE_STREAMS];
static struct fake_event events[MAX_EVENTS];
static bool record_fails, device_wait_fails;

hipmm_stream_t fake_stream(unsigned index)
{
  return index ? (hipmm_stream_t)(uintptr_t)(FIRST_HANDLE + 16 * index) : NULL;
}

static unsigned index_of(hipmm_stream_t handle)
{
  unsigned index = handle ? (unsigned)((uintptr_t)handle - FIRST_HANDLE) / 16 : 0;
  if (index >= FAKE_STREAMS) {
    fake_note_mistake("a stream is used that never was");
    return 0;
  }
  if (is_dead[index]) fake_note_mistake("a dead stream is used");
  return index;
}

static void advance(uint64_t *clock, const uint64_t *to)
{
  for (unsigned i = 0; i < FAKE_STREAMS; i++)
    if (clock[i] < to[i]) clock[i] = to[i];
}

uint64_t fake_work(unsigned stream)
{
  return clocks[stream][stream] = ++submitted[stream];
}

void fake_progress(unsigned stream)
{
  advance(done, clocks[stream]);
}

bool fake_is_ordered(unsigned later, unsigned stream, uint64_t work)
{
  return clocks[later][stream] >= work || seen[stream] >= work;
}

void fake_order(unsigned later, unsigned earlier)
{
  advance(clocks[later], clocks[earlier]);
}

void fake_set_alive(unsigned stream, bool alive)
{
  is_dead[stream] = !alive;
}

void fake_set_record_fails(bool fails)
{
  record_fails = fails;
}

void fake_set_device_wait_fails(bool fails)
{
  device_wait_fails = fails;
}

/* ---- The functions ---- */

static int event_create(hipmm_hip_event_t *event, unsigned flags)
{
  fake_calls.event_create++;
  if (flags != HIPMM_HIP_EVENT_DISABLE_TIMING) fake_note_mistake("an event is made with timing");
  for (unsigned i = 0; i < MAX_EVENTS; i++) {
    if (events[i].live) continue;
    events[i] = (struct fake_event){.live = true};
    *event = &events[i];
    return 0;
  }
  return HIPMM_HIP_ERROR_OUT_OF_MEMORY;
}

static int event_destroy(hipmm_hip_event_t handle)
{
  struct fake_event *event = handle;
  if (!event || !event->live) fake_note_mistake("an event is destroyed that is none");
  if (event) event->live = false;
  return 0;
}

static int event_record(hipmm_hip_event_t handle, hipmm_stream_t stream)
{
  struct fake_event *event = handle;
  fake_calls.event_record++;
  if (record_fails) return HIPMM_HIP_ERROR_INVALID_VALUE;
  event->stream = index_of(stream);
  memcpy(event->clock, clocks[event->stream], sizeof event->clock);
  return 0;
}

static int event_query(hipmm_hip_event_t handle)
{
  struct fake_event *event = handle;
  fake_calls.event_query++;
  if (done[event->stream] < event->clock[event->stream]) return HIPMM_HIP_ERROR_NOT_READY;
  advance(seen, event->clock);
  return 0;
}

static int event_synchronize(hipmm_hip_event_t handle)
{
  struct fake_event *event = handle;
  fake_calls.event_synchronize++;
  advance(done, event->clock);
  advance(seen, event->clock);
  return 0;
}

static int stream_wait_event(hipmm_stream_t stream, hipmm_hip_event_t handle, unsigned flags)
{
  struct fake_event *event = handle;
  fake_calls.stream_wait_event++;
  if (flags) fake_note_mistake("a stream waits with flags");
  advance(clocks[index_of(stream)], event->clock);
  return 0;
}

static int stream_synchronize(hipmm_stream_t stream)
{
  fake_calls.stream_synchronize++;
  advance(done, clocks[index_of(stream)]);
  advance(seen, clocks[index_of(stream)]);
  return 0;
}

static int device_synchronize(void)
{
  fake_calls.device_synchronize++;
  if (device_wait_fails) return HIPMM_HIP_ERROR_INVALID_VALUE;
  advance(done, submitted);
  advance(seen, submitted);
  return 0;
}

static int last_error(void)
{
  fake_calls.last_error++;
  return 0;
}

static int memory_info(size_t *free_bytes, size_t *total_bytes)
{
  *total_bytes = (size_t)1 << 28;
  *free_bytes = fake_free_bytes();
  return 0;
}

struct hipmm_hip fake_hip = {.struct_size = sizeof fake_hip,
                             .GetLastError = last_error,
                             .MemGetInfo = memory_info,
                             .DeviceSynchronize = device_synchronize,
                             .StreamSynchronize = stream_synchronize,
                             .StreamWaitEvent = stream_wait_event,
                             .EventCreateWithFlags = event_create,
                             .EventDestroy = event_destroy,
                             .EventRecord = event_record,
                             .EventQuery = event_query,
                             .EventSynchronize = event_synchronize};

void fake_hip_begin(void)
{
  memset(submitted, 0, sizeof submitted);
  memset(clocks, 0, sizeof clocks);
  memset(done, 0, sizeof done);
  memset(seen, 0, sizeof seen);
  memset(is_dead, 0, sizeof is_dead);
  memset(events, 0, sizeof events);
  fake_calls = (struct fake_calls){0};
  record_fails = device_wait_fails = false;
}

void fake_hip_end(void)
{
  for (unsigned i = 0; i < MAX_EVENTS; i++)
    if (events[i].live) fake_note_mistake("an event is lost");
}
