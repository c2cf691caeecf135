/* SPDX-License-Identifier: MIT */
/* compare.c: see report.h. Compares two logs: what is live at each one's peak, and what each allocates in all, by tag, call
 * stack and size. Call stacks are the same if their functions and files are: lines move when a program is edited. */
#include "../../../core/base/text.h"
#include "../../../core/base/units.h"
#include "../array.h"
#include "../table.h"
#include "../trace/moment.h"
#include "../trace/stack_frames.h"
#include "report.h"

#include <stdlib.h>
#include <string.h>

enum { COMPARE_ROWS = 20, COMPARE_SENTENCES = 3, COMPARE_SIZES = 64, COMPARE_WORDS = 96 };

/* One of the two logs. */
struct compare_side {
  const struct blocks *blocks;
  const char *name;
  uint64_t *live; /* after each event */
  uint32_t peak;  /* event */
  struct pages_result pages;
  uint32_t *stacks; /* the common number of each of its call stacks */
  uint32_t *tags;   /* and of each of its tags, with BLOCKS_OTHERS */
};

/* Blocks of one tag, call stack or size class, of both logs. */
struct compare_group {
  uint64_t blocks[2], bytes[2];
  uint32_t number;
};

struct compare {
  struct compare_side sides[2];
  struct stack_texts stacks; /* of both, without their lines */
  struct stack_texts tags;   /* of both */
  uint32_t (*shown)[2];      /* by common number: a call stack of a side that is called so, and the side */
  size_t capacity;
  json_t *findings, *tables;
};

/* ---- Call stacks ----------------------------------------------------------------------------------------------- */

/* The common number of a call stack. False: out of memory. */
static bool compare_number_stack(struct compare *compare, const char *text, uint32_t *number_out)
{
  struct stack_frame frame;
  char *plain = NULL;
  size_t bytes = 0, depth = 0;
  FILE *stream = open_memstream(&plain, &bytes);
  if (!stream) return false;
  for (; stack_frames_next(&text, &frame); depth++)
    fprintf(stream, "  #%zu in %.*s from %.*s\n", depth, (int)(frame.name_end - frame.name), frame.name,
            (int)(frame.file_end - frame.file), frame.file);
  bool good = fclose(stream) == 0 && stack_texts_add(&compare->stacks, plain, number_out);
  free(plain);
  return good;
}

static bool compare_number_stacks(struct compare *compare, uint32_t side)
{
  const struct stack_texts *texts = &compare->sides[side].blocks->stacks;
  uint32_t *numbers = compare->sides[side].stacks = calloc(texts->n + 1, sizeof *numbers);
  if (!numbers) return false;
  for (uint32_t i = 1; i < texts->n; i++) {
    const char *text = stack_texts_get(texts, i);
    if (!text) continue;
    if (!compare_number_stack(compare, text, &numbers[i]) ||
        !array_grow(&compare->shown, numbers[i], &compare->capacity, sizeof *compare->shown))
      return false;
    compare->shown[numbers[i]][0] = i;
    compare->shown[numbers[i]][1] = side;
  }
  return true;
}

static bool compare_number_tags(struct compare *compare, uint32_t side)
{
  const struct blocks *blocks = compare->sides[side].blocks;
  uint32_t *numbers = compare->sides[side].tags = calloc(BLOCKS_OTHERS + 1, sizeof *numbers);
  if (!numbers) return false;
  for (uint32_t i = 1; i < blocks->tag_names.n && i <= BLOCKS_OTHERS; i++)
    if (!stack_texts_add(&compare->tags, blocks_tag_name(blocks, i), &numbers[i])) return false;
  return true;
}

/* ---- Groups ---------------------------------------------------------------------------------------------------- */

/* The key of a block's size: 0 for no bytes, else 1 and more for each power of two. */
static uint32_t compare_size_class(uint64_t bytes)
{
  return bytes ? 64 - (uint32_t)__builtin_clzll(bytes) : 0;
}

/* The name of a group. Valid until the next call; `room` has BLOCKS_STACK_NAME_BYTES. */
static const char *compare_name(const struct compare *compare, enum moment_key by, uint32_t number, char *room)
{
  if (by == MOMENT_BY_TAG) return number ? stack_texts_get(&compare->tags, number) : "no tag";
  if (by == MOMENT_BY_STACK && !number) return "no call stack";
  if (by == MOMENT_BY_STACK)
    blocks_stack_name(compare->sides[compare->shown[number][1]].blocks, compare->shown[number][0], room,
                      BLOCKS_STACK_NAME_BYTES);
  else if (number < 2)
    snprintf(room, BLOCKS_STACK_NAME_BYTES, "%u bytes", (unsigned)number);
  else
    snprintf(room, BLOCKS_STACK_NAME_BYTES, "%s to %s", UNITS_BYTES(UINT64_C(1) << (number - 1)),
             number < 64 ? UNITS_BYTES(UINT64_C(1) << number) : "more");
  return room;
}

static int64_t compare_more(const struct compare_group *group)
{
  return (int64_t)(group->bytes[1] - group->bytes[0]);
}

/* The greatest differences first. */
static int compare_groups(const void *one, const void *other)
{
  const struct compare_group *a = one, *b = other;
  int64_t x = llabs(compare_more(a)), y = llabs(compare_more(b));
  if (x != y) return x > y ? -1 : 1;
  return a->number < b->number ? -1 : a->number > b->number;
}

static uint32_t compare_key(const struct compare_side *side, const struct block *block, enum moment_key by)
{
  switch (by) {
  case MOMENT_BY_TAG: return side->tags[blocks_tag(side->blocks, block)];
  case MOMENT_BY_STACK: return side->stacks[block->stack];
  default: return compare_size_class(block->bytes);
  }
}

/* All groups, with the blocks at the peaks or all blocks. NULL: out of memory. The caller frees them. */
static struct compare_group *compare_tally(const struct compare *compare, enum moment_key by, bool at_peak,
                                           size_t *n_out)
{
  const bool by_stack = by == MOMENT_BY_STACK;
  const size_t n = *n_out = 1 + (by_stack ? compare->stacks.n : by == MOMENT_BY_TAG ? compare->tags.n : COMPARE_SIZES);
  struct compare_group *groups = calloc(n, sizeof *groups);
  for (uint32_t i = 0; groups && i < n; i++) groups[i].number = i;
  for (int side = 0; groups && side < 2; side++) {
    const struct compare_side *one = &compare->sides[side];
    const struct moment peak = {.event = one->peak};
    for (size_t i = 0; i < one->blocks->n; i++) {
      const struct block *block = &one->blocks->items[i];
      if (at_peak && !moment_has(&peak, block)) continue;
      struct compare_group *group = &groups[compare_key(one, block, by)];
      group->blocks[side] += by_stack ? blocks_stack_blocks(one->blocks, block) : 1;
      group->bytes[side] += by_stack ? blocks_stack_bytes(one->blocks, block) : block->bytes;
    }
  }
  if (groups) qsort(groups, n, sizeof *groups, compare_groups);
  return groups;
}

/* ---- What is told ---------------------------------------------------------------------------------------------- */

/* "3 MiB more (12 %)", "30 MiB more (31 times as much)". */
static const char *compare_difference(uint64_t before, uint64_t after, char *words)
{
  const uint64_t difference = after > before ? after - before : before - after;
  int used = snprintf(words, COMPARE_WORDS, "%s%s", difference ? UNITS_BYTES(difference) : "the same",
                      after > before   ? " more"
                      : after < before ? " less"
                                       : "");
  if (!before || !difference || used <= 0) return words;
  const double times = (double)after / (double)before;
  snprintf(words + used, COMPARE_WORDS - (size_t)used, times < 10 ? " (%.3g %%)" : " (%.3g times as much)",
           times < 10 ? 100.0 * (double)difference / (double)before : times);
  return words;
}

static const char *compare_change(const struct compare_group *group, char *words)
{
  if (!group->blocks[0]) return "appeared";
  if (!group->blocks[1]) return "gone";
  return compare_difference(group->bytes[0], group->bytes[1], words);
}

static bool compare_table(struct compare *compare, enum moment_key by, bool at_peak)
{
  const char *const kind = by == MOMENT_BY_TAG ? "tag" : by == MOMENT_BY_STACK ? "call stack" : "size";
  const struct table_column columns[] = {{kind, ""},
                                         {"before*", "before"},
                                         {"blocks before", "before_blocks"},
                                         {"after*", "after"},
                                         {"blocks after", "after_blocks"},
                                         {"change", "change"},
                                         {NULL, NULL}};
  char room[BLOCKS_STACK_NAME_BYTES], words[COMPARE_WORDS], heading[64];
  size_t n;
  snprintf(heading, sizeof heading, "%s, by %s", at_peak ? "Live at the peak" : "Allocated in all", kind);
  json_t *table = table_make(heading, columns);
  struct compare_group *groups = compare_tally(compare, by, at_peak, &n);
  for (size_t i = 0; groups && i < n && i < COMPARE_ROWS; i++) {
    const struct compare_group *group = &groups[i];
    if (!compare_more(group) && group->blocks[0] == group->blocks[1]) continue;
    const char *const name = compare_name(compare, by, group->number, room);
    json_t *row = json_pack("{s:I, s:I, s:I, s:I, s:s}", "before", (json_int_t)group->bytes[0], "before_blocks",
                            (json_int_t)group->blocks[0], "after", (json_int_t)group->bytes[1], "after_blocks",
                            (json_int_t)group->blocks[1], "change", compare_change(group, words));
    table_add(table, columns, name, row);
    json_decref(row);
    if (at_peak && i < COMPARE_SENTENCES && compare_more(group) && (by != MOMENT_BY_SIZE || !compare->stacks.n))
      output_add_sentence(compare->findings, "At the peak, %s%s: %s and %s, %s.",
                          by == MOMENT_BY_SIZE                   ? "blocks of "
                          : by == MOMENT_BY_TAG && group->number ? "tag "
                                                                 : "",
                          name, UNITS_BYTES(group->bytes[0]), UNITS_BYTES(group->bytes[1]),
                          compare_change(group, words));
  }
  free(groups);
  json_array_append_new(compare->tables, table);
  return groups != NULL;
}

static uint64_t compare_live_at(const struct compare_side *side, uint32_t event)
{
  return side->blocks->n_events ? side->live[event] : 0;
}

static uint64_t compare_requested(const struct blocks *blocks)
{
  uint64_t bytes = 0;
  for (size_t i = 0; i < blocks->n; i++) bytes += blocks->items[i].bytes;
  return bytes;
}

/* The figures of the whole, as a table; and the peaks as a sentence. */
static void compare_figures(struct compare *compare)
{
  static const struct table_column columns[] = {
      {"figure", ""}, {"before*", "before"}, {"after*", "after"}, {"change", "change"}, {NULL, NULL}};
  const struct compare_side *before = &compare->sides[0], *after = &compare->sides[1];
  const uint32_t ends[2] = {(uint32_t)before->blocks->n_events - 1, (uint32_t)after->blocks->n_events - 1};
  const struct {
    const char *name;
    uint64_t values[2];
  } figures[] = {
      {"live at the peak", {compare_live_at(before, before->peak), compare_live_at(after, after->peak)}},
      {"in pages of 2 MiB, at most", {before->pages.peak_bytes, after->pages.peak_bytes}},
      {"not freed at the end", {compare_live_at(before, ends[0]), compare_live_at(after, ends[1])}},
      {"allocated in all", {compare_requested(before->blocks), compare_requested(after->blocks)}},
  };
  char words[COMPARE_WORDS];
  json_t *table = table_make("Figures", columns);
  for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
    const uint64_t *values = figures[i].values;
    json_t *row = json_pack("{s:I, s:I, s:s}", "before", (json_int_t)values[0], "after", (json_int_t)values[1],
                            "change", compare_difference(values[0], values[1], words));
    table_add(table, columns, figures[i].name, row);
    json_decref(row);
  }
  json_array_append_new(compare->tables, table);
  output_add_sentence(compare->findings, "At most %s are live at once in %s, and %s in %s: %s.",
                      UNITS_BYTES(figures[0].values[0]), before->name, UNITS_BYTES(figures[0].values[1]), after->name,
                      compare_difference(figures[0].values[0], figures[0].values[1], words));
  output_add_sentence(compare->findings, "%s allocates %zu times, and %s %zu times.", before->name, before->blocks->n,
                      after->name, after->blocks->n);
}

static void compare_failures(struct compare *compare)
{
  for (int i = 0; i < 2; i++) {
    const struct blocks *blocks = compare->sides[i].blocks;
    if (blocks->failures)
      output_add_sentence(compare->findings, "In %s %llu operation%s failed; the first, of %s, at event %u of %zu.",
                          compare->sides[i].name, (unsigned long long)blocks->failures, text_plural(blocks->failures),
                          UNITS_BYTES(blocks->first_failure.bytes), (unsigned)blocks->first_failure.event,
                          blocks->n_events);
  }
}

/* ---- The whole ------------------------------------------------------------------------------------------------- */

static bool compare_measure(struct compare *compare, uint32_t side)
{
  struct compare_side *one = &compare->sides[side];
  one->live = calloc(one->blocks->n_events + 1, sizeof *one->live);
  if (!one->live || !compare_number_stacks(compare, side) || !compare_number_tags(compare, side)) return false;
  one->peak = moment_curve(one->blocks, NULL, 0, one->live);
  return pages_count(one->blocks, NULL, NULL, &one->pages);
}

static bool compare_tell(struct compare *compare)
{
  compare_figures(compare);
  compare_failures(compare);
  for (int at_peak = 1; at_peak >= 0; at_peak--)
    if ((compare->tags.n && !compare_table(compare, MOMENT_BY_TAG, at_peak)) ||
        (compare->stacks.n && !compare_table(compare, MOMENT_BY_STACK, at_peak)) ||
        !compare_table(compare, MOMENT_BY_SIZE, at_peak))
      return false;
  return true;
}

json_t *compare_summary(const struct blocks *before, const struct blocks *after, const char *const names[2])
{
  struct compare compare = {.sides = {{.blocks = before, .name = names[0]}, {.blocks = after, .name = names[1]}},
                            .findings = json_array(),
                            .tables = json_array()};
  char title[2 * TEXT_QUOTE_BYTES];
  json_t *missing = json_array();
  bool good = compare_measure(&compare, 0) && compare_measure(&compare, 1) && compare_tell(&compare);
  snprintf(title, sizeof title, "%.*s beside %.*s", TEXT_QUOTE_BYTES - 8, names[1], TEXT_QUOTE_BYTES - 8, names[0]);
  output_add_sentence(missing,
                      "What an allocator holds beyond these blocks is not in a log: `hipmm replay --fit` finds the "
                      "least memory with which each runs.");
  if (!compare.stacks.n)
    output_add_sentence(missing, "The logs have no call stacks, so blocks are told apart by their sizes%s only.",
                        compare.tags.n ? " and tags" : "");
  for (int side = 0; side < 2; side++) {
    free(compare.sides[side].live);
    free(compare.sides[side].stacks);
    free(compare.sides[side].tags);
  }
  stack_texts_clear(&compare.stacks);
  stack_texts_clear(&compare.tags);
  free(compare.shown);
  json_t *summary = json_pack("{s:o, s:o, s:o, s:o}", "title", output_json_string(title), "findings", compare.findings,
                              "missing", missing, "tables", compare.tables);
  if (good) return summary;
  json_decref(summary);
  return NULL;
}
