/* SPDX-License-Identifier: MIT */
/* stream_order.h: decides which work may still use a free block, by epochs and events. Each stream counts its frees: the
 * count is its epoch. A free block remembers its stream and the epoch of its last free. Another stream may use the block
 * once it waits for an event that was recorded at or after that epoch. The event is recorded when another stream needs it,
 * or at the free (option `record`).
 *
 * A stream's handle may be destroyed and used again. So the order lasts only for streams that are known to last: default
 * streams, and streams created or retained through hipmm. Blocks of other streams come back after a wait for the device.
 *
 * Compiled into each plugin that reuses memory in stream order. The caller holds the lock of what the streams belong to.
 *
 * Invariant: completed <= recorded <= frees. */
#ifndef HIPMM_PLUGINS_COMMON_STREAM_ORDER_H
#define HIPMM_PLUGINS_COMMON_STREAM_ORDER_H

#include "device_wait.h"
#include "stream_set.h"

#include <hipmm/plugin.h>

enum {
  STREAM_READY, /* no stream: no work uses the block any more */
  STREAM_FIRST  /* the id of the first stream */
};

/* When to record the event that another stream waits for. */
enum record { RECORD_AUTO, RECORD_LAZY, RECORD_ON_FREE };

/* The words for it in an option. */
extern const char *const record_words[];

/* An event that remains while the stream goes on. The stream's own event moves to its last free. */
struct mark {
  hipmm_hip_event_t event; /* NULL until first needed */
  uint64_t epoch;
};

enum { STREAM_MARKS = 32 };

struct stream {
  hipmm_stream_t handle;
  uint64_t thread;           /* the thread of a per-thread default stream; 0 otherwise */
  unsigned long long number; /* HIP's, unique for ever: a new stream may have an old handle */
  bool in_use;
  bool lasts; /* lives until it is retired: its handle may be used after the call that passed it */
  bool gone;  /* its handle may name another stream by now */
  uint64_t frees, recorded, completed;
  hipmm_hip_event_t event; /* NULL until first needed */
  struct mark marks[STREAM_MARKS];
  uint32_t next_unused; /* next unused record */
  uint32_t n_marks;     /* marks made so far; the last STREAM_MARKS exist */
  uint32_t marks_ahead; /* marks still to make: the host has waited recently and is likely to wait again */
};

/* Sets of streams, so that no step goes through all streams. */
struct stream_sets {
  struct stream_set unfinished; /* all streams that have frees that have not completed, and maybe others */
  struct stream_set named;      /* their handles can be passed to HIP at any time, as far as is known */
  struct stream_set gone;
};

struct streams {
  const struct hipmm_services *services;
  enum record record;
  struct stream *items; /* [STREAM_READY] is no stream */
  uint16_t *table;      /* ids by hash of handle and thread, linear probing; 0: empty */
  struct stream_sets *sets;
  uint32_t count;  /* items ever used */
  uint32_t unused; /* list of unused items, through `next_unused` */
  uint32_t active; /* streams in use */
  uint64_t waits;  /* stream waits and host waits so far */
};

bool streams_open(struct streams *streams, const struct hipmm_services *services, enum record record);

/* Destroys the events. The device is current. */
void streams_close(struct streams *streams);

/* The id of a stream for the calling thread, which uses it now. STREAM_READY when the stream is new and the table is full.
 * Refuses a stream of another device with HIPMM_E_ARGUMENT: no event of this device covers its work. Asks HIP about each
 * stream that is not known yet, where HIP can tell. */
enum hipmm_status streams_enter(struct streams *streams, hipmm_stream_t handle, uint32_t *id_out);

/* The id of a known stream; STREAM_READY if it is not known. The handle is valid during this call. If the handle named
 * another stream before, that stream is not returned. */
uint32_t streams_known_id(struct streams *streams, hipmm_stream_t handle);

/* Whether an event covers all frees on the stream. Records one first if the handle may be used. */
bool stream_cover(struct streams *streams, uint32_t id);

/* Asks, without waiting, which frees have completed. */
void stream_poll(struct streams *streams, uint32_t id);

/* Makes `waiter` wait for epoch `epoch` of stream `id`. False if that needs a handle that may be gone, or HIP refuses. */
bool stream_wait(struct streams *streams, uint32_t waiter, uint32_t id, uint64_t epoch);

/* Waits on the host until all frees on the stream have completed. False as above. */
bool stream_host_wait(struct streams *streams, uint32_t id);

/* Records a mark on the stream, if the host has waited for it recently, or if its handle may be gone when the host waits:
 * otherwise an event would cost more than everything else at such a moment. The handle is valid during this call. */
void stream_mark(struct streams *streams, uint32_t id);

/* Waits on the host until the free of this epoch has completed, and as little longer as the marks allow. Returns at once
 * for an epoch that the stream never had: it belongs to a stream that was forgotten. False as above. */
bool stream_host_wait_for(struct streams *streams, uint32_t id, uint64_t epoch);

/* Notes that all frees so far have completed: the caller has waited for the stream, or for the device. */
void stream_complete(struct streams *streams, uint32_t id);

/* The same for all streams, in as many steps as streams have freed since the last time. */
void streams_complete(struct streams *streams);

/* The stream lives until it is retired. */
void stream_retain(struct streams *streams, uint32_t id);

/* Whether the stream is being captured: then it can neither record an event nor wait. Its handle is valid during this
 * call. */
bool stream_is_captured(const struct streams *streams, uint32_t id);

/* Whether any stream is being captured, as far as their handles may be used: then the device cannot be waited for. The
 * handle of `user` is valid during this call. */
bool streams_any_captured(const struct streams *streams, uint32_t user);

/* The same, also of streams whose handles may name no stream any more, where that does no harm: AMD's runtime looks a
 * handle up, and NVIDIA's driver follows it. */
bool streams_any_may_be_captured(const struct streams *streams);

/* The stream ends and could not be waited for: its handle may name another stream from now on. The record remains until
 * the device is waited for. */
void stream_lose(struct streams *streams, uint32_t id);

/* Forgets a stream that has no free blocks and whose frees have all completed; all such streams that are gone. */
void stream_forget(struct streams *streams, uint32_t id);
void streams_forget_gone(struct streams *streams);

/* Whether another stream may be able to wait for the stream. If not, its blocks become ready by a wait for the device
 * alone. */
static inline bool stream_may_be_waited_for(const struct streams *streams, uint32_t id)
{
  return streams->record == RECORD_ON_FREE || stream_set_has(&streams->sets->named, id);
}

/* Whether the handle identifies the stream for as long as the stream is in use here. */
bool stream_has_stable_handle(const struct streams *streams, uint32_t id);

/* HIP has two names for the default stream. */
static inline hipmm_stream_t stream_canonical_handle(hipmm_stream_t handle)
{
  return handle == (hipmm_stream_t)1 ? NULL : handle;
}

static inline struct stream *stream_of(const struct streams *streams, uint32_t id)
{
  return &streams->items[id];
}

/* Records the event at a free, during whose call the handle is valid. If that fails, the epoch has no event, and other
 * streams wait for the device. */
void stream_record_event(struct streams *streams, uint32_t id);

/* Counts a free on the stream and returns its epoch. With RECORD_ON_FREE, records the event. */
static inline uint64_t stream_record_free(struct streams *streams, uint32_t id)
{
  struct stream *stream = stream_of(streams, id);
  bool was_complete = stream->frees++ == stream->completed; /* otherwise it is in the set */
  if (__builtin_expect(was_complete, 0)) stream_set_add(&streams->sets->unfinished, id);
  if (__builtin_expect(streams->record == RECORD_ON_FREE, 0)) stream_record_event(streams, id);
  return stream->frees;
}

/* ---- Waiting for the device, or for a valid stream; the records do not change ---- */

/* HIPMM_E_STATE while any stream is captured, as streams_any_captured() says. */
enum hipmm_status streams_wait_for_device(const struct streams *streams, uint32_t user);

/* False if HIP refuses. */
bool streams_wait_for_handle(const struct hipmm_services *services, hipmm_stream_t handle);

#endif
