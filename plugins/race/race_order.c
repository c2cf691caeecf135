/* SPDX-License-Identifier: MIT */
/* race_order.c: see race_order.h. Called by race_detector.c with its lock held.
 *
 * The number of a destroyed stream is used again once the host has waited for its work: the ticks go on from there, so
 * that every older point stays ordered before everything. */
#include "race_order.h"

#include <stdlib.h>
#include <string.h>

/* An event keeps the clock of its stream at the last record. */
struct race_event {
  struct key_tree_node by_key;
  struct race_clock clock;
};

enum { DEVICES_MOST = 64 };

static struct key_tree_node *lines_by_key, *events_by_key;
static struct race_line **lines; /* by number */
static uint32_t n_lines;
static const struct race_line *legacies[DEVICES_MOST]; /* the default streams of the devices */
static struct race_clock host;
static uint64_t host_version = 1;
static bool is_lost;

bool race_order_is_lost(void)
{
  return is_lost;
}

/* ---- Clocks ---- */

static uint64_t race_clock_tick(const struct race_clock *clock, uint32_t number)
{
  return number < clock->count ? clock->ticks[number] : 0;
}

static bool race_clock_make_room(struct race_clock *clock, uint32_t count)
{
  enum { STEP = 8 };
  if (count <= clock->count) return true;
  count = (count + STEP - 1) / STEP * STEP;
  uint64_t *ticks = realloc(clock->ticks, count * sizeof *ticks);
  if (!ticks) {
    is_lost = true;
    return false;
  }
  memset(ticks + clock->count, 0, (count - clock->count) * sizeof *ticks);
  clock->ticks = ticks;
  clock->count = count;
  return true;
}

/* Whether the clock has changed. */
static bool race_clock_raise(struct race_clock *clock, uint32_t number, uint64_t tick)
{
  if (race_clock_tick(clock, number) >= tick || !race_clock_make_room(clock, number + 1)) return false;
  clock->ticks[number] = tick;
  return true;
}

static bool race_clock_join(struct race_clock *clock, const struct race_clock *other)
{
  bool is_changed = false;
  if (!race_clock_make_room(clock, other->count)) return false;
  for (uint32_t i = 0; i < other->count; i++) {
    if (other->ticks[i] <= clock->ticks[i]) continue;
    clock->ticks[i] = other->ticks[i];
    is_changed = true;
  }
  return is_changed;
}

/* ---- Streams ---- */

static struct race_line *race_order_find_line(const void *key)
{
  return (struct race_line *)key_tree_at(lines_by_key, (uintptr_t)key);
}

static const struct race_line *race_order_legacy(int device)
{
  return device >= 0 && device < DEVICES_MOST ? legacies[device] : NULL;
}

/* A line that no work can be unordered with any more. */
static struct race_line *race_order_reuse_line(void)
{
  for (uint32_t i = 0; i < n_lines; i++)
    if (lines[i]->is_gone && race_clock_tick(&host, i) >= lines[i]->tick) return lines[i];
  return NULL;
}

static struct race_line *race_order_add_line(void)
{
  struct race_line **all = realloc(lines, (n_lines + 1) * sizeof *lines), *line = all ? calloc(1, sizeof *line) : NULL;
  if (all) lines = all;
  if (!line) return NULL;
  line->number = n_lines;
  lines[n_lines++] = line;
  return line;
}

struct race_line *race_order_line(const struct race_stream *stream)
{
  struct race_line *line = race_order_find_line(stream->key);
  if (line) return line;
  line = race_order_reuse_line();
  if (!line) line = race_order_add_line();
  if (!line) {
    is_lost = true;
    return NULL;
  }
  line->by_key = (struct key_tree_node){.major = (uintptr_t)stream->key};
  line->device = stream->device;
  line->kind = stream->kind;
  line->is_gone = false;
  line->host_seen = 0;
  if (line->clock.count) memset(line->clock.ticks, 0, line->clock.count * sizeof *line->clock.ticks);
  key_tree_insert(&lines_by_key, &line->by_key);
  if (line->kind == RACE_STREAM_LEGACY && line->device < DEVICES_MOST) legacies[line->device] = line;
  return line;
}

void race_order_end_stream(const void *key)
{
  struct race_line *line = race_order_find_line(key);
  if (!line) return;
  key_tree_remove(&lines_by_key, &line->by_key);
  line->is_gone = true;
  if (race_order_legacy(line->device) == line) legacies[line->device] = NULL;
}

/* The next work of the line comes after all of the other's. */
static void race_order_follow(struct race_line *line, const struct race_line *other)
{
  if (race_clock_tick(&line->clock, other->number) >= other->tick) return;
  race_clock_join(&line->clock, &other->clock);
  line->is_ahead = true;
}

/* Joins what the next work of the stream comes after: what the host has waited for, and by the rules of the default
 * stream. */
static void race_order_reach(struct race_line *line)
{
  if (line->host_seen != host_version) race_clock_join(&line->clock, &host);
  line->host_seen = host_version;
  const struct race_line *legacy = line->kind == RACE_STREAM_BLOCKING ? race_order_legacy(line->device) : NULL;
  if (legacy) race_order_follow(line, legacy);
  for (uint32_t i = 0; i < n_lines && line->kind == RACE_STREAM_LEGACY; i++)
    if (lines[i]->kind == RACE_STREAM_BLOCKING && lines[i]->device == line->device) race_order_follow(line, lines[i]);
}

struct race_point race_order_advance(struct race_line *line)
{
  race_order_reach(line);
  race_clock_raise(&line->clock, line->number, ++line->tick);
  line->is_ahead = true;
  return (struct race_point){line->number, line->tick};
}

bool race_order_is_before(struct race_point point, const struct race_line *line)
{
  return race_clock_tick(&line->clock, point.stream) >= point.tick;
}

bool race_order_is_over(struct race_point point)
{
  return race_clock_tick(&host, point.stream) >= point.tick;
}

/* ---- Events ----
 *
 * A record and a wait are ticks of their stream, as work is: by the tick, the streams that follow it by the rules of the
 * default stream see that its clock has changed. */

static struct race_event *race_order_find_event(const void *event)
{
  return (struct race_event *)key_tree_at(events_by_key, (uintptr_t)event);
}

void race_order_record(struct race_line *line, const void *key)
{
  struct race_event *event = race_order_find_event(key);
  race_order_advance(line);
  if (!event) {
    event = calloc(1, sizeof *event);
    if (!event) {
      is_lost = true;
      return;
    }
    event->by_key = (struct key_tree_node){.major = (uintptr_t)key};
    key_tree_insert(&events_by_key, &event->by_key);
  }
  if (event->clock.count) memset(event->clock.ticks, 0, event->clock.count * sizeof *event->clock.ticks);
  race_clock_join(&event->clock, &line->clock);
}

void race_order_wait(struct race_line *line, const void *key)
{
  const struct race_event *event = race_order_find_event(key);
  race_order_advance(line);
  if (event) race_clock_join(&line->clock, &event->clock);
  for (uint32_t i = 0; !event && i < n_lines; i++) race_clock_raise(&line->clock, i, lines[i]->tick);
}

void race_order_end_event(const void *key)
{
  struct race_event *event = race_order_find_event(key);
  if (!event) return;
  key_tree_remove(&events_by_key, &event->by_key);
  free(event->clock.ticks);
  free(event);
}

/* ---- The host ---- */

void race_order_host_after_event(const void *key)
{
  const struct race_event *event = race_order_find_event(key);
  if (event && race_clock_join(&host, &event->clock)) host_version++;
}

void race_order_host_after_stream(struct race_line *line)
{
  if (line->kind == RACE_STREAM_LEGACY) race_order_reach(line); /* the host waits for the blocking streams too */
  if (line->is_ahead && race_clock_join(&host, &line->clock)) host_version++;
  line->is_ahead = false;
}

void race_order_host_after_device(int device)
{
  for (uint32_t i = 0; i < n_lines; i++)
    if (device < 0 || lines[i]->device == device) race_order_host_after_stream(lines[i]);
}
