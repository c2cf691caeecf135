/* SPDX-License-Identifier: MIT */
/* stream_order.h: which work may still use a free block. Each stream that frees into the pool has a count of its frees, its
 * epochs, and one event. A free block remembers its stream and the epoch of the last free that it holds; it is safe for
 * another stream once that stream waits for an event recorded at or after that epoch.
 *
 * Invariant: passed <= recorded <= frees. */
#ifndef HIPMM_PLUGINS_COMMON_STREAM_ORDER_H
#define HIPMM_PLUGINS_COMMON_STREAM_ORDER_H

#include <hipmm/plugin.h>

#include <stdbool.h>

enum {
  STREAM_READY,         /* no stream's id: no work uses the block any more */
  STREAM_FIRST,         /* the first stream's */
  MAX_STREAMS = 1 << 16 /* an id has 16 bits */
};

/* When the event is recorded that another stream waits for. */
enum record { RECORD_AUTO, RECORD_LAZY, RECORD_ON_FREE };

/* Its words, for an option. */
extern const char *const record_words[];

/* An event that stays while the stream goes on, unlike the stream's own, which moves to its last free. */
struct mark {
  hipEvent_t event; /* NULL until first needed */
  uint64_t epoch;
};

enum { STREAM_MARKS = 32 };

struct stream {
  hipStream_t handle;
  uint64_t thread;           /* of a per-thread default stream: whose; 0 otherwise */
  unsigned long long number; /* HIP's, which no other stream ever has: a new stream may bear an old handle */
  bool in_use;
  bool lasts; /* known to live until it is retired: its handle may be used later than the call that gave it */
  bool gone;  /* its handle names another stream by now */
  uint64_t frees, recorded, completed;
  hipEvent_t event; /* NULL until first needed */
  struct mark marks[STREAM_MARKS];
  uint32_t next_unused; /* of a record that is not in use: the next such record */
  uint32_t n_marks;     /* made so far; the last are kept */
  uint32_t marks_ahead; /* to be made yet: the host was waiting of late, and is likely to again */
};

struct streams {
  const struct hipmm_services *services;
  enum record record;
  struct stream *items; /* [STREAM_READY] stands for no stream */
  uint16_t *table;      /* ids by hash of handle and thread, linear probing; 0: empty */
  uint32_t count;       /* items ever used */
  uint32_t unused;      /* the list of items to use again, through `next_unused` */
  uint32_t active;      /* streams in use */
  uint64_t waits;       /* stream waits and host waits so far */
};

bool streams_open(struct streams *streams, const struct hipmm_services *services, enum record record);

/* Destroys the events. The device is current. */
void streams_close(struct streams *streams);

/* The id of a stream as the calling thread means it, which uses it now. STREAM_READY when it is new and there is no
 * room for one more. Refuses a stream of another device, whose work no event of this one stands for:
 * HIPMM_E_ARGUMENT. HIP is asked, where it can tell, about each stream that is not known yet. */
enum hipmm_status streams_enter(struct streams *streams, hipStream_t handle, uint32_t *id_out);

/* The id if the stream is known already; STREAM_READY if not. The handle is good during this call: a handle that named
 * another stream before is not taken for that one. */
uint32_t streams_known_id(struct streams *streams, hipStream_t handle);

/* A free on this stream: returns its epoch. Records an event if that is to be done at each free. */
uint64_t stream_record_free(struct streams *streams, uint32_t id);

/* Whether all frees on this stream are covered by an event, after recording one if its handle may be used. */
bool stream_cover(struct streams *streams, uint32_t id);

/* Looks, without waiting, how far the stream has come. */
void stream_poll(struct streams *streams, uint32_t id);

/* Orders `waiter` after epoch `epoch` of stream `id`. False if that needs a handle that may be gone, or HIP refuses. */
bool stream_wait(struct streams *streams, uint32_t waiter, uint32_t id, uint64_t epoch);

/* Waits on the host until all frees on this stream have completed. False as above. */
bool stream_host_wait(struct streams *streams, uint32_t id);

/* Marks where the stream is now, if the host was waiting for it of late, or if its handle may be gone by the time that
 * it does: an event costs the host and the device more than all else that is done at such a moment. Its handle is good
 * during this call. */
void stream_mark(struct streams *streams, uint32_t id);

/* Waits on the host until the free of this epoch has completed, and as little longer as marks allow. An epoch that the
 * stream never had is of one that was forgotten. False as above. */
bool stream_host_wait_for(struct streams *streams, uint32_t id, uint64_t epoch);

/* All frees so far have completed: the caller has waited for the stream, or for the device. */
void stream_complete(struct streams *streams, uint32_t id);

/* Whether the stream, whose handle is good during this call, is being captured: nothing can be recorded on it then, and
 * it cannot wait. */
bool stream_is_captured(const struct streams *streams, uint32_t id);

/* Whether work on any stream, as far as their handles may be used, goes into a graph that is being captured: then the
 * device cannot be waited for. That of `user` is good during this call. */
bool streams_any_captured(const struct streams *streams, uint32_t user);

/* The stream ends, and could not be waited for: its handle may name another stream from now on. It stays until the
 * device was waited for. */
void stream_lose(struct streams *streams, uint32_t id);

/* Forgets a stream whose frees have all completed and that has no free blocks; all such streams that are gone: the device
 * was waited for. */
void stream_forget(struct streams *streams, uint32_t id);
void streams_forget_gone(struct streams *streams);

/* Whether the handle alone tells which stream it is, for as long as the stream is in use here. */
bool stream_is_sure(const struct streams *streams, uint32_t id);

/* HIP has two names for the default stream. */
static inline hipStream_t stream_usual_handle(hipStream_t handle)
{
  return handle == (hipStream_t)1 ? NULL : handle;
}

static inline struct stream *stream_of(const struct streams *streams, uint32_t id)
{
  return &streams->items[id];
}

/* ---- Waiting for all work, or for a stream that is still valid; nothing is noted ---- */

/* HIPMM_E_STATE while any stream is captured, as streams_any_captured() says. */
enum hipmm_status streams_wait_for_device(const struct streams *streams, uint32_t user);

/* The same where memory goes back whatever comes of it. Tried once more, since it would else be taken away from work; a
 * broken device gives it back all the same. The device is current. */
void streams_wait_at_end(const struct hipmm_services *services);

/* False if HIP refuses. */
bool streams_wait_for_handle(const struct hipmm_services *services, hipStream_t handle);

#endif
