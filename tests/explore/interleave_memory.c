/* SPDX-License-Identifier: MIT */
/* interleave_memory.c: see interleave_memory.h. All tables are fixed, and a run forgets what the last one wrote by its number. */
#include "interleave_memory.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS = 1 << 15, PLACES = 1 << 16, MOST_STORES = 64, MOST_RANGES = 64, MOST_MADE = 256, WORD_BYTES = 8 };

/* A number for each byte of a word. */
typedef uint16_t bytes_of_word __attribute__((vector_size(2 * WORD_BYTES)));

/* The last access of each kind to each byte, as the clock of the thread; 0: none. */
struct word_seen {
  bytes_of_word clocks[INTERLEAVE_THREADS][INTERLEAVE_KINDS];
  uintptr_t at;
  unsigned run;
  const void *code[INTERLEAVE_THREADS]; /* of the last accesses */
};

struct store {
  volatile void *to;
  size_t bytes;
  uint64_t value;
  struct interleave_clock synced;
  bool is_change; /* a load by the other thread may come before it, a store to these bytes not */
};

struct ranges {
  struct {
    uintptr_t start, end;
  } items[MOST_RANGES];
  size_t n;
};

static struct word_seen words[WORDS];
static struct interleave_place places[PLACES];
static struct interleave_clock clocks[INTERLEAVE_THREADS];
static struct store stores[INTERLEAVE_THREADS][MOST_STORES];
static size_t n_stores[INTERLEAVE_THREADS], n_fenced[INTERLEAVE_THREADS];
static struct ranges shared, weak, freed;
static struct made {
  uintptr_t start, end;
  int thread;
  uint16_t clock;
} made[MOST_MADE]; /* in this run */
static size_t n_made;
static unsigned run;
static bool was_shared;

void interleave_memory_open(void)
{
  memset(places, 0, sizeof places);
  was_shared = false;
}

void interleave_memory_begin(void)
{
  run++;
  shared.n = weak.n = freed.n = n_made = 0;
  memset(n_stores, 0, sizeof n_stores);
  memset(n_fenced, 0, sizeof n_fenced);
  for (int i = 0; i < INTERLEAVE_THREADS; i++) clocks[i] = (struct interleave_clock){{i == 0, i == 1}};
}

/* ---- Places ---- */

static size_t interleave_memory_hash(uintptr_t at, size_t size)
{
  return (size_t)((uint64_t)at * 0x9E3779B97F4A7C15u >> 40) & (size - 1);
}

struct interleave_place *interleave_memory_place(const volatile void *at, int thread, bool writes)
{
  size_t i = interleave_memory_hash((uintptr_t)at, PLACES), tries = 0;
  for (; places[i].at && places[i].at != (uintptr_t)at; i = (i + 1) % PLACES)
    if (++tries == PLACES) abort();
  struct interleave_place *place = &places[i];
  unsigned use = 1u << thread | (writes ? 4u << thread : 0), others = 5u << (1 - thread);
  if (place->users & others && (place->users & use) != use) was_shared = true;
  place->at = (uintptr_t)at;
  place->users |= use;
  if (place->run != run) {
    place->run = run;
    place->synced = (struct interleave_clock){{0}};
    place->holder = 0;
  }
  return place;
}

bool interleave_memory_is_step(const struct interleave_place *place, int thread, bool writes)
{
  return place->users & (writes ? 5u : 4u) << (1 - thread);
}

bool interleave_memory_was_shared(void)
{
  bool was = was_shared;
  was_shared = false;
  return was;
}

/* ---- Order ---- */

void interleave_memory_acquire(int thread, const struct interleave_place *place)
{
  for (int i = 0; i < INTERLEAVE_THREADS; i++)
    if (clocks[thread].at[i] < place->synced.at[i]) clocks[thread].at[i] = place->synced.at[i];
}

void interleave_memory_release(int thread, struct interleave_place *place, bool goes_on)
{
  for (int i = 0; i < INTERLEAVE_THREADS; i++)
    if (!goes_on || place->synced.at[i] < clocks[thread].at[i]) place->synced.at[i] = clocks[thread].at[i];
  clocks[thread].at[thread]++;
}

static void interleave_memory_add_range(struct ranges *ranges, const void *start, size_t bytes)
{
  if (ranges->n == MOST_RANGES) abort();
  ranges->items[ranges->n].start = (uintptr_t)start;
  ranges->items[ranges->n++].end = (uintptr_t)start + bytes;
}

static bool interleave_memory_is_in(const struct ranges *ranges, const volatile void *at)
{
  for (size_t i = 0; i < ranges->n; i++)
    if ((uintptr_t)at >= ranges->items[i].start && (uintptr_t)at < ranges->items[i].end) return true;
  return false;
}

void interleave_share(const void *start, size_t bytes)
{
  interleave_memory_add_range(&shared, start, bytes);
}

void interleave_weaken(const void *start, size_t bytes)
{
  interleave_memory_add_range(&weak, start, bytes);
}

bool interleave_memory_is_free_of_order(const volatile void *at)
{
  return interleave_memory_is_in(&shared, at);
}

bool interleave_memory_is_weak(const volatile void *at)
{
  return interleave_memory_is_in(&weak, at);
}

/* ---- Races ---- */

static struct word_seen *interleave_memory_word(uintptr_t at)
{
  size_t i = interleave_memory_hash(at, WORDS), tries = 0;
  for (; words[i].run == run && words[i].at != at; i = (i + 1) % WORDS)
    if (++tries == WORDS) abort();
  if (words[i].run != run) {
    memset(&words[i], 0, sizeof words[i]);
    words[i].at = at;
    words[i].run = run;
  }
  return &words[i];
}

/* Whether the other thread's accesses to the bytes of the mask, as far as they conflict with one of this kind, come before. */
static bool interleave_memory_is_ordered(const struct word_seen *word, int thread, enum interleave_kind kind,
                                         bytes_of_word mask)
{
  const int other = 1 - thread;
  const uint16_t known = clocks[thread].at[other];
  const bytes_of_word *seen = word->clocks[other];
  bytes_of_word later = (bytes_of_word)(seen[INTERLEAVE_WRITE] > known);
  uint64_t halves[2];
  if (kind == INTERLEAVE_WRITE || kind == INTERLEAVE_ATOMIC_WRITE)
    later |= (bytes_of_word)(seen[INTERLEAVE_READ] > known);
  if (kind == INTERLEAVE_WRITE || kind == INTERLEAVE_READ)
    later |= (bytes_of_word)(seen[INTERLEAVE_ATOMIC_WRITE] > known);
  if (kind == INTERLEAVE_WRITE) later |= (bytes_of_word)(seen[INTERLEAVE_ATOMIC_READ] > known);
  later &= mask;
  memcpy(halves, &later, sizeof halves);
  return !(halves[0] | halves[1]);
}

/* Whether the memory was there before for this thread. */
static bool interleave_memory_is_known(int thread, const volatile void *at)
{
  for (size_t i = 0; i < n_made; i++)
    if ((uintptr_t)at >= made[i].start && (uintptr_t)at < made[i].end && made[i].thread != thread &&
        made[i].clock > clocks[thread].at[made[i].thread])
      return false;
  return true;
}

/* For addr2line -e. */
static size_t interleave_memory_offset(const void *code)
{
  extern const char __executable_start;
  return code ? (size_t)((const char *)code - &__executable_start) : 0;
}

void interleave_memory_access(int thread, const volatile void *at, size_t bytes, enum interleave_kind kind,
                              const void *code)
{
  static const bytes_of_word numbers = {0, 1, 2, 3, 4, 5, 6, 7};
  uintptr_t end = (uintptr_t)at + bytes;
  if (interleave_memory_is_in(&freed, at))
    interleave_fail("freed memory is used at 0x%zx", interleave_memory_offset(code));
  if (!interleave_memory_is_known(thread, at))
    interleave_fail("memory is used at 0x%zx that another thread may still be filling", interleave_memory_offset(code));
  for (uintptr_t here = (uintptr_t)at, next; here < end; here = next) {
    struct word_seen *word = interleave_memory_word(here / WORD_BYTES);
    next = (here / WORD_BYTES + 1) * WORD_BYTES;
    uint16_t first = (uint16_t)(here % WORD_BYTES), last = (uint16_t)(WORD_BYTES - (end < next ? next - end : 0));
    bytes_of_word mask = (bytes_of_word)(numbers >= first) & (bytes_of_word)(numbers < last);
    if (!interleave_memory_is_ordered(word, thread, kind, mask))
      interleave_fail("a race between 0x%zx and 0x%zx", interleave_memory_offset(code),
                      interleave_memory_offset(word->code[1 - thread]));
    bytes_of_word *seen = &word->clocks[thread][kind];
    *seen = (*seen & ~mask) | (mask & clocks[thread].at[thread]);
    word->code[thread] = code;
  }
}

void interleave_memory_make(const void *start, size_t bytes)
{
  int thread = interleave_running;
  if (thread == INTERLEAVE_NOBODY) return;
  if (n_made == MOST_MADE) abort();
  made[n_made++] = (struct made){(uintptr_t)start, (uintptr_t)start + bytes, thread, clocks[thread].at[thread]};
}

void interleave_memory_free(const void *start, size_t bytes)
{
  interleave_memory_add_range(&freed, start, bytes);
}

/* ---- Store buffers ---- */

size_t interleave_memory_waiting(int thread)
{
  return n_stores[thread];
}

static void interleave_memory_flush_one(int thread)
{
  struct store *store = &stores[thread][0];
  if (!store->is_change) interleave_memory_flush_changes(1 - thread, store->to);
  memcpy((void *)(uintptr_t)store->to, &store->value, store->bytes);
  interleave_memory_place(store->to, thread, true)->synced = store->synced;
  memmove(store, store + 1, --n_stores[thread] * sizeof *store);
  if (n_fenced[thread]) n_fenced[thread]--;
  interleave_wake();
}

void interleave_memory_flush(int thread, size_t n)
{
  while (n-- && n_stores[thread]) interleave_memory_flush_one(thread);
}

void interleave_memory_fence(int thread)
{
  n_fenced[thread] = n_stores[thread];
}

void interleave_memory_flush_fenced(int thread)
{
  interleave_memory_flush(thread, n_fenced[thread]);
}

void interleave_memory_flush_for(int thread, const volatile void *at, size_t bytes)
{
  for (size_t i = n_stores[thread]; i-- > 0;)
    if ((uintptr_t)stores[thread][i].to < (uintptr_t)at + bytes &&
        (uintptr_t)at < (uintptr_t)stores[thread][i].to + stores[thread][i].bytes) {
      interleave_memory_flush(thread, i + 1);
      return;
    }
}

bool interleave_memory_forwards(int thread, const volatile void *at, size_t bytes, uint64_t *value_out)
{
  for (size_t i = n_stores[thread]; i-- > 0;) {
    const struct store *store = &stores[thread][i];
    if (store->to != at || store->bytes != bytes) continue;
    *value_out = store->value;
    return true;
  }
  interleave_memory_flush_for(thread, at, bytes);
  return false;
}

void interleave_memory_delay(int thread, volatile void *at, size_t bytes, uint64_t value, bool releases)
{
  struct store store = {.to = at, .bytes = bytes, .value = value};
  if (n_stores[thread] == MOST_STORES) interleave_memory_flush(thread, 1);
  if (releases) store.synced = clocks[thread];
  if (releases) clocks[thread].at[thread]++;
  stores[thread][n_stores[thread]++] = store;
}

/* What the change read, it adds to. A compiler leaves it, and all in front of it, before the loads behind it. */
void interleave_memory_delay_change(int thread, volatile void *at, size_t bytes, uint64_t value, bool releases)
{
  const struct interleave_clock before = interleave_memory_place(at, thread, true)->synced;
  interleave_memory_delay(thread, at, bytes, value, releases);
  struct store *store = &stores[thread][n_stores[thread] - 1];
  store->is_change = true;
  for (int i = 0; i < INTERLEAVE_THREADS; i++)
    if (store->synced.at[i] < before.at[i]) store->synced.at[i] = before.at[i];
  interleave_memory_fence(thread);
}

bool interleave_memory_has_changes(int thread)
{
  for (size_t i = 0; i < n_stores[thread]; i++)
    if (stores[thread][i].is_change) return true;
  return false;
}

void interleave_memory_flush_changes(int thread, const volatile void *at)
{
  for (size_t i = n_stores[thread]; i-- > 0;)
    if (stores[thread][i].is_change && stores[thread][i].to == at) {
      interleave_memory_flush(thread, i + 1);
      return;
    }
}
