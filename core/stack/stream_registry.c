/* SPDX-License-Identifier: MIT */
/* stream_registry.c: a hash table of stream handles. Every container that is given a stream looks it up, so a lookup takes
 * no lock: entries are never freed, but reused. Calls HIP only to ask whether a handle still is a stream. */
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
};

static struct entry *_Atomic buckets[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for changes */

static struct entry *_Atomic *stream_registry_bucket_of(hipmm_stream_t stream)
{
  return &buckets[((uintptr_t)stream >> 4) * 0x9E3779B97F4A7C15u >> 56];
}

/* NULL finds an unused entry in the bucket of `like`. */
static struct entry *stream_registry_find_entry(hipmm_stream_t like, hipmm_stream_t stream)
{
  struct entry *entry = atomic_load_explicit(stream_registry_bucket_of(like), memory_order_acquire);
  while (entry && atomic_load_explicit(&entry->stream, memory_order_acquire) != stream) entry = entry->next;
  return entry;
}

static struct entry *stream_registry_new_entry(hipmm_stream_t stream)
{
  struct entry *entry = calloc(1, sizeof *entry);
  if (!entry) return NULL;
  entry->next = atomic_load(stream_registry_bucket_of(stream));
  atomic_store_explicit(stream_registry_bucket_of(stream), entry, memory_order_release);
  return entry;
}

bool stream_registry_add(hipmm_stream_t stream, int device, enum stream_owner owner)
{
  static uint64_t last_number;
  pthread_mutex_lock(&lock);
  struct entry *entry = stream_registry_find_entry(stream, stream); /* a runtime that was restarted reuses handles */
  if (!entry) entry = stream_registry_find_entry(stream, NULL);
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
  struct entry *entry = stream ? stream_registry_find_entry(stream, stream) : NULL;
  if (!entry) return 0;
  *device_out = atomic_load(&entry->device);
  return (enum stream_owner)atomic_load(&entry->owner);
}

uint64_t stream_registry_number(hipmm_stream_t stream)
{
  const struct entry *entry = stream ? stream_registry_find_entry(stream, stream) : NULL;
  return entry ? atomic_load(&entry->number) : 0;
}

bool stream_registry_remove(hipmm_stream_t stream, enum stream_owner owner)
{
  pthread_mutex_lock(&lock);
  struct entry *entry = stream ? stream_registry_find_entry(stream, stream) : NULL;
  bool is_found = entry && atomic_load(&entry->owner) == (int)owner;
  if (is_found) atomic_store(&entry->stream, NULL);
  pthread_mutex_unlock(&lock);
  return is_found;
}

/* A runtime that was restarted has destroyed its streams. */
static bool stream_registry_is_stream(hipmm_stream_t stream)
{
  int code = hip_table()->StreamQuery(stream);
  if (code) hip_table()->GetLastError();
  return code != HIPMM_HIP_ERROR_INVALID_HANDLE;
}

void stream_registry_visit(int device, void (*visit)(void *closure, hipmm_stream_t stream), void *closure)
{
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < BUCKETS; i++)
    for (struct entry *entry = atomic_load(&buckets[i]); entry; entry = entry->next) {
      hipmm_stream_t stream = atomic_load(&entry->stream);
      if (!stream || atomic_load(&entry->device) != device) continue;
      if (stream_registry_is_stream(stream))
        visit(closure, stream);
      else
        atomic_store(&entry->stream, NULL);
    }
  pthread_mutex_unlock(&lock);
}
