/* SPDX-License-Identifier: MIT */
/* player.c: see player.h. The measured loop reads an event, makes the call and stores a pointer, nothing else: the reader
 * has matched allocations and frees, and player_tally() counts afterwards. */
#include "player.h"

#include "../cmd.h"

#include <stdlib.h>
#include <string.h>

/* Events between two looks at the progress; and at failures, where a pass stops at one. */
enum { PLAYER_BATCH = 1 << 15, PLAYER_SHORT_BATCH = 1 << 10 };

/* The slot value of a block that could not be allocated. */
static char player_nothing;

/* Lists the allocations that the trace never frees. False: out of memory. */
static bool player_find_leftovers(struct player *player)
{
  const struct trace *trace = player->trace;
  size_t *owners = calloc(trace->n_slots, sizeof *owners); /* the event that has the slot now, plus 1 */
  player->leftovers = calloc(trace->n_slots, sizeof *player->leftovers);
  for (size_t i = 0; owners && i < trace->n_events; i++)
    owners[trace->events[i].slot] = trace->events[i].is_free ? 0 : i + 1;
  for (size_t i = 0; owners && player->leftovers && i < trace->n_events; i++)
    if (trace->events[i].slot != TRACE_NULL_SLOT && owners[trace->events[i].slot] == i + 1)
      player->leftovers[player->n_leftovers++] = i;
  bool good = owners && player->leftovers;
  free(owners);
  return good;
}

bool player_start(struct player *player, const struct trace *trace, struct hipmm_resource *resource,
                  hipmm_stream_t *streams)
{
  *player = (struct player){.trace = trace, .resource = resource, .streams = streams, .clock = CLOCK_MONOTONIC};
  player->live = calloc(trace->n_slots, sizeof *player->live);
  player->failed = calloc(trace->n_events + 1, sizeof *player->failed);
  player->missing = calloc(trace->n_slots, sizeof *player->missing);
  if (player->live && player->failed && player->missing && player_find_leftovers(player)) return true;
  player_end(player);
  return false;
}

void player_end(struct player *player)
{
  free(player->live);
  free(player->failed);
  free(player->missing);
  free(player->leftovers);
  free(player->failure_reason);
  *player = (struct player){0};
}

static void player_count_failure(struct player *player, size_t index)
{
  if (!player->failure_reason) {
    player->failure_line = player->trace->lines[index];
    player->failure_reason = strdup(hipmm_last_error_message());
  }
  player->failures += !player->failed[index];
  player->failed[index] = 1;
}

static void player_allocate(struct player *player, const struct trace_event *event, size_t index)
{
  void *ptr = &player_nothing;
  if (hipmm_allocate(player->resource, event->bytes, player->streams[event->stream], &ptr) != HIPMM_OK)
    player_count_failure(player, index);
  player->live[event->slot] = ptr;
}

static void player_free(struct player *player, const struct trace_event *event, size_t index)
{
  void *ptr = player->live[event->slot];
  if (ptr == &player_nothing) {
    player->skipped++;
    return;
  }
  if (hipmm_deallocate(player->resource, ptr, event->bytes, player->streams[event->stream]) != HIPMM_OK)
    player_count_failure(player, index);
}

static void player_batch(struct player *player, size_t first, size_t end)
{
  const struct trace_event *events = player->trace->events;
  for (size_t i = first; i < end; i++) {
    if (events[i].is_free)
      player_free(player, &events[i], i);
    else
      player_allocate(player, &events[i], i);
  }
}

static void player_clean(struct player *player)
{
  for (size_t i = 0; i < player->n_leftovers; i++) {
    size_t index = player->leftovers[i];
    player_free(player, &player->trace->events[index], index);
  }
}

/* Frees the blocks that are live after so many events. They stay where there is no memory to find them. */
static void player_stop(struct player *player, size_t n_events)
{
  const struct trace_event *events = player->trace->events;
  size_t *owners = calloc(player->trace->n_slots, sizeof *owners); /* the event that has the slot, plus 1 */
  for (size_t i = 0; owners && i < n_events; i++) owners[events[i].slot] = events[i].is_free ? 0 : i + 1;
  for (uint32_t slot = 0; owners && slot < player->trace->n_slots; slot++)
    if (slot != TRACE_NULL_SLOT && owners[slot]) player_free(player, &events[owners[slot] - 1], owners[slot] - 1);
  free(owners);
}

double player_play(struct player *player)
{
  size_t n = player->trace->n_events, batch = player->stops_at_failure ? PLAYER_SHORT_BATCH : PLAYER_BATCH;
  int64_t spent_ns = 0;
  player->skipped = 0;
  for (size_t first = 0; first < n; first += batch) {
    size_t end = n - first < batch ? n : first + batch;
    int64_t start_ns = cmd_clock_ns(player->clock);
    player_batch(player, first, end);
    spent_ns += cmd_clock_ns(player->clock) - start_ns;
    if (player->watcher.notify) player->watcher.notify(player->watcher.closure, end, n);
    if (player->stops_at_failure && player->failures) {
      player_stop(player, end);
      return 0;
    }
  }
  size_t operations = n - player->skipped;
  player_clean(player);
  return operations ? (double)spent_ns / (double)operations : 0;
}

void player_tally(struct player *player, uint64_t *peak_bytes_out, uint64_t *live_at_end_out)
{
  uint64_t bytes = 0, peak = 0, live = 0;
  for (size_t i = 0; i < player->trace->n_events; i++) {
    const struct trace_event *event = &player->trace->events[i];
    if (!event->is_free) player->missing[event->slot] = player->failed[i];
    if (player->missing[event->slot] || event->slot == TRACE_NULL_SLOT) continue;
    bytes = event->is_free ? bytes - event->bytes : bytes + event->bytes;
    live = event->is_free ? live - 1 : live + 1;
    if (bytes > peak) peak = bytes;
  }
  *peak_bytes_out = peak;
  *live_at_end_out = live;
}
