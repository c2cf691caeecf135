/* SPDX-License-Identifier: MIT */
/* slack.c: the room that is left, and what follows from it. */
#include "backing.h"

enum {
  PEAK_SHARE = 16,    /* auto: the slack is this part of the peak of live memory, */
  SMALL_SHARE = 2,    /* or, of a small pool, up to this part of it */
  SMALL_ROOM = 256,   /* as long as that is no more than this part of the device's free memory, */
  ROOM_SHARE = 16,    /* and never more than this part of the room */
  CHUNK_SHARE = 4,    /* a chunk is up to this part of the slack */
  TIGHT_SHARE = 14,   /* a power of two, see slack_chunk_limit() */
  MOST_USES = 256,    /* of an answer of the device: other programs use it too */
  SEGMENTS_SHARE = 8, /* auto, of segments: the slack is this part of the peak, */
  VAIN_SHARE = 8,     /* and this part of what was released in vain, or of the peak if that is less; */
  STEP_SHARE = 2      /* a segment has at least this part of the slack */
};

bool slack_query_device(const struct hipmm_services *services, size_t *free_bytes_out, size_t *total_bytes_out)
{
  int previous = services->enter_device(services);
  int code = services->hip->MemGetInfo(free_bytes_out, total_bytes_out);
  if (code) services->hip->GetLastError();
  services->leave_device(services, previous);
  return !code;
}

/* Of the host's memory, nothing is known. */
static uint64_t slack_free_bytes(const struct slack *slack)
{
  if (!slack->is_of_device) return UINT64_MAX;
  return sizes_headroom(slack->held_bytes + slack->device_bytes, slack->held->bytes);
}

static uint64_t slack_lesser_of(uint64_t a, uint64_t b)
{
  return a < b ? a : b;
}

uint64_t slack_room(const struct slack *slack)
{
  return slack_lesser_of(sizes_headroom(slack->held->maximum_bytes, slack->held->bytes), slack_free_bytes(slack));
}

/* What is idle in a large pool is missed first. */
static uint64_t slack_wanted(const struct slack *slack)
{
  if (slack->wanted_bytes != SLACK_AUTO) return slack->wanted_bytes;
  if (!slack->moves)
    return slack->peak_bytes / SEGMENTS_SHARE + slack_lesser_of(slack->vain_bytes, slack->peak_bytes) / VAIN_SHARE;
  uint64_t small = slack_lesser_of(slack->peak_bytes / SMALL_SHARE, slack_free_bytes(slack) / SMALL_ROOM);
  uint64_t large = slack->peak_bytes / PEAK_SHARE;
  return small > large ? small : large;
}

static uint64_t slack_bytes(const struct slack *slack)
{
  return slack_lesser_of(slack_wanted(slack), slack_room(slack) / ROOM_SHARE);
}

/* An answer is old once the pool has used a part of the memory, or has been served with it for a while. */
void slack_update(struct slack *slack, uint64_t live_bytes)
{
  size_t free_bytes, total_bytes;
  if (live_bytes > slack->peak_bytes) slack->peak_bytes = live_bytes;
  uint64_t used = sizes_headroom(slack->held->bytes, slack->held_bytes);
  if (slack->n_uses && slack->n_uses++ < MOST_USES && used <= slack->device_bytes / ROOM_SHARE) return;
  slack->n_uses = 1;
  slack->held_bytes = slack->held->bytes;
  bool is_known = slack->is_of_device && slack_query_device(slack->services, &free_bytes, &total_bytes);
  slack->device_bytes = is_known ? free_bytes : 0;
}

uint64_t slack_most_held(const struct slack *slack)
{
  return slack->peak_bytes + slack_bytes(slack);
}

uint64_t slack_growth(const struct slack *slack)
{
  uint64_t growth = sizes_headroom(slack_most_held(slack), slack->held->bytes);
  return slack_lesser_of(growth, slack_room(slack));
}

bool slack_is_low_on_memory(const struct slack *slack, uint64_t bytes)
{
  bool is_limited =
      slack->wanted_bytes != SLACK_AUTO || slack_room(slack) / ROOM_SHARE <= slack->peak_bytes / SMALL_SHARE;
  return is_limited && slack_growth(slack) < 4 * bytes;
}

/* A block that ends within a chunk keeps all of the chunk where it is. So what decides how much of the memory can be used
 * in the end is the size of the chunks that were made long before, when nobody knew how much would be needed: the limit is
 * the room, times the room over what is held, over 2^TIGHT_SHARE. A maximum is meant to be reached, so half of the room
 * below it counts. */
uint64_t slack_chunk_limit(const struct slack *slack)
{
  uint64_t allowed = sizes_headroom(slack->held->maximum_bytes, slack->held->bytes) / 2;
  uint64_t room = slack_lesser_of(allowed, slack_free_bytes(slack)) / slack->held->least_bytes;
  uint64_t most = slack_bytes(slack) / CHUNK_SHARE / slack->held->least_bytes;
  if (room >> 32) room = UINT32_MAX;
  uint64_t tight = room * room / (slack->held->bytes / slack->held->least_bytes + 1) >> TIGHT_SHARE;
  uint64_t granules = slack_lesser_of(tight, most);
  return granules ? granules : 1;
}

/* ---- Segments ---- */

void slack_note_released(struct slack *slack, uint64_t bytes)
{
  slack->released[slack->n_released++ % SLACK_RELEASES] = bytes;
}

void slack_note_added(struct slack *slack, uint64_t bytes)
{
  for (unsigned i = 0; i < SLACK_RELEASES; i++) {
    if (bytes > slack->released[i] || bytes <= slack->released[i] / 2) continue;
    slack->released[i] = 0;
    slack->vain_bytes += bytes;
    return;
  }
}

uint64_t slack_step(const struct slack *slack)
{
  return slack_lesser_of(slack_bytes(slack) / STEP_SHARE, SIZES_MOST_STEP_BYTES);
}
