/* SPDX-License-Identifier: MIT */
/* findings.c: see report.h. */
#include "../../../core/base/text.h"
#include "../../../core/base/units.h"
#include "../array.h"
#include "../cmd.h"
#include "../trace/moment.h"
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FINDINGS_GROUPS = 3, FINDINGS_WORDS = 64, FINDINGS_SENTENCE = 512 };

struct findings {
  const struct blocks *blocks;
  const uint64_t *live;
  uint32_t peak;
  json_t *sentences;
};

static unsigned findings_percent(uint64_t part, uint64_t whole)
{
  return whole ? (unsigned)((100.0 * (double)part) / (double)whole + 0.5) : 0;
}

/* "event 120 (3.2 s)". */
static const char *findings_event(const struct findings *findings, uint32_t event, char *words)
{
  int used = snprintf(words, FINDINGS_WORDS, "event %u", (unsigned)event);
  if (findings->blocks->has_times && used > 0)
    snprintf(words + used, FINDINGS_WORDS - (size_t)used, " (%.3g s)", (double)findings->blocks->times[event] / 1e9);
  return words;
}

/* "2 blocks of 1.17 GiB (62 %), 3 blocks of 1 MiB (1 %)": the largest groups, until they are half of all. */
static void findings_groups(const struct moment_groups *groups, uint64_t whole, char *text, size_t text_bytes)
{
  uint64_t reported = 0;
  size_t used = 0;
  *text = '\0';
  for (size_t i = 0; i < groups->n && i < FINDINGS_GROUPS && 2 * reported < groups->bytes && used < text_bytes; i++) {
    const struct moment_group *group = &groups->items[i];
    int n = snprintf(text + used, text_bytes - used, "%s%llu block%s of %s (%u %%)", i ? ", " : "",
                     (unsigned long long)group->blocks, text_plural(group->blocks), UNITS_BYTES(group->key),
                     findings_percent(group->bytes, whole));
    used += n > 0 ? (size_t)n : 0;
    reported += group->bytes;
  }
}

/* ---- The peak -------------------------------------------------------------------------------------------------- */

static bool findings_tell_peak(struct findings *findings)
{
  struct moment_groups groups;
  char event[FINDINGS_WORDS], list[FINDINGS_SENTENCE / 2];
  if (!moment_group(findings->blocks, (struct moment){.event = findings->peak}, MOMENT_BY_SIZE, &groups)) return false;
  findings_groups(&groups, groups.bytes, list, sizeof list);
  output_add_sentence(findings->sentences, "At most %s are live at once: after %s of %zu events, in %llu block%s.",
                      UNITS_BYTES(groups.bytes), findings_event(findings, findings->peak, event),
                      findings->blocks->n_events, (unsigned long long)groups.blocks, text_plural(groups.blocks));
  if (groups.blocks) output_add_sentence(findings->sentences, "The largest part of the peak: %s.", list);
  free(groups.items);
  return true;
}

/* Who allocates the largest part of the peak, if the log knows. */
static bool findings_tell_stack(struct findings *findings)
{
  const struct blocks *blocks = findings->blocks;
  struct moment_groups groups;
  char name[BLOCKS_STACK_NAME_BYTES];
  if (!blocks->stacks.n) return true;
  if (!moment_group(blocks, (struct moment){.event = findings->peak}, MOMENT_BY_STACK, &groups)) return false;
  const struct moment_group *most = groups.n && !groups.items[0].key && groups.n > 1 ? &groups.items[1] : groups.items;
  if (groups.n && most->key) {
    blocks_stack_name(blocks, (uint32_t)most->key, name, sizeof name);
    output_add_sentence(findings->sentences, "The call stack with most of the peak holds %s%s (%u %%): %s.",
                        blocks->stack_sample ? "about " : "", UNITS_BYTES(most->bytes),
                        findings_percent(most->bytes, most->bytes > groups.bytes ? most->bytes : groups.bytes), name);
  }
  free(groups.items);
  return true;
}

/* What the program says that the largest part of the peak is for. */
static bool findings_tell_tag(struct findings *findings)
{
  const struct blocks *blocks = findings->blocks;
  struct moment_groups groups;
  if (!blocks->tag_names.n) return true;
  if (!moment_group(blocks, (struct moment){.event = findings->peak}, MOMENT_BY_TAG, &groups)) return false;
  const struct moment_group *most = groups.items, *end = most + groups.n;
  while (most < end && (!most->key || most->key == BLOCKS_OTHERS)) most++;
  if (most < end)
    output_add_sentence(findings->sentences, "The tag with most of the peak is \"%s\": %s (%u %%) in %llu block%s.",
                        blocks_tag_name(blocks, (uint32_t)most->key), UNITS_BYTES(most->bytes),
                        findings_percent(most->bytes, groups.bytes), (unsigned long long)most->blocks,
                        text_plural(most->blocks));
  free(groups.items);
  return true;
}

/* The lowest point before the peak, back to the last time when nearly as much was live. */
static uint32_t findings_trough(const struct findings *findings)
{
  uint64_t near = findings->live[findings->peak] / 10 * 9, low = findings->live[findings->peak] / 10 * 7;
  uint32_t trough = findings->peak;
  for (uint32_t event = findings->peak; event-- > 0;) {
    if (findings->live[event] >= near && findings->live[trough] < low) break;
    if (findings->live[event] < findings->live[trough]) trough = event;
  }
  return trough;
}

static bool findings_tell_climb(struct findings *findings)
{
  struct moment_groups groups;
  char event[FINDINGS_WORDS], list[FINDINGS_SENTENCE / 2];
  uint64_t peak = findings->live[findings->peak];
  uint32_t trough = findings_trough(findings);
  if (trough == findings->peak) return true;
  const struct moment climb = {.event = findings->peak, .from_event = trough + 1};
  if (!moment_group(findings->blocks, climb, MOMENT_BY_SIZE, &groups)) return false;
  findings_groups(&groups, peak, list, sizeof list);
  output_add_sentence(findings->sentences,
                      "The climb to it begins after %s, with %s live. It adds %s (%u %% of the peak), above all %s.",
                      findings_event(findings, trough, event), UNITS_BYTES(findings->live[trough]),
                      UNITS_BYTES(groups.bytes), findings_percent(groups.bytes, peak), list);
  free(groups.items);
  return true;
}

static void findings_tell_lasting(struct findings *findings)
{
  const struct blocks *blocks = findings->blocks;
  uint64_t lasting = 0, peak = findings->live[findings->peak];
  for (size_t i = 0; i < blocks->n; i++) {
    const struct block *block = &blocks->items[i];
    uint64_t end = block->to == BLOCK_IS_LIVE ? blocks->n_events : block->to;
    if (block->from <= findings->peak && block->to > findings->peak && end - block->from > blocks->n_events / 2)
      lasting += block->bytes;
  }
  if (lasting)
    output_add_sentence(findings->sentences, "%s of the peak (%u %%) live for more than half of the log.",
                        UNITS_BYTES(lasting), findings_percent(lasting, peak));
}

/* How often the program comes near the peak, with lower times between. */
static void findings_tell_repeats(struct findings *findings)
{
  uint64_t near = findings->live[findings->peak] / 20 * 19, away = findings->live[findings->peak] / 5 * 4;
  unsigned times = 0;
  bool is_near = false;
  for (size_t event = 0; event < findings->blocks->n_events; event++) {
    if (!is_near && findings->live[event] >= near) {
      is_near = true;
      times++;
    }
    if (findings->live[event] < away) is_near = false;
  }
  if (times > 1) output_add_sentence(findings->sentences, "The program comes within 5 %% of the peak %u times.", times);
}

/* ---- Rises ----------------------------------------------------------------------------------------------------- */

struct findings_tops {
  struct findings_top {
    uint64_t live;
    uint32_t event;
  } * items;
  size_t n, capacity;
};

/* The tops of rises: what is between two of them falls by a twentieth of the peak at least. False: out of memory. */
static bool findings_find_tops(const struct findings *findings, struct findings_tops *tops)
{
  const uint64_t *live = findings->live, step = live[findings->peak] / 20 + 1;
  uint32_t top = 0, bottom = 0;
  bool rises = true;
  for (uint32_t event = 0; event <= findings->blocks->n_events; event++) {
    uint64_t now = event < findings->blocks->n_events ? live[event] : 0;
    if (rises ? now > live[top] : now < live[bottom]) {
      top = bottom = event;
    } else if (rises && now + step <= live[top]) {
      if (!array_grow(&tops->items, tops->n, &tops->capacity, sizeof *tops->items)) return false;
      tops->items[tops->n++] = (struct findings_top){live[top], top};
      rises = false;
      bottom = event;
    } else if (!rises && now >= live[bottom] + step) {
      rises = true;
      top = event;
    }
  }
  return true;
}

static int findings_compare_tops(const void *one, const void *other)
{
  const struct findings_top *a = one, *b = other;
  if (a->live != b->live) return a->live < b->live ? -1 : 1;
  return a->event < b->event ? -1 : a->event > b->event;
}

/* Of a program that does the like again and again, such as a training: what differs when it peaks. */
static bool findings_tell_rises(struct findings *findings)
{
  struct findings_tops tops = {NULL, 0, 0};
  struct moment_groups usual = {0}, most = {0};
  bool good = findings_find_tops(findings, &tops);
  if (tops.n) qsort(tops.items, tops.n, sizeof *tops.items, findings_compare_tops);
  const struct findings_top *middle = tops.n ? &tops.items[tops.n / 2] : NULL;
  double times = middle ? (double)findings->live[findings->peak] / (double)middle->live : 0;
  if (good && tops.n >= 5 && times >= 1.25) {
    good = moment_group(findings->blocks, (struct moment){.event = middle->event}, MOMENT_BY_SIZE, &usual) &&
           moment_group(findings->blocks, (struct moment){.event = findings->peak}, MOMENT_BY_SIZE, &most);
    double more = usual.blocks ? (double)most.blocks / (double)usual.blocks : 1;
    if (good)
      output_add_sentence(findings->sentences,
                          "Memory rises and falls %zu times, and half of the rises stay below %s. The peak is %.1f "
                          "times as high, with %llu block%s where the middle one has %llu: %s.",
                          tops.n, UNITS_BYTES(middle->live), times, (unsigned long long)most.blocks,
                          text_plural(most.blocks), (unsigned long long)usual.blocks,
                          more < 1.05                      ? "larger blocks, not more"
                          : more < 1 + (times - 1) / 4     ? "mostly larger blocks"
                          : more < 1 + (times - 1) / 4 * 3 ? "more blocks, and larger"
                                                           : "more blocks");
  }
  free(usual.items);
  free(most.items);
  free(tops.items);
  return good;
}

/* ---- The rest -------------------------------------------------------------------------------------------------- */

static void findings_tell_pages(struct findings *findings, const struct pages_result *pages)
{
  char event[FINDINGS_WORDS];
  uint64_t wasted = pages->worst_bytes - pages->worst_live_bytes;
  if (!wasted || 20 * wasted < findings->live[findings->peak]) return;
  output_add_sentence(
      findings->sentences,
      "Fragmentation is worst after %s: pages of 2 MiB with live blocks have %s, and the blocks in them %s.",
      findings_event(findings, pages->worst_event, event), UNITS_BYTES(pages->worst_bytes),
      UNITS_BYTES(pages->worst_live_bytes));
}

static void findings_tell_end(struct findings *findings)
{
  const struct blocks *blocks = findings->blocks;
  char event[FINDINGS_WORDS];
  uint64_t live = 0;
  for (size_t i = 0; i < blocks->n; i++) live += blocks->items[i].to == BLOCK_IS_LIVE;
  if (live)
    output_add_sentence(findings->sentences, "At the end of the log %llu block%s with %s %s not freed.",
                        (unsigned long long)live, text_plural(live), UNITS_BYTES(findings->live[blocks->n_events - 1]),
                        live == 1 ? "is" : "are");
  if (blocks->failures)
    output_add_sentence(findings->sentences, "%llu operation%s failed; the first, of %s, at %s.",
                        (unsigned long long)blocks->failures, text_plural(blocks->failures),
                        UNITS_BYTES(blocks->first_failure.bytes),
                        findings_event(findings, blocks->first_failure.event, event));
  if (blocks->impossible)
    output_add_sentence(findings->sentences,
                        "%llu allocation%s of more than 256 TiB %s no memory: no device has that much.",
                        (unsigned long long)blocks->impossible, text_plural(blocks->impossible),
                        blocks->impossible == 1 ? "counts as" : "count as");
  if (blocks->overlaid)
    output_add_sentence(findings->sentences,
                        "Allocations at the address of a block that the log has not freed: %llu; such a block counts "
                        "as freed then. The log lacks frees, or the logs together are of several processes.",
                        (unsigned long long)blocks->overlaid);
  if (blocks->unmatched_frees)
    output_add_sentence(findings->sentences,
                        "Frees of blocks that the log does not allocate: %llu; it begins in the middle of the program.",
                        (unsigned long long)blocks->unmatched_frees);
}

json_t *findings_tell(const struct blocks *blocks, const uint64_t *live, uint32_t peak,
                      const struct pages_result *pages)
{
  struct findings findings = {blocks, live, peak, json_array()};
  if (findings.sentences && findings_tell_peak(&findings) && findings_tell_stack(&findings) &&
      findings_tell_tag(&findings) && findings_tell_rises(&findings) && findings_tell_climb(&findings)) {
    findings_tell_lasting(&findings);
    findings_tell_repeats(&findings);
    findings_tell_pages(&findings, pages);
    findings_tell_end(&findings);
  }
  return findings.sentences;
}
