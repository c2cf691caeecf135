/* SPDX-License-Identifier: MIT */
/* uses.c: see monotonic.h. */
#include "monotonic.h"

static const size_t epochs_bytes = MAX_STREAMS * sizeof(uint64_t);

/* ---- Order ---- */

/* Whether the stream has completed the work that others must wait for; it leaves `earlier` then. */
static bool uses_has_completed(struct uses *uses, uint32_t stream)
{
  struct streams *streams = &uses->streams;
  stream_poll(streams, stream);
  if (stream_of(streams, stream)->completed < uses->epochs[stream]) return false;
  stream_set_remove(&uses->earlier, stream);
  return true;
}

enum hipmm_status uses_order(struct uses *uses, uint32_t stream)
{
  struct streams *streams = &uses->streams;
  if (stream_set_has(&uses->ordered, stream)) return HIPMM_OK;
  bool has_waited = false;
  for (uint32_t other = 0; (other = stream_set_next(&uses->earlier, other)) < MAX_STREAMS; other++) {
    if (other == stream || uses_has_completed(uses, other)) continue;
    has_waited = true;
    if (stream_wait(streams, stream, other, uses->epochs[other])) continue;
    enum hipmm_status status = uses_synchronize(uses, stream); /* its handle may be gone */
    if (status) return status;
    break;
  }
  stream_set_add(&uses->ordered, stream);
  /* The waits count as a free: the event that covers the stream's last free must come after them. */
  if (has_waited && streams->record == RECORD_ON_FREE) stream_record_free(streams, stream);
  return HIPMM_OK;
}

/* Other streams must wait for the work of this stream up to `epoch`. */
static void uses_add_earlier(struct uses *uses, uint32_t stream, uint64_t epoch)
{
  stream_set_add(&uses->earlier, stream);
  uses->epochs[stream] = epoch;
}

void uses_note_chunk(struct uses *uses, uint32_t stream)
{
  uses_add_earlier(uses, stream, stream_record_free(&uses->streams, stream));
  stream_set_clear(&uses->ordered);
  stream_set_add(&uses->ordered, stream);
}

void uses_note_free(struct uses *uses, uint32_t stream)
{
  struct streams *streams = &uses->streams;
  if (streams->record == RECORD_ON_FREE || !stream_set_has(&uses->freed, stream)) stream_record_free(streams, stream);
  stream_set_add(&uses->freed, stream);
}

/* Whether a stream that freed is ordered after all earlier ones: waiting for it is then enough. */
static bool uses_earlier_are_covered(const struct uses *uses)
{
  for (uint32_t stream = 0; (stream = stream_set_next(&uses->freed, stream)) < MAX_STREAMS; stream++)
    if (stream_set_has(&uses->ordered, stream)) return true;
  return false;
}

/* The frees since the last rewind get their epochs here, where another stream can depend on them. */
void uses_rewind(struct uses *uses)
{
  struct streams *streams = &uses->streams;
  if (uses_earlier_are_covered(uses)) stream_set_clear(&uses->earlier);
  for (uint32_t stream = 0; (stream = stream_set_next(&uses->freed, stream)) < MAX_STREAMS; stream++) {
    bool is_counted = streams->record == RECORD_ON_FREE;
    uses_add_earlier(uses, stream,
                     is_counted ? stream_of(streams, stream)->frees : stream_record_free(streams, stream));
  }
  stream_set_clear(&uses->freed);
  stream_set_clear(&uses->ordered);
}

enum hipmm_status uses_synchronize(struct uses *uses, uint32_t user)
{
  enum hipmm_status status = streams_wait_for_device(&uses->streams, user);
  if (status) return status;
  streams_complete(&uses->streams);
  streams_forget_gone(&uses->streams);
  stream_set_clear(&uses->freed);
  stream_set_clear(&uses->earlier);
  return HIPMM_OK;
}

/* ---- Streams ---- */

/* The work of the stream has completed. */
static void uses_forget(struct uses *uses, uint32_t stream)
{
  stream_set_remove(&uses->freed, stream);
  stream_set_remove(&uses->earlier, stream);
  stream_set_remove(&uses->ordered, stream);
  stream_forget(&uses->streams, stream);
}

/* If the table of streams is full, waits for the device and forgets all streams. */
enum hipmm_status uses_enter(struct uses *uses, hipmm_stream_t handle, uint32_t *id_out)
{
  struct streams *streams = &uses->streams;
  enum hipmm_status status = streams_enter(streams, handle, id_out);
  if (status || *id_out) return status;
  status = uses_synchronize(uses, STREAM_READY);
  if (status) return status;
  for (uint32_t stream = STREAM_FIRST; stream < streams->count; stream++) uses_forget(uses, stream);
  return streams_enter(streams, handle, id_out);
}

void uses_retire(struct uses *uses, hipmm_stream_t handle)
{
  uint32_t stream = streams_known_id(&uses->streams, handle);
  if (!stream) return;
  if (!streams_wait_for_handle(uses->services, handle) && uses_synchronize(uses, stream)) {
    stream_lose(&uses->streams, stream);
    return;
  }
  stream_complete(&uses->streams, stream);
  uses_forget(uses, stream);
}

void uses_retain(struct uses *uses, hipmm_stream_t handle)
{
  uint32_t stream;
  if (!uses_enter(uses, handle, &stream)) stream_retain(&uses->streams, stream);
}

uint64_t uses_metadata_bytes(const struct uses *uses)
{
  return uses->streams.count * (sizeof(struct stream) + sizeof *uses->epochs);
}

/* ---- Life ---- */

bool uses_open(struct uses *uses, const struct hipmm_services *services, enum record record)
{
  *uses = (struct uses){.services = services};
  bool opened = streams_open(&uses->streams, services, record);
  uses->epochs = services->host_allocate(services, epochs_bytes);
  return opened && uses->epochs;
}

void uses_close(struct uses *uses)
{
  streams_close(&uses->streams);
  uses->services->host_free(uses->services, uses->epochs, epochs_bytes);
}
