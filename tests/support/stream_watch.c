/* SPDX-License-Identifier: MIT */
/* stream_watch.c: see stream_watch.h. */
#include "stream_watch.h"

static hipmm_stream_t _Atomic watched; /* NULL: none */
static atomic_uint count;

bool watch_is_on(hipmm_stream_t stream)
{
  return stream && stream == atomic_load(&watched);
}

static void note(hipmm_stream_t stream)
{
  if (watch_is_on(stream)) atomic_fetch_add(&count, 1);
}

static int spy_on_record(hipmm_hip_event_t event, hipmm_stream_t stream)
{
  note(stream);
  return fixture_usual_hip()->EventRecord(event, stream);
}

static int spy_on_wait(hipmm_stream_t stream, hipmm_hip_event_t event, unsigned flags)
{
  note(stream);
  return fixture_usual_hip()->StreamWaitEvent(stream, event, flags);
}

static int spy_on_synchronize(hipmm_stream_t stream)
{
  note(stream);
  return fixture_usual_hip()->StreamSynchronize(stream);
}

static int spy_on_query(hipmm_stream_t stream)
{
  note(stream);
  return fixture_usual_hip()->StreamQuery(stream);
}

static int spy_on_id(hipmm_stream_t stream, unsigned long long *id)
{
  note(stream);
  return fixture_usual_hip()->StreamGetId(stream, id);
}

static int spy_on_capturing(hipmm_stream_t stream, int *status)
{
  note(stream);
  return fixture_usual_hip()->StreamIsCapturing(stream, status);
}

static int spy_on_prefetch(const void *ptr, size_t bytes, int device, hipmm_stream_t stream)
{
  note(stream);
  return fixture_usual_hip()->MemPrefetchAsync(ptr, bytes, device, stream);
}

struct hipmm_hip *watch_begin(void)
{
  struct hipmm_hip *table = fixture_lend_hip();
  table->EventRecord = spy_on_record;
  table->StreamWaitEvent = spy_on_wait;
  table->StreamSynchronize = spy_on_synchronize;
  table->StreamQuery = spy_on_query;
  if (table->StreamGetId) table->StreamGetId = spy_on_id;
  if (table->StreamIsCapturing) table->StreamIsCapturing = spy_on_capturing;
  if (table->MemPrefetchAsync) table->MemPrefetchAsync = spy_on_prefetch;
  atomic_store(&watched, NULL);
  atomic_store(&count, 0);
  return table;
}

void watch_stream(hipmm_stream_t stream)
{
  atomic_store(&watched, stream);
}

unsigned watch_count(void)
{
  return atomic_load(&count);
}
