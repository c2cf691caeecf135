/* SPDX-License-Identifier: MIT */
/* stream_set.h: a set of stream ids, visited in ascending order. Adding, removing and finding the next member take a
 * constant number of steps: the set has a bit for each id, and above that a bit for each word that is not zero. A zeroed
 * set is empty. The caller holds the lock of what the set belongs to. */
#ifndef HIPMM_PLUGINS_COMMON_STREAM_SET_H
#define HIPMM_PLUGINS_COMMON_STREAM_SET_H

#include <stdbool.h>
#include <stdint.h>

enum { MAX_STREAMS = 1 << 16 /* an id has 16 bits */ };

enum { STREAM_SET_WORDS = MAX_STREAMS / 64, STREAM_SET_SUMMARIES = STREAM_SET_WORDS / 64 };

struct stream_set {
  uint64_t bits[STREAM_SET_WORDS];
  uint64_t words[STREAM_SET_SUMMARIES]; /* which of `bits` are not zero */
  uint64_t summaries;                   /* which of `words` are not zero */
};

_Static_assert(STREAM_SET_SUMMARIES <= 64, "one word tells which of `words` are not zero");

static inline bool stream_set_has(const struct stream_set *set, uint32_t stream)
{
  return set->bits[stream / 64] >> stream % 64 & 1;
}

static inline void stream_set_add(struct stream_set *set, uint32_t stream)
{
  uint32_t word = stream / 64;
  set->bits[word] |= 1ull << stream % 64;
  set->words[word / 64] |= 1ull << word % 64;
  set->summaries |= 1ull << word / 64;
}

static inline void stream_set_remove(struct stream_set *set, uint32_t stream)
{
  uint32_t word = stream / 64;
  if (set->bits[word] &= ~(1ull << stream % 64)) return;
  if (set->words[word / 64] &= ~(1ull << word % 64)) return;
  set->summaries &= ~(1ull << word / 64);
}

/* The first member from `stream` on; MAX_STREAMS if there is none. */
static inline uint32_t stream_set_next(const struct stream_set *set, uint32_t stream)
{
  if (stream >= MAX_STREAMS) return MAX_STREAMS;
  uint64_t rest = set->bits[stream / 64] >> stream % 64;
  if (rest) return stream + (uint32_t)__builtin_ctzll(rest);
  uint32_t word = stream / 64 + 1;
  if (word == STREAM_SET_WORDS) return MAX_STREAMS;
  rest = set->words[word / 64] >> word % 64;
  if (!rest) {
    uint32_t summary = word / 64 + 1;
    uint64_t later = summary < STREAM_SET_SUMMARIES ? set->summaries >> summary : 0;
    if (!later) return MAX_STREAMS;
    word = (summary + (uint32_t)__builtin_ctzll(later)) * 64;
    rest = set->words[word / 64];
  }
  word += (uint32_t)__builtin_ctzll(rest);
  return word * 64 + (uint32_t)__builtin_ctzll(set->bits[word]);
}

/* Takes as many steps as the set has members. */
static inline void stream_set_clear(struct stream_set *set)
{
  for (uint32_t stream = 0; (stream = stream_set_next(set, stream)) < MAX_STREAMS;) {
    set->bits[stream / 64] = 0;
    set->words[stream / 4096] &= ~(1ull << stream / 64 % 64);
    stream = (stream / 64 + 1) * 64;
  }
  set->summaries = 0;
}

#endif
