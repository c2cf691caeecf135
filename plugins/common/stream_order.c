/* SPDX-License-Identifier: MIT */
/* stream_order.c: streams by handle, their epochs and events. All HIP calls about stream order are here. */
#include "stream_order.h"
#include "thread_cache.h"

#include <string.h>

enum { TABLE = 4 * MAX_STREAMS };

#define PER_THREAD ((hipmm_stream_t)2)

const char *const record_words[] = {[RECORD_AUTO] = "auto", [RECORD_LAZY] = "lazy", [RECORD_ON_FREE] = "on_free", NULL};

bool streams_open(struct streams *streams, const struct hipmm_services *services, enum record record)
{
  *streams = (struct streams){.services = services, .record = record, .count = STREAM_FIRST};
  streams->items = services->host_allocate(services, MAX_STREAMS * sizeof *streams->items);
  streams->table = services->host_allocate(services, TABLE * sizeof *streams->table);
  streams->sets = services->host_allocate(services, sizeof *streams->sets);
  return streams->items && streams->table && streams->sets;
}

void streams_close(struct streams *streams)
{
  const struct hipmm_services *services = streams->services;
  for (uint32_t id = 0; streams->items && id < streams->count; id++) {
    const struct stream *stream = &streams->items[id];
    if (stream->event) services->hip->EventDestroy(stream->event);
    for (uint32_t i = 0; i < STREAM_MARKS; i++)
      if (stream->marks[i].event) services->hip->EventDestroy(stream->marks[i].event);
  }
  services->host_free(services, streams->items, MAX_STREAMS * sizeof *streams->items);
  services->host_free(services, streams->table, TABLE * sizeof *streams->table);
  services->host_free(services, streams->sets, sizeof *streams->sets);
}

static uint32_t stream_order_home_of(hipmm_stream_t handle, uint64_t thread)
{
  uint64_t key = ((uint64_t)(uintptr_t)handle >> 4 ^ thread) * 0x9E3779B97F4A7C15ull;
  return (uint32_t)(key >> 40) % TABLE;
}

/* The table's entry for a stream: the one that holds its id, or the empty one where it goes. */
static uint16_t *stream_order_entry_of(const struct streams *streams, hipmm_stream_t handle, uint64_t thread)
{
  for (uint32_t at = stream_order_home_of(handle, thread);; at++) {
    uint16_t *entry = &streams->table[at % TABLE];
    const struct stream *stream = &streams->items[*entry];
    if (!*entry || (stream->handle == handle && stream->thread == thread)) return entry;
  }
}

/* Empties the stream's entry. Each entry behind it that was put there because the table was occupied moves up. */
static void stream_order_remove_entry(struct streams *streams, const struct stream *stream)
{
  uint32_t hole = (uint32_t)(stream_order_entry_of(streams, stream->handle, stream->thread) - streams->table);
  for (uint32_t at = (hole + 1) % TABLE; streams->table[at]; at = (at + 1) % TABLE) {
    const struct stream *other = &streams->items[streams->table[at]];
    if ((at - stream_order_home_of(other->handle, other->thread)) % TABLE < (at - hole) % TABLE) continue;
    streams->table[hole] = streams->table[at];
    hole = at;
  }
  streams->table[hole] = STREAM_READY;
}

static enum hipmm_status stream_order_check_device(const struct streams *streams, hipmm_stream_t handle)
{
  const struct hipmm_services *services = streams->services;
  const struct hipmm_hip *hip = services->hip;
  int device = services->device;
  if (!hip->StreamGetDevice || handle == NULL || handle == PER_THREAD) return HIPMM_OK;
  if (hip->StreamGetDevice(handle, &device)) hip->GetLastError();
  if (device == services->device) return HIPMM_OK;
  return services->refuse(services, HIPMM_E_ARGUMENT, "stream {0:hex} is of device {1}, not of device {2}",
                          (uintptr_t)handle, (uint64_t)device, (uint64_t)services->device);
}

static uint32_t stream_order_unused_id(struct streams *streams)
{
  uint32_t id = streams->unused;
  if (!id) return streams->count < MAX_STREAMS ? streams->count++ : STREAM_READY;
  streams->unused = streams->items[id].next_unused;
  return id;
}

bool stream_has_stable_handle(const struct streams *streams, uint32_t id)
{
  const struct stream *stream = &streams->items[id];
  return stream->lasts || stream->thread || streams->record == RECORD_LAZY || !streams->services->hip->StreamGetId;
}

/* A default stream is that of the current device. */
static bool stream_order_is_captured(const struct streams *streams, hipmm_stream_t handle)
{
  const struct hipmm_services *services = streams->services;
  bool is_by_name = handle == NULL || handle == PER_THREAD;
  int previous = is_by_name ? services->enter_device(services) : services->device;
  bool captured = hipmm_stream_is_captured(services->hip, handle);
  if (is_by_name) services->leave_device(services, previous);
  return captured;
}

/* HIP's number of a stream; 0 where HIP cannot tell, or while the stream is captured: to ask would end the capture. A
 * captured stream counts as another stream, which is correct: a graph does not run in the order of that stream. */
static unsigned long long stream_order_number_of(const struct streams *streams, hipmm_stream_t handle)
{
  const struct hipmm_hip *hip = streams->services->hip;
  unsigned long long number = 0;
  if (!hip->StreamGetId || handle == NULL || handle == PER_THREAD || stream_order_is_captured(streams, handle))
    return 0;
  if (hip->StreamGetId(handle, &number)) hip->GetLastError();
  return number;
}

static uint32_t stream_order_add(struct streams *streams, hipmm_stream_t handle, unsigned long long number)
{
  uint32_t id = stream_order_unused_id(streams);
  if (!id) return STREAM_READY;
  struct stream *stream = &streams->items[id];
  /* The events of a forgotten stream are used again. */
  stream->handle = handle;
  stream->thread = 0;
  stream->number = number;
  stream->in_use = true;
  stream->lasts = !handle;
  stream->gone = false;
  stream->frees = stream->recorded = stream->completed = 0;
  stream->n_marks = stream->marks_ahead = 0;
  if (handle == PER_THREAD) stream->thread = thread_number();
  if (stream->lasts || stream->thread || streams->record == RECORD_LAZY) stream_set_add(&streams->sets->named, id);
  *stream_order_entry_of(streams, handle, stream->thread) = (uint16_t)id;
  streams->active++;
  return id;
}

void stream_lose(struct streams *streams, uint32_t id)
{
  struct stream *stream = &streams->items[id];
  if (stream->gone) return;
  stream_order_remove_entry(streams, stream);
  stream->gone = true;
  stream_set_remove(&streams->sets->named, id);
  stream_set_add(&streams->sets->gone, id);
}

/* The known stream that the handle names now; STREAM_READY if there is none, and then its number. Loses the stream that
 * the handle named before. */
static uint32_t stream_order_known_id(struct streams *streams, hipmm_stream_t handle, unsigned long long *number_out)
{
  uint32_t id = *stream_order_entry_of(streams, handle, handle == PER_THREAD ? thread_number() : 0);
  if (id && stream_has_stable_handle(streams, id)) return id;
  *number_out = stream_order_number_of(streams, handle);
  if (id && streams->items[id].number == *number_out) return id;
  if (id) stream_lose(streams, id);
  return STREAM_READY;
}

uint32_t streams_known_id(struct streams *streams, hipmm_stream_t handle)
{
  unsigned long long number;
  return stream_order_known_id(streams, stream_canonical_handle(handle), &number);
}

enum hipmm_status streams_enter(struct streams *streams, hipmm_stream_t handle, uint32_t *id_out)
{
  unsigned long long number;
  enum hipmm_status status = HIPMM_OK;
  handle = stream_canonical_handle(handle);
  uint32_t id = stream_order_known_id(streams, handle, &number);
  if (!id) {
    status = stream_order_check_device(streams, handle);
    if (!status) id = stream_order_add(streams, handle, number);
  }
  *id_out = id;
  return status;
}

/* Whether any thread may use its handle at any time: its owner keeps the stream, which is known of some streams, and
 * which RECORD_LAZY promises of all. Only its own thread can name a per-thread default stream. */
static bool stream_order_lasts(const struct streams *streams, const struct stream *stream)
{
  return !stream->thread && (stream->lasts || streams->record == RECORD_LAZY);
}

static bool stream_order_may_use_handle(const struct streams *streams, const struct stream *stream)
{
  return !stream->gone && (stream_order_lasts(streams, stream) || stream->thread == thread_number());
}

bool stream_is_captured(const struct streams *streams, uint32_t id)
{
  return stream_order_is_captured(streams, streams->items[id].handle);
}

bool streams_any_captured(const struct streams *streams, uint32_t user)
{
  if (user != STREAM_READY && stream_is_captured(streams, user)) return true;
  for (uint32_t id = 0; (id = stream_set_next(&streams->sets->named, id)) < MAX_STREAMS; id++)
    if (id != user && stream_order_may_use_handle(streams, &streams->items[id]) && stream_is_captured(streams, id))
      return true;
  return false;
}

bool streams_any_may_be_captured(const struct streams *streams)
{
  const char *runtime = streams->services->hip->runtime;
  if (!runtime || (strcmp(runtime, "amd") != 0 && strcmp(runtime, "software") != 0)) return false;
  for (uint32_t id = STREAM_FIRST; id < streams->count; id++)
    if (streams->items[id].in_use && !streams->items[id].gone && stream_is_captured(streams, id)) return true;
  return false;
}

void stream_retain(struct streams *streams, uint32_t id)
{
  streams->items[id].lasts = true;
  stream_set_add(&streams->sets->named, id);
}

/* Records the event on the stream. Creates the event first if there is none. *is_spoilt_out: another thread has begun to
 * capture the stream meanwhile, and a stream that waited for the event would be captured too. */
static bool stream_order_record_event(const struct streams *streams, const struct stream *stream,
                                      hipmm_hip_event_t *event, bool *is_spoilt_out)
{
  const struct hipmm_services *services = streams->services;
  const struct hipmm_hip *hip = services->hip;
  int previous = services->enter_device(services);
  bool is_captured = hipmm_stream_is_captured(hip, stream->handle);
  int code = *event || is_captured ? 0 : hip->EventCreateWithFlags(event, HIPMM_HIP_EVENT_DISABLE_TIMING);
  if (!code && !is_captured) code = hip->EventRecord(*event, stream->handle);
  if (code) hip->GetLastError();
  *is_spoilt_out = !code && !is_captured && hipmm_stream_is_captured(hip, stream->handle);
  services->leave_device(services, previous);
  return !code && !is_captured && !*is_spoilt_out;
}

static bool stream_order_record(struct streams *streams, struct stream *stream)
{
  bool is_spoilt, recorded = stream_order_record_event(streams, stream, &stream->event, &is_spoilt);
  if (recorded) stream->recorded = stream->frees;
  if (is_spoilt) stream->recorded = stream->completed;
  return recorded;
}

void stream_record_event(struct streams *streams, uint32_t id)
{
  stream_order_record(streams, &streams->items[id]);
}

bool stream_cover(struct streams *streams, uint32_t id)
{
  struct stream *stream = &streams->items[id];
  if (stream->recorded == stream->frees) return true;
  return stream_order_may_use_handle(streams, stream) && stream_order_record(streams, stream);
}

void stream_poll(struct streams *streams, uint32_t id)
{
  struct stream *stream = &streams->items[id];
  if (stream->completed == stream->recorded) return;
  int code = streams->services->hip->EventQuery(stream->event);
  if (code)
    streams->services->hip->GetLastError(); /* HIP keeps even "not ready" as the thread's last error */
  else
    stream->completed = stream->recorded;
}

bool stream_wait(struct streams *streams, uint32_t waiter, uint32_t id, uint64_t epoch)
{
  const struct hipmm_services *services = streams->services;
  struct stream *stream = &streams->items[id];
  if (epoch <= stream->completed) return true;
  if (stream_is_captured(streams, waiter)) return false;
  if (epoch > stream->recorded && !stream_cover(streams, id)) return false;
  int previous = services->enter_device(services);
  int code = services->hip->StreamWaitEvent(streams->items[waiter].handle, stream->event, 0);
  if (code) services->hip->GetLastError();
  services->leave_device(services, previous);
  streams->waits++;
  return !code;
}

bool stream_host_wait(struct streams *streams, uint32_t id)
{
  struct stream *stream = &streams->items[id];
  if (stream->completed == stream->frees) return true;
  if (!stream_cover(streams, id)) return false;
  int code = streams->services->hip->EventSynchronize(stream->event);
  if (code) streams->services->hip->GetLastError();
  streams->waits++;
  return !code;
}

/* ---- Marks ---- */

enum { MARKS_AFTER_WAIT = 8 * STREAM_MARKS };

void stream_mark(struct streams *streams, uint32_t id)
{
  struct stream *stream = &streams->items[id];
  if (!stream->marks_ahead && stream_order_lasts(streams, stream)) return;
  if (stream->n_marks && stream->marks[(stream->n_marks - 1) % STREAM_MARKS].epoch == stream->frees) return;
  struct mark *mark = &stream->marks[stream->n_marks % STREAM_MARKS];
  bool is_spoilt, recorded = stream_order_record_event(streams, stream, &mark->event, &is_spoilt);
  if (is_spoilt) mark->epoch = 0;
  if (!recorded) return;
  mark->epoch = stream->frees;
  stream->n_marks++;
  if (stream->marks_ahead) stream->marks_ahead--;
}

/* The first mark at or after the epoch; NULL if there is none. */
static const struct mark *stream_order_mark_for(const struct stream *stream, uint64_t epoch)
{
  uint32_t first = stream->n_marks > STREAM_MARKS ? stream->n_marks - STREAM_MARKS : 0;
  for (uint32_t i = first; i < stream->n_marks; i++)
    if (stream->marks[i % STREAM_MARKS].epoch >= epoch) return &stream->marks[i % STREAM_MARKS];
  return NULL;
}

bool stream_host_wait_for(struct streams *streams, uint32_t id, uint64_t epoch)
{
  struct stream *stream = &streams->items[id];
  const struct hipmm_hip *hip = streams->services->hip;
  if (!stream->in_use || epoch <= stream->completed || epoch > stream->frees) return true; /* see stream_order.h */
  stream->marks_ahead = MARKS_AFTER_WAIT;
  const struct mark *mark = stream_order_mark_for(stream, epoch);
  if (!mark) return stream_host_wait(streams, id);
  int code = hip->EventQuery(mark->event);
  if (code) {
    hip->GetLastError(); /* HIP keeps even "not ready" as the thread's last error */
    streams->waits++;
    code = hip->EventSynchronize(mark->event);
    if (code) hip->GetLastError();
  }
  return !code;
}

void stream_complete(struct streams *streams, uint32_t id)
{
  struct stream *stream = &streams->items[id];
  stream->recorded = stream->completed = stream->frees;
}

void streams_complete(struct streams *streams)
{
  for (uint32_t id = 0; (id = stream_set_next(&streams->sets->unfinished, id)) < MAX_STREAMS; id++)
    stream_complete(streams, id);
  stream_set_clear(&streams->sets->unfinished);
}

/* The stream has no entry in the table. */
static void stream_order_drop(struct streams *streams, uint32_t id)
{
  struct stream *stream = &streams->items[id];
  stream->in_use = false;
  stream_set_remove(&streams->sets->unfinished, id);
  stream_set_remove(&streams->sets->named, id);
  stream_set_remove(&streams->sets->gone, id);
  stream->next_unused = streams->unused;
  streams->unused = id;
  streams->active--;
}

void stream_forget(struct streams *streams, uint32_t id)
{
  const struct stream *stream = &streams->items[id];
  if (!stream->in_use) return;
  if (!stream->gone) stream_order_remove_entry(streams, stream);
  stream_order_drop(streams, id);
}

void streams_forget_gone(struct streams *streams)
{
  for (uint32_t id = 0; (id = stream_set_next(&streams->sets->gone, id)) < MAX_STREAMS; id++)
    if (streams->items[id].completed == streams->items[id].frees) stream_order_drop(streams, id);
}

/* ---- Waiting for all work, or for a stream ---- */

enum hipmm_status streams_wait_for_device(const struct streams *streams, uint32_t user)
{
  const struct hipmm_services *services = streams->services;
  int previous = services->enter_device(services);
  bool is_captured = streams_any_captured(streams, user);
  int code = is_captured ? HIPMM_HIP_ERROR_STREAM_CAPTURE_UNSUPPORTED : services->hip->DeviceSynchronize();
  enum hipmm_status status = HIPMM_OK;
  if (code) services->hip->GetLastError();
  if (code == HIPMM_HIP_ERROR_STREAM_CAPTURE_UNSUPPORTED)
    status =
        services->refuse(services, HIPMM_E_STATE,
                         "a graph is being captured, and until that ends the device cannot be waited for", 0, 0, 0);
  else if (code)
    status = services->refuse_hip(services, "hipDeviceSynchronize", code, 0);
  services->leave_device(services, previous);
  return status;
}

bool streams_wait_for_handle(const struct hipmm_services *services, hipmm_stream_t handle)
{
  int previous = services->enter_device(services);
  int code = services->hip->StreamSynchronize(handle);
  if (code) services->hip->GetLastError();
  services->leave_device(services, previous);
  return !code;
}
