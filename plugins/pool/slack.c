/* SPDX-License-Identifier: MIT */
/* slack.c: the room that is left, and what follows from it. */
#include "backing.h"

enum {
  PEAK_SHARE = 16,  /* auto: the slack is this part of the peak of live memory, */
  SMALL_SHARE = 2,  /* or, of a small pool, up to this part of it */
  SMALL_ROOM = 256, /* as long as that is no more than this part of the device's free memory, */
  ROOM_SHARE = 16,  /* and never more than this part of the room */
  CHUNK_SHARE = 4,  /* a chunk is up to this part of the slack */
  TIGHT_SHARE = 14, /* a power of two, see slack_chunk_limit() */
  MOST_USES = 256   /* of an answer of the device: other programs use it too */
};

static uint64_t slack_free_bytes(const struct slack *slack, const struct chunks *chunks)
{
  return sizes_headroom(slack->held_bytes + slack->device_bytes, chunks->held.bytes);
}

static uint64_t slack_lesser_of(uint64_t a, uint64_t b)
{
  return a < b ? a : b;
}

static uint64_t slack_room(const struct slack *slack, const struct chunks *chunks)
{
  return slack_lesser_of(sizes_headroom(chunks->held.maximum_bytes, chunks->held.bytes),
                         slack_free_bytes(slack, chunks));
}

/* What is idle in a large pool is missed first. */
static uint64_t slack_wanted(const struct slack *slack, const struct chunks *chunks)
{
  if (slack->wanted_bytes != SLACK_AUTO) return slack->wanted_bytes;
  uint64_t small = slack_lesser_of(slack->peak_bytes / SMALL_SHARE, slack_free_bytes(slack, chunks) / SMALL_ROOM);
  uint64_t large = slack->peak_bytes / PEAK_SHARE;
  return small > large ? small : large;
}

static uint64_t slack_bytes(const struct slack *slack, const struct chunks *chunks)
{
  return slack_lesser_of(slack_wanted(slack, chunks), slack_room(slack, chunks) / ROOM_SHARE);
}

/* An answer is old once the pool has used a part of the memory, or has been served with it for a while. */
void slack_update(struct slack *slack, const struct chunks *chunks, uint64_t live_bytes)
{
  size_t free_bytes, total_bytes;
  if (live_bytes > slack->peak_bytes) slack->peak_bytes = live_bytes;
  uint64_t used = sizes_headroom(chunks->held.bytes, slack->held_bytes);
  if (slack->n_uses && slack->n_uses++ < MOST_USES && used <= slack->device_bytes / ROOM_SHARE) return;
  slack->n_uses = 1;
  slack->held_bytes = chunks->held.bytes;
  slack->device_bytes = chunks_query_device(chunks, &free_bytes, &total_bytes) ? free_bytes : 0;
}

uint64_t slack_growth(const struct slack *slack, const struct chunks *chunks)
{
  uint64_t growth = sizes_headroom(slack->peak_bytes + slack_bytes(slack, chunks), chunks->held.bytes);
  return slack_lesser_of(growth, slack_room(slack, chunks));
}

bool slack_is_low_on_memory(const struct slack *slack, const struct chunks *chunks, uint64_t bytes)
{
  bool is_limited =
      slack->wanted_bytes != SLACK_AUTO || slack_room(slack, chunks) / ROOM_SHARE <= slack->peak_bytes / SMALL_SHARE;
  return is_limited && slack_growth(slack, chunks) < 4 * bytes;
}

/* A block that ends within a chunk keeps all of the chunk where it is. So what decides how much of the memory can be used
 * in the end is the size of the chunks that were made long before, when nobody knew how much would be needed: the limit is
 * the room, times the room over what is held, over 2^TIGHT_SHARE. A maximum is meant to be reached, so half of the room
 * below it counts. */
uint64_t slack_chunk_limit(const struct slack *slack, const struct chunks *chunks)
{
  uint64_t allowed = sizes_headroom(chunks->held.maximum_bytes, chunks->held.bytes) / 2;
  uint64_t room = slack_lesser_of(allowed, slack_free_bytes(slack, chunks)) / chunks->addresses.granule_bytes;
  uint64_t most = slack_bytes(slack, chunks) / CHUNK_SHARE / chunks->addresses.granule_bytes;
  if (room >> 32) room = UINT32_MAX;
  uint64_t tight = room * room / (chunks->held.bytes / chunks->addresses.granule_bytes + 1) >> TIGHT_SHARE;
  uint64_t granules = slack_lesser_of(tight, most);
  return granules ? granules : 1;
}
