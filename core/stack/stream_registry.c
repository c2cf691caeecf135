/* SPDX-License-Identifier: MIT */
/* stream_registry.c: a hash table of stream handles. Every container that is given a stream looks it up, so a lookup takes
 * no lock: entries are never freed, but reused. Calls HIP only to ask whether a handle still is a stream, and is captured.
 *
 * The lock is held around no other call: a visitor calls resources, which take locks of their own and may call
 * functions of the program, and those create and destroy streams. */
#include "stream_registry.h"
#include "../runtime/hip.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { BUCKETS = 256 };

struct entry {
  hipmm_stream_t _Atomic stream; /* NULL: unused */
  atomic_int device, owner;
  atomic_uint_fast64_t number; /* of the stream; never reused */
  struct entry *next;          /* constant once the entry is in its bucket */

  /* Under the lock. */
  unsigned visits;       /* visitors that have the stream; the entry is not reused meanwhile */
  stream_end_later *end; /* called by the last visitor; NULL: the stream was not removed meanwhile */
};

static struct entry *_Atomic buckets[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for changes */

static struct entry *_Atomic *stream_registry_bucket_of(hipmm_stream_t stream)
{
  return &buckets[((uintptr_t)stream >> 4) * 0x9E3779B97F4A7C15u >> 56];
}

static struct entry *stream_registry_find_entry(hipmm_stream_t stream)
{
  struct entry *entry = atomic_load_explicit(stream_registry_bucket_of(stream), memory_order_acquire);
  while (entry && atomic_load_explicit(&entry->stream, memory_order_acquire) != stream) entry = entry->next;
  return entry;
}

/* NULL for a stream that hipmm did not create. */
static struct entry *stream_registry_find_own(hipmm_stream_t stream)
{
  struct entry *entry = stream ? stream_registry_find_entry(stream) : NULL;
  return entry && atomic_load(&entry->owner) != STREAM_OF_OTHERS ? entry : NULL;
}

/* An unused entry, or a new one, in the bucket of a stream. */
static struct entry *stream_registry_new_entry(hipmm_stream_t stream)
{
  struct entry *entry = atomic_load(stream_registry_bucket_of(stream));
  while (entry && (atomic_load(&entry->stream) || entry->visits)) entry = entry->next;
  if (entry) return entry;
  entry = calloc(1, sizeof *entry);
  if (!entry) return NULL;
  entry->next = atomic_load(stream_registry_bucket_of(stream));
  atomic_store_explicit(stream_registry_bucket_of(stream), entry, memory_order_release);
  return entry;
}

static bool stream_registry_any_captured(int device)
{
  bool is_captured = false;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < BUCKETS && !is_captured; i++)
    for (struct entry *entry = atomic_load(&buckets[i]); entry && !is_captured; entry = entry->next) {
      hipmm_stream_t stream = atomic_load(&entry->stream);
      is_captured = stream && atomic_load(&entry->device) == device && hipmm_stream_is_captured(hip_table(), stream);
    }
  pthread_mutex_unlock(&lock);
  return is_captured;
}

bool stream_registry_add(hipmm_stream_t stream, int device, enum stream_owner owner)
{
  static uint64_t last_number;
  pthread_mutex_lock(&lock);
  hip_guard_waits(stream_registry_any_captured);
  struct entry *entry = stream_registry_find_entry(stream); /* a runtime that was restarted reuses handles */
  if (!entry) entry = stream_registry_new_entry(stream);
  if (entry) {
    atomic_store(&entry->device, device);
    atomic_store(&entry->owner, (int)owner);
    atomic_store(&entry->number, ++last_number);
    atomic_store_explicit(&entry->stream, stream, memory_order_release);
  }
  pthread_mutex_unlock(&lock);
  return entry != NULL;
}

enum stream_owner stream_registry_find(hipmm_stream_t stream, int *device_out)
{
  struct entry *entry = stream_registry_find_own(stream);
  if (!entry) return 0;
  *device_out = atomic_load(&entry->device);
  return (enum stream_owner)atomic_load(&entry->owner);
}

uint64_t stream_registry_number(hipmm_stream_t stream)
{
  const struct entry *entry = stream_registry_find_own(stream);
  return entry ? atomic_load(&entry->number) : 0;
}

enum stream_removal stream_registry_remove(hipmm_stream_t stream, enum stream_owner owner, stream_end_later *end)
{
  enum stream_removal removal = STREAM_UNKNOWN;
  pthread_mutex_lock(&lock);
  struct entry *entry = stream ? stream_registry_find_entry(stream) : NULL;
  if (entry && atomic_load(&entry->owner) == (int)owner) {
    atomic_store(&entry->stream, NULL);
    if (entry->visits) entry->end = end;
    removal = entry->visits ? STREAM_LEFT_TO_VISITOR : STREAM_REMOVED;
  }
  pthread_mutex_unlock(&lock);
  return removal;
}

/* ---- Streams of the program ---- */

void stream_registry_retain(hipmm_stream_t stream, int device)
{
  int own_device;
  if (!stream_registry_find(stream, &own_device)) stream_registry_add(stream, device, STREAM_OF_OTHERS);
}

/* With the lock, since another thread may be asking about the stream, which the caller destroys next. */
void stream_registry_retire(hipmm_stream_t stream)
{
  stream_registry_remove(stream, STREAM_OF_OTHERS, NULL);
}

void stream_registry_retire_all(void)
{
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < BUCKETS; i++)
    for (struct entry *entry = atomic_load(&buckets[i]); entry; entry = entry->next)
      if (atomic_load(&entry->owner) == STREAM_OF_OTHERS) atomic_store(&entry->stream, NULL);
  pthread_mutex_unlock(&lock);
}

/* ---- Visits ---- */

/* A runtime that was restarted has destroyed its streams. A query would end the capture of a stream. */
static bool stream_registry_is_stream(hipmm_stream_t stream)
{
  if (hipmm_stream_is_captured(hip_table(), stream)) return true;
  int code = hip_table()->StreamQuery(stream);
  if (code) hip_table()->GetLastError();
  return code != HIPMM_HIP_ERROR_INVALID_HANDLE;
}

/* The lock is held. */
static void stream_registry_leave(struct entry *entry, hipmm_stream_t stream)
{
  stream_end_later *end = --entry->visits ? NULL : entry->end;
  int device = atomic_load(&entry->device);
  enum stream_owner owner = (enum stream_owner)atomic_load(&entry->owner);
  if (!end) return;
  entry->end = NULL;
  pthread_mutex_unlock(&lock);
  end(stream, device, owner);
  pthread_mutex_lock(&lock);
}

void stream_registry_visit(int device, void (*visit)(void *closure, hipmm_stream_t stream), void *closure)
{
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < BUCKETS; i++)
    for (struct entry *entry = atomic_load(&buckets[i]); entry; entry = entry->next) {
      hipmm_stream_t stream = atomic_load(&entry->stream);
      if (!stream || atomic_load(&entry->device) != device || atomic_load(&entry->owner) == STREAM_OF_OTHERS) continue;
      uint64_t number = atomic_load(&entry->number);
      entry->visits++;
      pthread_mutex_unlock(&lock);
      bool is_stream = stream_registry_is_stream(stream);
      if (is_stream) visit(closure, stream);
      pthread_mutex_lock(&lock);
      /* A stream that was created meanwhile may have the same handle, and then has this entry. */
      if (!is_stream && atomic_load(&entry->number) == number) atomic_store(&entry->stream, NULL);
      stream_registry_leave(entry, stream);
    }
  pthread_mutex_unlock(&lock);
}
