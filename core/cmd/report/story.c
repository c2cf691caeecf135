/* SPDX-License-Identifier: MIT */
/* story.c: see story.h. */
#include "story.h"
#include "../../base/text.h"
#include "../../base/units.h"
#include "moment.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STORY_GROUPS = 3, STORY_WORDS = 64, STORY_SENTENCE = 512 };

struct story {
  const struct blocks *blocks;
  const uint64_t *live;
  uint32_t peak;
  json_t *sentences;
};

static void story_say(struct story *story, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void story_say(struct story *story, const char *format, ...)
{
  char text[STORY_SENTENCE];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  json_array_append_new(story->sentences, json_string(text));
}

static const char *story_bytes(uint64_t bytes, char *words)
{
  return units_format_bytes(bytes, words, STORY_WORDS);
}

static unsigned story_percent(uint64_t part, uint64_t whole)
{
  return whole ? (unsigned)((100.0 * (double)part) / (double)whole + 0.5) : 0;
}

/* "event 120 (3.2 s)". */
static const char *story_event(const struct story *story, uint32_t event, char *words)
{
  int used = snprintf(words, STORY_WORDS, "event %u", (unsigned)event);
  if (story->blocks->has_times && used > 0)
    snprintf(words + used, STORY_WORDS - (size_t)used, " (%.3g s)", (double)story->blocks->times[event] / 1e9);
  return words;
}

/* "2 blocks of 1.17 GiB (62 %), 3 blocks of 1 MiB (1 %)": the largest groups, until they are half of all. */
static void story_groups(const struct moment_groups *groups, uint64_t whole, char *text, size_t text_bytes)
{
  char words[STORY_WORDS];
  uint64_t told = 0;
  size_t used = 0;
  *text = '\0';
  for (size_t i = 0; i < groups->n && i < STORY_GROUPS && 2 * told < groups->bytes && used < text_bytes; i++) {
    const struct moment_group *group = &groups->items[i];
    int n = snprintf(text + used, text_bytes - used, "%s%llu block%s of %s (%u %%)", i ? ", " : "",
                     (unsigned long long)group->blocks, text_plural(group->blocks), story_bytes(group->key, words),
                     story_percent(group->bytes, whole));
    used += n > 0 ? (size_t)n : 0;
    told += group->bytes;
  }
}

/* ---- The peak -------------------------------------------------------------------------------------------------- */

static bool story_tell_peak(struct story *story)
{
  struct moment_groups groups;
  char bytes[STORY_WORDS], event[STORY_WORDS], list[STORY_SENTENCE / 2];
  if (!moment_group(story->blocks, (struct moment){.event = story->peak}, MOMENT_BY_SIZE, &groups)) return false;
  story_groups(&groups, groups.bytes, list, sizeof list);
  story_say(story, "At most %s are live at once: after %s of %zu events, in %llu block%s.",
            story_bytes(groups.bytes, bytes), story_event(story, story->peak, event), story->blocks->n_events,
            (unsigned long long)groups.blocks, text_plural(groups.blocks));
  if (groups.blocks) story_say(story, "The largest part of the peak: %s.", list);
  free(groups.items);
  return true;
}

/* The lowest point before the peak, back to the last time when nearly as much was live. */
static uint32_t story_trough(const struct story *story)
{
  uint64_t near = story->live[story->peak] / 10 * 9, low = story->live[story->peak] / 10 * 7;
  uint32_t trough = story->peak;
  for (uint32_t event = story->peak; event-- > 0;) {
    if (story->live[event] >= near && story->live[trough] < low) break;
    if (story->live[event] < story->live[trough]) trough = event;
  }
  return trough;
}

static bool story_tell_climb(struct story *story)
{
  struct moment_groups groups;
  char from[STORY_WORDS], added[STORY_WORDS], event[STORY_WORDS], list[STORY_SENTENCE / 2];
  uint64_t peak = story->live[story->peak];
  uint32_t trough = story_trough(story);
  if (trough == story->peak) return true;
  const struct moment climb = {.event = story->peak, .from_event = trough + 1};
  if (!moment_group(story->blocks, climb, MOMENT_BY_SIZE, &groups)) return false;
  story_groups(&groups, peak, list, sizeof list);
  story_say(story, "The climb to it begins after %s, with %s live. It adds %s (%u %% of the peak), above all %s.",
            story_event(story, trough, event), story_bytes(story->live[trough], from), story_bytes(groups.bytes, added),
            story_percent(groups.bytes, peak), list);
  free(groups.items);
  return true;
}

static void story_tell_lasting(struct story *story)
{
  const struct blocks *blocks = story->blocks;
  char words[STORY_WORDS];
  uint64_t lasting = 0, peak = story->live[story->peak];
  for (size_t i = 0; i < blocks->n; i++) {
    const struct block *block = &blocks->items[i];
    uint64_t end = block->to == BLOCK_IS_LIVE ? blocks->n_events : block->to;
    if (block->from <= story->peak && block->to > story->peak && end - block->from > blocks->n_events / 2)
      lasting += block->bytes;
  }
  if (lasting)
    story_say(story, "%s of the peak (%u %%) live for more than half of the log.", story_bytes(lasting, words),
              story_percent(lasting, peak));
}

/* How often the program comes near the peak, with lower times between. */
static void story_tell_repeats(struct story *story)
{
  uint64_t near = story->live[story->peak] / 20 * 19, away = story->live[story->peak] / 5 * 4;
  unsigned times = 0;
  bool is_near = false;
  for (size_t event = 0; event < story->blocks->n_events; event++) {
    if (!is_near && story->live[event] >= near) {
      is_near = true;
      times++;
    }
    if (story->live[event] < away) is_near = false;
  }
  if (times > 1) story_say(story, "The program comes within 5 %% of the peak %u times.", times);
}

/* ---- The rest -------------------------------------------------------------------------------------------------- */

static void story_tell_pages(struct story *story, const struct pages_result *pages)
{
  char touched[STORY_WORDS], live[STORY_WORDS], event[STORY_WORDS];
  uint64_t wasted = pages->worst_bytes - pages->worst_live_bytes;
  if (20 * wasted < story->live[story->peak]) return;
  story_say(story,
            "Fragmentation is worst after %s: pages of 2 MiB with live blocks have %s, and the blocks in them %s.",
            story_event(story, pages->worst_event, event), story_bytes(pages->worst_bytes, touched),
            story_bytes(pages->worst_live_bytes, live));
}

static void story_tell_end(struct story *story)
{
  const struct blocks *blocks = story->blocks;
  char words[STORY_WORDS], event[STORY_WORDS];
  uint64_t live = 0;
  for (size_t i = 0; i < blocks->n; i++) live += blocks->items[i].to == BLOCK_IS_LIVE;
  if (live)
    story_say(story, "At the end of the log %llu block%s with %s %s not freed.", (unsigned long long)live,
              text_plural(live), story_bytes(story->live[blocks->n_events - 1], words), live == 1 ? "is" : "are");
  if (blocks->failures)
    story_say(story, "%llu operation%s failed; the first, of %s, at %s.", (unsigned long long)blocks->failures,
              text_plural(blocks->failures), story_bytes(blocks->first_failure.bytes, words),
              story_event(story, blocks->first_failure.event, event));
  if (blocks->unmatched_frees)
    story_say(story, "Frees of blocks that the log does not allocate: %llu; it begins in the middle of the program.",
              (unsigned long long)blocks->unmatched_frees);
}

json_t *story_tell(const struct blocks *blocks, const uint64_t *live, uint32_t peak, const struct pages_result *pages)
{
  struct story story = {blocks, live, peak, json_array()};
  if (story.sentences && story_tell_peak(&story) && story_tell_climb(&story)) {
    story_tell_lasting(&story);
    story_tell_repeats(&story);
    story_tell_pages(&story, pages);
    story_tell_end(&story);
  }
  return story.sentences;
}
