/* SPDX-License-Identifier: MIT */
/* history.c: see history.h. */
#include "history.h"

#include <string.h>

enum { SET_BITS = 11, SET_ITEMS = 8 };

static const size_t items_bytes = sizeof(struct past) * SET_ITEMS << SET_BITS;

/* Its items stand in the order of their last notes, the last first. */
static struct past *set_of(const struct history *history, uint64_t bytes)
{
  uint64_t key = bytes * 0xC2B2AE3D27D4EB4Full ^ history->moment;
  return &history->items[SET_ITEMS * (key * 0x9E3779B97F4A7C15ull >> (64 - SET_BITS))];
}

static bool is_of(const struct past *past, const struct history *history, uint64_t bytes)
{
  return past->bytes == bytes && past->moment == history->moment;
}

/* What is known of the request, or the oldest in its set. */
static struct past *past_of(const struct history *history, struct past *set, uint64_t bytes)
{
  struct past *past = set;
  while (past < set + SET_ITEMS - 1 && !is_of(past, history, bytes)) past++;
  return past;
}

bool history_open(struct history *history, const struct hipmm_services *services)
{
  *history = (struct history){.items = services->host_allocate(services, items_bytes)};
  return history->items != NULL;
}

void history_close(struct history *history, const struct hipmm_services *services)
{
  services->host_free(services, history->items, items_bytes);
}

const uint64_t *history_find(struct history *history, uint64_t bytes, uint64_t live_bytes, uint64_t lately)
{
  history->moment = (live_bytes ^ lately * 0xD6E8FEB86659FD93ull) + (history->age << 48);
  const struct past *past = past_of(history, set_of(history, bytes), bytes);
  return is_of(past, history, bytes) ? past->addresses : NULL;
}

void history_note(struct history *history, uint64_t bytes, uint64_t address)
{
  struct past *set = set_of(history, bytes), *past = past_of(history, set, bytes);
  struct past noted = {bytes, history->moment, {address}};
  if (is_of(past, history, bytes)) noted.addresses[1] = past->addresses[past->addresses[0] == address];
  memmove(set + 1, set, (size_t)(past - set) * sizeof *set);
  *set = noted;
}

void history_forget(struct history *history)
{
  history->age++;
}

uint64_t history_metadata_bytes(void)
{
  return items_bytes;
}
