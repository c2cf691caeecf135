/* SPDX-License-Identifier: MIT */
/* tiers.c: see spilling.h. */
#include "spilling.h"

bool tiers_may_be_pinned(const struct spilling *spilling, uint64_t bytes)
{
  return spilling->options->pinned && bytes <= spilling->options->pinned_limit;
}

enum tier tiers_find_room(const struct spilling *spilling, const struct movable *movable, const bool *is_closed)
{
  const struct spilling_options *options = spilling->options;
  uint64_t bytes = movable->bytes;
  if (movable->tier == TIER_DEVICE && !is_closed[TIER_PINNED] && tiers_may_be_pinned(spilling, bytes) &&
      spilling->bytes[TIER_PINNED] <= options->pinned_limit - bytes)
    return TIER_PINNED;
  bool is_good = !is_closed[TIER_FILE] && spill_file_has_room(&spilling->file, bytes, options->file_limit);
  return is_good ? TIER_FILE : TIER_NONE;
}

void tiers_take_room(struct spilling *spilling, struct movable *movable, enum tier tier)
{
  if (tier == TIER_FILE) spill_file_take_room(&spilling->file, movable);
  spilling->bytes[tier] += movable->bytes;
}

void tiers_leave(struct spilling *spilling, struct movable *movable, enum tier tier)
{
  spilling->bytes[tier] -= movable->bytes;
  if (tier == TIER_FILE) spill_file_leave(&spilling->file, movable);
}

/* No later call could try again, so a call that fails is repeated once. */
void tiers_drop(const struct spilling *spilling, struct hipmm_resource *resource, void *ptr, size_t bytes,
                hipmm_stream_t stream)
{
  if (hipmm_upstream_deallocate(resource, ptr, bytes, HIPMM_ALIGNMENT, stream) &&
      hipmm_upstream_deallocate(resource, ptr, bytes, HIPMM_ALIGNMENT, stream))
    spilling->services->log(spilling->services, HIPMM_LOG_ERROR, "%p could not be freed: it is lost", ptr);
}

/* Waits until the copy is over, whatever fails: the memory of both sides may go then. */
static enum hipmm_status tiers_copy_to_pinned(const struct spilling *spilling, const struct movable *movable, void *to)
{
  const struct hipmm_services *services = spilling->services;
  const struct hipmm_hip *hip = services->hip;
  const char *call = "hipStreamWaitEvent";
  int code = hip->StreamWaitEvent(spilling->stream, movable->last_use, 0);
  if (!code) {
    call = "hipMemcpyAsync";
    code = hip->MemcpyAsync(to, movable->memory, movable->bytes, HIPMM_HIP_MEMCPY_DEFAULT, spilling->stream);
  }
  int end = hip->StreamSynchronize(spilling->stream);
  if (end) hip->StreamSynchronize(spilling->stream);
  if (!code && end) {
    call = "hipStreamSynchronize";
    code = end;
  }
  return code ? services->refuse_hip(services, call, code, 0) : HIPMM_OK;
}

/* The copy is over, so device memory is freed on the stream that wants it, which can have it at once. */
bool tiers_copy_out(struct spilling *spilling, struct movable *movable, enum tier to, hipmm_stream_t stream)
{
  struct hipmm_resource *pinned = spilling->options->pinned;
  bool was_pinned = movable->tier == TIER_PINNED;
  void *copy = NULL;
  enum hipmm_status status = HIPMM_OK;
  if (to == TIER_PINNED)
    status = hipmm_upstream_allocate(pinned, movable->bytes, HIPMM_ALIGNMENT, spilling->stream, &copy);
  if (!status)
    status = to == TIER_PINNED ? tiers_copy_to_pinned(spilling, movable, copy) : spill_file_write(spilling, movable);
  if (!status)
    status = hipmm_upstream_deallocate(was_pinned ? pinned : spilling->upstream, movable->memory, movable->bytes,
                                       HIPMM_ALIGNMENT, was_pinned ? spilling->stream : stream);
  if (!status)
    movable->memory = copy;
  else if (copy)
    tiers_drop(spilling, pinned, copy, movable->bytes, spilling->stream);
  return !status;
}

/* The event lets other streams wait for the memory, and for what was copied on `stream`. */
enum hipmm_status tiers_copy_in(struct spilling *spilling, struct movable *movable, void *memory, hipmm_stream_t stream)
{
  const struct hipmm_services *services = spilling->services;
  const struct hipmm_hip *hip = services->hip;
  int code = movable->tier == TIER_PINNED
                 ? hip->MemcpyAsync(memory, movable->memory, movable->bytes, HIPMM_HIP_MEMCPY_DEFAULT, stream)
                 : HIPMM_HIP_SUCCESS;
  if (code) return services->refuse_hip(services, "hipMemcpyAsync", code, movable->bytes);
  code = hip->EventRecord(movable->last_use, stream);
  if (code) return services->refuse_hip(services, "hipEventRecord", code, 0);
  if (movable->tier == TIER_FILE) return spill_file_read(spilling, movable, memory);
  if (movable->tier == TIER_NONE) return HIPMM_OK;
  return hipmm_upstream_deallocate(spilling->options->pinned, movable->memory, movable->bytes, HIPMM_ALIGNMENT, stream);
}

enum hipmm_status tiers_free(struct spilling *spilling, const struct movable *movable)
{
  const struct hipmm_services *services = spilling->services;
  if (!movable->memory) return HIPMM_OK;
  int code =
      movable->was_used ? services->hip->StreamWaitEvent(spilling->frees, movable->last_use, 0) : HIPMM_HIP_SUCCESS;
  if (code) return services->refuse_hip(services, "hipStreamWaitEvent", code, 0);
  return hipmm_upstream_deallocate(movable->tier == TIER_PINNED ? spilling->options->pinned : spilling->upstream,
                                   movable->memory, movable->bytes, HIPMM_ALIGNMENT, spilling->frees);
}
