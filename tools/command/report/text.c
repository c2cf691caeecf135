/* SPDX-License-Identifier: MIT */
/* text.c: a report as text: the findings, the live bytes over time, and tables. */
#include "../../../core/base/text.h"
#include "../../../core/base/units.h"
#include "../lines.h"
#include "report.h"

#include <string.h>

enum { TEXT_ROWS = 8, TEXT_GROUPS = 8, TEXT_LABEL = 12, TEXT_NARROW = 64 };

static void text_heading(const char *heading)
{
  putchar('\n');
  lines_heading(heading);
}

/* ---- The curve ------------------------------------------------------------------------------------------------- */

/* The most of the bins that a column of the plot stands for. */
uint64_t text_column(const json_t *most, size_t column, size_t columns)
{
  size_t n = json_array_size(most), from = column * n / columns, to = (column + 1) * n / columns;
  uint64_t value = 0;
  for (size_t i = from; i < n && (i < to || i == from); i++) {
    uint64_t bin = (uint64_t)json_integer_value(json_array_get(most, i));
    if (bin > value) value = bin;
  }
  return value;
}

/* Eighths of a character. */
static const char *const text_bars[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

static const char *text_bar(double eighths)
{
  return text_bars[eighths <= 0 ? 0 : eighths >= 8 ? 8 : (int)(eighths + 0.5)];
}

const char *text_spark(const json_t *most, uint64_t peak, size_t columns, char *line)
{
  size_t used = 0;
  for (size_t column = 0; column < columns; column++) {
    const double eighths = peak ? (double)text_column(most, column, columns) / (double)peak * 8 : 0;
    used += (size_t)snprintf(line + used, 4, "%s", eighths < 0.5 ? "\u00a0" : text_bar(eighths)); /* pages keep it */
  }
  line[used] = '\0';
  return line;
}

/* Live bytes as bars; what is held beyond them is a shade. */
static void text_curve(const json_t *summary)
{
  const json_t *most = lines_at(summary, "timeline.most"), *held = lines_at(summary, "timeline.held");
  uint64_t peak = lines_count(summary, "peak.bytes"), held_peak = lines_count(summary, "held.peak_bytes");
  if (held_peak > peak) peak = held_peak;
  size_t columns = terminal_width() > 40 ? terminal_width() - TEXT_LABEL - 1 : 28;
  if (columns > 160) columns = 160;
  text_heading(held ? "Live bytes, over the events of the log; ░ is held and idle"
                    : "Live bytes, over the events of the log");
  for (int row = TEXT_ROWS - 1; row >= 0; row--) {
    printf("%*s ", TEXT_LABEL - 1, row == TEXT_ROWS - 1 ? UNITS_BYTES(peak) : row ? "" : "0 B");
    for (size_t column = 0; column < columns; column++) {
      double eighths = peak ? (double)text_column(most, column, columns) / (double)peak * 8 * TEXT_ROWS - 8 * row : 0;
      double above = peak ? (double)text_column(held, column, columns) / (double)peak * TEXT_ROWS - row : 0;
      fputs(eighths < 0.5 && above >= 0.5 ? "░" : text_bar(eighths), stdout);
    }
    putchar('\n');
  }
}

/* ---- Tables ---------------------------------------------------------------------------------------------------- */

/* What a group of blocks has in common. */
static void text_group_name(const json_t *group, char *name, size_t name_bytes)
{
  uint64_t log2 = lines_count(group, "log2");
  if (json_object_get(group, "log2"))
    snprintf(name, name_bytes, "%s to %s", UNITS_BYTES(UINT64_C(1) << log2),
             log2 < 63 ? UNITS_BYTES(UINT64_C(2) << log2) : "more");
  else if (json_object_get(group, "size"))
    snprintf(name, name_bytes, "of %s", UNITS_BYTES(lines_count(group, "size")));
  else if (json_object_get(group, "tag"))
    snprintf(name, name_bytes, *lines_text(group, "tag") ? "tag %s" : "no tag", lines_text(group, "tag"));
  else if (json_object_get(group, "stream"))
    snprintf(name, name_bytes, "stream %s", lines_text(group, "stream"));
  else
    snprintf(name, name_bytes, "%s", lines_text(group, "name"));
}

/* "     6 MiB  85.7 %         2 blocks  of 3 MiB"; in a narrow terminal shorter, and in as many lines as that takes. */
static void text_group(const json_t *group, uint64_t whole)
{
  char name[256], count[64];
  bool is_narrow = terminal_width() < TEXT_NARROW;
  struct wrap wrap = {.prefix = is_narrow ? "                  " : "                                       "};
  uint64_t bytes = lines_count(group, "bytes"), blocks = lines_count(group, "blocks");
  printf(is_narrow ? "%10s %3.0f %%  " : "  %10s %5.1f %%  ", UNITS_BYTES(bytes),
         whole ? 100.0 * (double)bytes / (double)whole : 0);
  snprintf(count, sizeof count, is_narrow ? "%llu block%s" : "%8llu block%-1s ", (unsigned long long)blocks,
           text_plural(blocks));
  wrap.column = strlen(wrap.prefix);
  if (is_narrow)
    wrap_item(&wrap, 0, STYLE_OFF, count);
  else
    printf("%s ", count);
  text_group_name(group, name, sizeof name);
  wrap_words(&wrap, STYLE_OFF, name);
  wrap_end(&wrap);
}

static void text_groups(const json_t *groups, uint64_t whole, size_t most)
{
  for (size_t i = 0; i < json_array_size(groups) && i < most; i++) text_group(json_array_get(groups, i), whole);
}

/* The blocks by size, and the same blocks by stream, by tag and by call stack. */
static void text_moment(const json_t *moment, const char *heading)
{
  uint64_t whole = lines_count(moment, "bytes");
  const json_t *streams = json_object_get(moment, "by_stream"), *stacks = json_object_get(moment, "by_stack"),
               *tags = json_object_get(moment, "by_tag");
  if (!lines_count(moment, "blocks")) return;
  text_heading(heading);
  text_groups(json_object_get(moment, "by_size"), whole, TEXT_GROUPS);
  if (json_array_size(streams) > 1) putchar('\n');
  if (json_array_size(streams) > 1) text_groups(streams, whole, TEXT_GROUPS);
  if (json_array_size(tags)) putchar('\n');
  text_groups(tags, whole, TEXT_GROUPS);
  if (json_array_size(stacks)) putchar('\n');
  text_groups(stacks, whole, TEXT_GROUPS);
}

void report_text(const json_t *summary)
{
  lines_heading(lines_text(summary, "title"));
  if (!lines_count(summary, "events")) {
    printf("The log has no events.\n");
    return;
  }
  lines_items(json_object_get(summary, "findings"));
  text_curve(summary);
  state_text_tables(lines_at(summary, "held.tables"));
  text_moment(json_object_get(summary, "peak"), "Live at the peak");
  text_moment(json_object_get(summary, "end"), "Not freed at the end");
  text_heading("Sizes, of all allocations");
  text_groups(json_object_get(summary, "sizes"), lines_count(summary, "requested_bytes"), SIZE_MAX);
}
