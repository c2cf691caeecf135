/* SPDX-License-Identifier: MIT */
/* savings.c: see plan.h. */
#include "plan.h"

#include <stdlib.h>
#include <string.h>

/* Of so many groups, those that hold most at the peak, the savings are counted. */
enum { SAVINGS_TRIED = 2 * SAVINGS_MOST };

/* Live bytes after each event. */
struct savings_curves {
  uint64_t *all, *group, *rest; /* of all blocks; of one group; of the blocks that are in no group so far */
  size_t n;
};

static bool savings_open(struct savings_curves *curves, size_t n_events)
{
  *curves = (struct savings_curves){.n = n_events};
  curves->all = calloc(n_events, sizeof *curves->all);
  curves->group = calloc(n_events, sizeof *curves->group);
  curves->rest = calloc(n_events, sizeof *curves->rest);
  return curves->all && curves->group && curves->rest;
}

static void savings_close(struct savings_curves *curves)
{
  free(curves->all);
  free(curves->group);
  free(curves->rest);
}

static void savings_of_group(const struct savings_curves *curves, uint64_t peak_bytes, struct saving *saving)
{
  uint64_t halved = 0, gone = 0;
  for (size_t event = 0; event < curves->n; event++) {
    uint64_t all = curves->all[event], part = curves->group[event];
    if (all - part / 2 > halved) halved = all - part / 2;
    if (all - part > gone) gone = all - part;
  }
  saving->halved_bytes = peak_bytes - halved;
  saving->gone_bytes = peak_bytes - gone;
}

/* Takes the group from the rest. */
static void savings_of_rest(const struct savings_curves *curves, uint64_t peak_bytes, struct saving *saving)
{
  uint64_t rest = 0;
  for (size_t event = 0; event < curves->n; event++) {
    curves->rest[event] -= curves->group[event];
    if (curves->rest[event] > rest) rest = curves->rest[event];
  }
  saving->together_bytes = peak_bytes - rest;
}

/* What saves most first; of equals, what holds most. */
static int savings_compare(const void *one, const void *other)
{
  const struct saving *a = one, *b = other;
  if (a->halved_bytes != b->halved_bytes) return a->halved_bytes > b->halved_bytes ? -1 : 1;
  if (a->at_peak.bytes != b->at_peak.bytes) return a->at_peak.bytes > b->at_peak.bytes ? -1 : 1;
  return a->at_peak.key > b->at_peak.key ? -1 : a->at_peak.key < b->at_peak.key;
}

static bool savings_list_find(const struct blocks *blocks, const struct savings_curves *curves,
                              const struct savings *savings, enum moment_key by, struct savings_list *list)
{
  struct moment_groups groups;
  struct saving tried[SAVINGS_TRIED];
  const struct moment peak = {.event = savings->peak_event};
  if (!moment_group(blocks, peak, by, &groups)) return false;
  size_t n = groups.n < SAVINGS_TRIED ? groups.n : SAVINGS_TRIED;
  for (size_t i = 0; i < n; i++) {
    tried[i] = (struct saving){.at_peak = groups.items[i]};
    moment_curve(blocks, &by, tried[i].at_peak.key, curves->group);
    savings_of_group(curves, savings->peak_bytes, &tried[i]);
  }
  free(groups.items);
  qsort(tried, n, sizeof *tried, savings_compare);
  memcpy(curves->rest, curves->all, curves->n * sizeof *curves->rest);
  for (list->n = 0; list->n < n && list->n < SAVINGS_MOST; list->n++) {
    struct saving *saving = &list->items[list->n];
    *saving = tried[list->n];
    moment_curve(blocks, &by, saving->at_peak.key, curves->group);
    savings_of_rest(curves, savings->peak_bytes, saving);
  }
  return true;
}

bool savings_find(const struct blocks *blocks, struct savings *out)
{
  struct savings_curves curves;
  *out = (struct savings){0};
  bool good = savings_open(&curves, blocks->n_events);
  if (good) {
    out->peak_event = moment_curve(blocks, NULL, 0, curves.all);
    out->peak_bytes = curves.all[out->peak_event];
    good = savings_list_find(blocks, &curves, out, MOMENT_BY_SIZE, &out->by_size);
    if (good && blocks->tag_names.n) good = savings_list_find(blocks, &curves, out, MOMENT_BY_TAG, &out->by_tag);
    if (good && blocks->stacks.n) good = savings_list_find(blocks, &curves, out, MOMENT_BY_STACK, &out->by_stack);
  }
  savings_close(&curves);
  return good;
}
