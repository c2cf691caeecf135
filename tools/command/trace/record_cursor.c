/* SPDX-License-Identifier: MIT */
/* record_cursor.c: see record_cursor.h. */
#include "record_cursor.h"
#include "../array.h"

#include <limits.h>

enum { RECORD_MOST_STACKS = 1 << 24 };

static bool record_cursor_get_bytes(struct record_cursor *cursor, void *out, size_t bytes)
{
  if ((size_t)(cursor->end - cursor->at) < bytes) return false;
  memcpy(out, cursor->at, bytes);
  cursor->at += bytes;
  return true;
}

static bool record_cursor_get_number(struct record_cursor *cursor, unsigned code, uint64_t *number_out)
{
  unsigned char bytes[8] = {0};
  unsigned length = record_length(code & 7);
  if (!record_cursor_get_bytes(cursor, bytes, length)) return false;
  *number_out = 0;
  for (unsigned i = 0; i < length; i++) *number_out |= (uint64_t)bytes[i] << 8 * i;
  return true;
}

static bool record_cursor_get_stream(struct record_cursor *cursor)
{
  unsigned char index;
  if (!record_cursor_get_bytes(cursor, &index, 1) || index >= 2 * RECORD_STREAMS) return false;
  uint64_t *stream = &cursor->context.streams[index % RECORD_STREAMS];
  if (index >= RECORD_STREAMS && !record_cursor_get_number(cursor, 7, stream)) return false;
  cursor->context.stream = *stream;
  return true;
}

static bool record_cursor_get_event(struct record_cursor *cursor, unsigned head)
{
  struct record_event *event = &cursor->event;
  uint64_t ticks, zigzag;
  if (!record_cursor_get_number(cursor, head >> RECORD_TIME_SHIFT, &ticks) ||
      !record_cursor_get_number(cursor, head >> RECORD_POINTER_SHIFT, &zigzag) ||
      !record_cursor_get_number(cursor, head >> RECORD_SIZE_SHIFT, &event->bytes))
    return false;
  if (head & RECORD_STREAM && !record_cursor_get_stream(cursor)) return false;
  event->stack = 0;
  if (head & RECORD_STACK && !record_cursor_get_bytes(cursor, &event->stack, sizeof event->stack)) return false;
  if (event->stack >= RECORD_MOST_STACKS) return false; /* tables are by number */
  uint64_t moved = zigzag >> 1 ^ -(zigzag & 1);
  cursor->context.ticks += ticks;
  cursor->context.ptr += head & RECORD_UNIT ? moved * 256 : moved;
  event->action = (enum record_action)(head >> RECORD_ACTION_SHIFT & 3);
  event->ticks = cursor->context.ticks;
  event->ptr = cursor->context.ptr;
  event->stream = cursor->context.stream;
  return true;
}

/* Keeps the text of a stack trace. False: damaged, or out of memory. */
static bool record_cursor_get_stack(struct record_cursor *cursor, struct record_stacks *stacks)
{
  uint32_t about[2]; /* number, length */
  if (!record_cursor_get_bytes(cursor, about, sizeof about) || about[0] >= RECORD_MOST_STACKS ||
      about[1] > (size_t)(cursor->end - cursor->at))
    return false;
  if (!array_grow_zeroed(&stacks->items, about[0], &stacks->n, sizeof *stacks->items)) return false;
  char **text = &stacks->items[about[0]];
  if (!*text) *text = strndup(cursor->at, about[1]); /* else read ahead, or after a rotation */
  cursor->at += about[1];
  return *text != NULL;
}

/* A byte and a text of that length, which becomes a number. */
static bool record_cursor_get_text(struct record_cursor *cursor, struct record_stacks *stacks, const char *end,
                                   uint32_t *number_out)
{
  unsigned char bytes;
  char text[UCHAR_MAX + 2] = "";
  *number_out = 0;
  if (!record_cursor_get_bytes(cursor, &bytes, 1) || !record_cursor_get_bytes(cursor, text, bytes)) return false;
  return !*text || stack_texts_add(&stacks->tags, strcat(text, end), number_out);
}

static bool record_cursor_get_held(struct record_cursor *cursor)
{
  struct record_held held;
  if (!record_cursor_get_bytes(cursor, &held, sizeof held)) return false;
  if (held.ticks < cursor->context.ticks) held.ticks = cursor->context.ticks;
  cursor->event = (struct record_event){
      .action = RECORD_HELD, .ticks = held.ticks, .ptr = held.device_free_bytes, .bytes = held.bytes};
  return true;
}

static bool record_cursor_get_place(struct record_cursor *cursor, struct record_stacks *stacks)
{
  struct record_place place;
  if (!record_cursor_get_bytes(cursor, &place, sizeof place) ||
      !record_cursor_get_text(cursor, stacks, "\n", &cursor->holder))
    return false;
  if (place.ticks < cursor->context.ticks) place.ticks = cursor->context.ticks;
  cursor->event = (struct record_event){
      .action = RECORD_PLACE, .ticks = place.ticks, .ptr = place.address, .bytes = (uint64_t)place.bytes};
  return true;
}

/* What follows the head of a meta event. False: damaged, or out of memory. */
static bool record_cursor_get_meta(struct record_cursor *cursor, enum record_meta meta, struct record_stacks *stacks)
{
  switch (meta) {
  case RECORD_META_THREAD: return record_cursor_get_bytes(cursor, &cursor->thread, sizeof cursor->thread);
  case RECORD_META_STACK: return record_cursor_get_stack(cursor, stacks);
  case RECORD_META_HELD: return record_cursor_get_held(cursor);
  case RECORD_META_TAGS: return record_cursor_get_text(cursor, stacks, "", &cursor->tags);
  case RECORD_META_PLACE: return record_cursor_get_place(cursor, stacks);
  }
  return false;
}

enum record_step record_cursor_next(struct record_cursor *cursor, struct record_stacks *stacks)
{
  while (cursor->end - cursor->at >= 2 && cursor->at[0]) {
    unsigned head = (unsigned char)cursor->at[0] | (unsigned)(unsigned char)cursor->at[1] << 8;
    enum record_meta meta = (enum record_meta)(head >> RECORD_ACTION_SHIFT & 7);
    cursor->at += 2;
    if (!(head & RECORD_META ? record_cursor_get_meta(cursor, meta, stacks) : record_cursor_get_event(cursor, head)))
      return RECORD_STEP_DAMAGED;
    if (!(head & RECORD_META) || meta == RECORD_META_HELD || meta == RECORD_META_PLACE) return RECORD_STEP_EVENT;
  }
  return RECORD_STEP_END;
}

void record_stacks_clear(struct record_stacks *stacks)
{
  for (size_t i = 0; i < stacks->n; i++) free(stacks->items[i]);
  free(stacks->items);
  stack_texts_clear(&stacks->tags);
  *stacks = (struct record_stacks){0};
}
