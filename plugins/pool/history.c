/* SPDX-License-Identifier: MIT */
/* history.c: see history.h. */
#include "history.h"

enum { HISTORY_BITS = 14 };

static const size_t items_bytes = sizeof(struct past) << HISTORY_BITS;

static struct past *past_of(const struct history *history, uint64_t bytes)
{
  uint64_t key = bytes * 0xC2B2AE3D27D4EB4Full ^ history->moment;
  return &history->items[key * 0x9E3779B97F4A7C15ull >> (64 - HISTORY_BITS)];
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

uint64_t history_find(struct history *history, uint64_t bytes, uint64_t live_bytes, uint64_t lately)
{
  history->moment = (live_bytes ^ lately * 0xD6E8FEB86659FD93ull) + (history->age << 48);
  const struct past *past = past_of(history, bytes);
  return past->bytes == bytes && past->moment == history->moment ? past->address : 0;
}

void history_note(struct history *history, uint64_t bytes, uint64_t address)
{
  *past_of(history, bytes) = (struct past){bytes, history->moment, address};
}

void history_forget(struct history *history)
{
  history->age++;
}

uint64_t history_metadata_bytes(void)
{
  return items_bytes;
}
