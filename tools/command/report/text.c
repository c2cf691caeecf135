/* SPDX-License-Identifier: MIT */
/* text.c: a report as text: the findings, the live bytes over time, and tables. */
#include "../../../core/base/text.h"
#include "../../../core/base/units.h"
#include "../cmd.h"
#include "report.h"

#include <string.h>

enum { TEXT_ROWS = 8, TEXT_GROUPS = 8, TEXT_WORDS = 64, TEXT_LABEL = 12, TEXT_NARROW = 64 };

static uint64_t text_number(const json_t *object, const char *key)
{
  return (uint64_t)json_integer_value(json_object_get(object, key));
}

static void text_heading(const char *heading)
{
  printf("\n%s%s%s\n", style(STYLE_NAME), heading, style(STYLE_OFF));
}

void report_put_sentences(const json_t *sentences)
{
  size_t i;
  json_t *sentence;
  json_array_foreach(sentences, i, sentence)
  {
    struct wrap wrap = {.prefix = "  "};
    printf("- ");
    wrap.column = 2;
    wrap_words(&wrap, STYLE_OFF, json_string_value(sentence));
    wrap_end(&wrap);
  }
}

/* ---- The curve ------------------------------------------------------------------------------------------------- */

/* The most of the bins that a column of the plot stands for. */
static uint64_t text_column(const json_t *most, size_t column, size_t columns)
{
  size_t n = json_array_size(most), from = column * n / columns, to = (column + 1) * n / columns;
  uint64_t value = 0;
  for (size_t i = from; i < n && (i < to || i == from); i++) {
    uint64_t bin = (uint64_t)json_integer_value(json_array_get(most, i));
    if (bin > value) value = bin;
  }
  return value;
}

/* Bars of eighths of a character. */
static void text_curve(const json_t *summary)
{
  static const char *const bars[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const json_t *most = json_object_get(json_object_get(summary, "timeline"), "most");
  uint64_t peak = text_number(json_object_get(summary, "peak"), "bytes");
  size_t columns = terminal_width() > 40 ? terminal_width() - TEXT_LABEL - 1 : 28;
  char words[TEXT_WORDS];
  if (columns > 160) columns = 160;
  text_heading("Live bytes, over the events of the log");
  for (int row = TEXT_ROWS - 1; row >= 0; row--) {
    const char *label = row == TEXT_ROWS - 1 ? units_format_bytes(peak, words, sizeof words) : row ? "" : "0 B";
    printf("%*s ", TEXT_LABEL - 1, label);
    for (size_t column = 0; column < columns; column++) {
      double eighths = peak ? (double)text_column(most, column, columns) / (double)peak * 8 * TEXT_ROWS - 8 * row : 0;
      printf("%s", bars[eighths <= 0 ? 0 : eighths >= 8 ? 8 : (int)(eighths + 0.5)]);
    }
    putchar('\n');
  }
}

/* ---- Tables ---------------------------------------------------------------------------------------------------- */

/* The same in a narrow terminal: "   1.25 GiB  33 %  10 blocks of 128 MiB", in as many lines as that takes. */
static void text_narrow_group(const json_t *group, uint64_t whole, const char *name)
{
  char words[TEXT_WORDS];
  struct wrap wrap = {.prefix = "                  "};
  uint64_t bytes = text_number(group, "bytes"), blocks = text_number(group, "blocks");
  printf("%10s %3.0f %%  ", units_format_bytes(bytes, words, sizeof words),
         whole ? 100.0 * (double)bytes / (double)whole : 0);
  wrap.column = strlen(wrap.prefix);
  snprintf(words, sizeof words, "%llu block%s", (unsigned long long)blocks, text_plural(blocks));
  wrap_item(&wrap, 0, STYLE_OFF, words);
  wrap_words(&wrap, STYLE_OFF, name);
  wrap_end(&wrap);
}

static void text_group(const json_t *group, uint64_t whole, const char *name)
{
  char words[TEXT_WORDS];
  struct wrap wrap = {.prefix = "                                       "};
  uint64_t bytes = text_number(group, "bytes");
  if (terminal_width() < TEXT_NARROW) {
    text_narrow_group(group, whole, name);
    return;
  }
  printf("  %10s %5.1f %%  %8llu block%-1s  ", units_format_bytes(bytes, words, sizeof words),
         whole ? 100.0 * (double)bytes / (double)whole : 0, (unsigned long long)text_number(group, "blocks"),
         text_plural(text_number(group, "blocks")));
  wrap.column = strlen(wrap.prefix);
  wrap_words(&wrap, STYLE_OFF, name);
  wrap_end(&wrap);
}

static void text_moment(const json_t *moment, const struct blocks *blocks, const char *heading)
{
  char name[BLOCKS_STACK_NAME_BYTES], words[TEXT_WORDS];
  size_t i;
  json_t *group;
  uint64_t whole = text_number(moment, "bytes");
  if (!text_number(moment, "blocks")) return;
  text_heading(heading);
  json_array_foreach(json_object_get(moment, "by_size"), i, group)
  {
    if (i == TEXT_GROUPS) break;
    snprintf(name, sizeof name, "of %s", units_format_bytes(text_number(group, "size"), words, sizeof words));
    text_group(group, whole, name);
  }
  if (json_array_size(json_object_get(moment, "by_stream")) > 1) {
    printf("\n"); /* the same blocks in another way */
    json_array_foreach(json_object_get(moment, "by_stream"), i, group)
    {
      snprintf(name, sizeof name, "stream %s", json_string_value(json_object_get(group, "stream")));
      if (i < TEXT_GROUPS) text_group(group, whole, name);
    }
  }
  if (json_array_size(json_object_get(moment, "by_stack"))) printf("\n");
  json_array_foreach(json_object_get(moment, "by_stack"), i, group)
  {
    if (i == TEXT_GROUPS) break;
    blocks_stack_name(blocks, (uint32_t)text_number(group, "stack"), name, sizeof name);
    text_group(group, whole, name);
  }
}

static void text_sizes(const json_t *summary)
{
  char from[TEXT_WORDS], to[TEXT_WORDS], name[2 * TEXT_WORDS];
  size_t i;
  json_t *bin;
  text_heading("Sizes, of all allocations");
  json_array_foreach(json_object_get(summary, "sizes"), i, bin)
  {
    uint64_t log2 = text_number(bin, "log2");
    snprintf(name, sizeof name, "%s to %s", units_format_bytes(UINT64_C(1) << log2, from, sizeof from),
             log2 < 63 ? units_format_bytes(UINT64_C(2) << log2, to, sizeof to) : "more");
    text_group(bin, text_number(summary, "requested_bytes"), name);
  }
}

void report_text(const json_t *summary, const struct blocks *blocks)
{
  printf("%s", style(STYLE_NAME));
  output_text(stdout, json_string_value(json_object_get(summary, "title")));
  printf("%s\n", style(STYLE_OFF));
  if (!blocks->n_events) {
    printf("The log has no events.\n");
    return;
  }
  report_put_sentences(json_object_get(summary, "findings"));
  text_curve(summary);
  text_moment(json_object_get(summary, "peak"), blocks, "Live at the peak");
  text_moment(json_object_get(summary, "end"), blocks, "Not freed at the end");
  text_sizes(summary);
}
