/* SPDX-License-Identifier: MIT */
/* html.c: a report of a log as one HTML file: in the page (report.h) stand the summary as JSON, and the blocks as columns of numbers in
 * base64. The script in the page draws from the columns, so that it can zoom to each block.
 *
 * A page of a million events should be small enough to send. So a number has as many bytes as it needs, of seven bits, the
 * lowest first and all but the last with the eighth bit (LEB128). An event that allocates is the difference to the one before.
 * An event that frees is the difference to the one that allocated. Other columns have few values, which stand in a table before
 * the column, the most frequent first; a number is the value's place in the table. */
#include "../../../core/base/key_map.h"
#include "../cmd.h"
#include "report.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

/* The most blocks in a file. Of more, those that hold the most memory for the longest time are kept. */
enum {
  HTML_MOST_BLOCKS = 1000000,
  HTML_TIMES = 4096,
  HTML_MOST_RANGES = 4096,
  HTML_GAP = 1 << 21,
  HTML_MOST_STACK_BYTES = 64 << 20
};

/* ---- Base64 ---------------------------------------------------------------------------------------------------- */

struct html_base64 {
  FILE *file;
  unsigned char bytes[3];
  size_t n;
};

static void html_base64_flush(struct html_base64 *base64)
{
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const unsigned char *in = base64->bytes;
  if (!base64->n) return;
  putc(digits[in[0] >> 2], base64->file);
  putc(digits[(in[0] & 3) << 4 | in[1] >> 4], base64->file);
  putc(base64->n > 1 ? digits[(in[1] & 15) << 2 | in[2] >> 6] : '=', base64->file);
  putc(base64->n > 2 ? digits[in[2] & 63] : '=', base64->file);
  memset(base64->bytes, 0, sizeof base64->bytes);
  base64->n = 0;
}

/* The number's lowest `bytes` bytes, lowest first. */
static void html_base64_put(struct html_base64 *base64, uint64_t number, unsigned bytes)
{
  for (; bytes > 0; bytes--, number >>= 8) {
    base64->bytes[base64->n++] = (unsigned char)number;
    if (base64->n == sizeof base64->bytes) html_base64_flush(base64);
  }
}

static void html_base64_put_real(struct html_base64 *base64, double number)
{
  uint64_t bits;
  memcpy(&bits, &number, sizeof bits);
  html_base64_put(base64, bits, sizeof bits);
}

/* ---- Data ------------------------------------------------------------------------------------------------------ */

struct html {
  FILE *file;
  size_t index; /* of the summary, among several */
  const json_t *summary;
  const struct blocks *blocks;
  const struct block **kept; /* in the order of their allocation */
  size_t n_kept;
};

static double html_weight(const struct blocks *blocks, const struct block *block)
{
  uint64_t end = block->to == BLOCK_IS_LIVE ? blocks->n_events : block->to;
  return (double)block->bytes * (double)(end - block->from);
}

struct html_weighed {
  double weight;
  size_t index;
};

static int html_compare_weights(const void *one, const void *other)
{
  const struct html_weighed *a = one, *b = other;
  if (a->weight != b->weight) return a->weight > b->weight ? -1 : 1;
  return a->index < b->index ? -1 : 1;
}

static int html_compare_blocks(const void *one, const void *other)
{
  const struct block *const *a = one, *const *b = other;
  return *a < *b ? -1 : *a > *b;
}

/* Chooses the blocks of the page. False: out of memory. */
static bool html_keep(struct html *html)
{
  const struct blocks *blocks = html->blocks;
  html->n_kept = blocks->n < HTML_MOST_BLOCKS ? blocks->n : HTML_MOST_BLOCKS;
  html->kept = calloc(html->n_kept + 1, sizeof(const struct block *));
  struct html_weighed *weighed = html->n_kept < blocks->n ? calloc(blocks->n, sizeof *weighed) : NULL;
  if (!html->kept || (html->n_kept < blocks->n && !weighed)) return false;
  for (size_t i = 0; weighed && i < blocks->n; i++)
    weighed[i] = (struct html_weighed){html_weight(blocks, &blocks->items[i]), i};
  if (weighed) qsort(weighed, blocks->n, sizeof *weighed, html_compare_weights);
  for (size_t i = 0; i < html->n_kept; i++) html->kept[i] = &blocks->items[weighed ? weighed[i].index : i];
  if (weighed) qsort(html->kept, html->n_kept, sizeof(const struct block *), html_compare_blocks);
  free(weighed);
  return true;
}

/* Begins data of the page, which the script finds by its name and, of another summary than the first, its number. */
static void html_begin(const struct html *html, const char *type, const char *name)
{
  fprintf(html->file, "<script type=\"%s\" id=\"%s", type, name);
  if (html->index) fprintf(html->file, "-%zu", html->index);
  fputs("\">", html->file);
}

static void html_base64_put_number(struct html_base64 *base64, uint64_t number)
{
  for (; number > 127; number >>= 7) html_base64_put(base64, number | 128, 1);
  html_base64_put(base64, number, 1);
}

/* The events of the blocks: those that allocate, or those that free, for which a block that is not freed has 0. */
static void html_events(const struct html *html, const char *name, bool are_frees)
{
  struct html_base64 base64 = {.file = html->file};
  uint32_t before = 0;
  html_begin(html, "text/plain", name);
  for (size_t i = 0; i < html->n_kept; i++) {
    const struct block *block = html->kept[i];
    const uint32_t lifetime = block->to == BLOCK_IS_LIVE ? 0 : block->to - block->from;
    html_base64_put_number(&base64, are_frees ? lifetime : block->from - before);
    before = block->from;
  }
  html_base64_flush(&base64);
  fputs("</script>\n", html->file);
}

enum html_column { HTML_ADDRESS, HTML_BYTES, HTML_STREAM, HTML_THREAD, HTML_STACK };

static uint64_t html_value(const struct block *block, enum html_column column)
{
  switch (column) {
  case HTML_ADDRESS: return block->address;
  case HTML_BYTES: return block->bytes;
  case HTML_STREAM: return block->stream;
  case HTML_THREAD: return block->thread;
  default: return block->stack;
  }
}

struct html_row {
  uint64_t value;
  size_t blocks;
};

static int html_compare_values(const void *one, const void *other)
{
  const struct html_row *a = one, *b = other;
  return a->value < b->value ? -1 : a->value > b->value;
}

static int html_compare_uses(const void *one, const void *other)
{
  const struct html_row *a = one, *b = other;
  if (a->blocks != b->blocks) return a->blocks > b->blocks ? -1 : 1;
  return html_compare_values(one, other);
}

/* The table of a column: as many rows as there are values. NULL: out of memory. */
static struct html_row *html_table(const struct html *html, enum html_column column, size_t *n_out)
{
  struct html_row *rows = calloc(html->n_kept + 1, sizeof *rows);
  size_t n = 0;
  for (size_t i = 0; rows && i < html->n_kept; i++) rows[i] = (struct html_row){html_value(html->kept[i], column), 1};
  if (rows) qsort(rows, html->n_kept, sizeof *rows, html_compare_values);
  for (size_t i = 0; rows && i < html->n_kept; i++)
    if (n && rows[n - 1].value == rows[i].value)
      rows[n - 1].blocks++;
    else
      rows[n++] = rows[i];
  if (rows) qsort(rows, n, sizeof *rows, html_compare_uses);
  *n_out = n;
  return rows;
}

/* A column by its table; of a table with one value nothing follows. False: out of memory. */
static bool html_column(const struct html *html, const char *name, enum html_column column)
{
  struct html_base64 base64 = {.file = html->file};
  struct key_map places = {0}; /* from 1, by value */
  size_t n;
  struct html_row *rows = html_table(html, column, &n);
  bool good = rows != NULL;
  html_begin(html, "text/plain", name);
  if (good) html_base64_put_number(&base64, n);
  for (size_t i = 0; good && i < n; i++) {
    html_base64_put_number(&base64, rows[i].value);
    good = key_map_put(&places, rows[i].value, i + 1);
  }
  for (size_t i = 0; good && n > 1 && i < html->n_kept; i++)
    html_base64_put_number(&base64, key_map_get(&places, html_value(html->kept[i], column)) - 1);
  html_base64_flush(&base64);
  fputs("</script>\n", html->file);
  key_map_clear(&places);
  free(rows);
  return good;
}

/* Times of events that are equally far apart, the first and the last among them. */
static void html_times(const struct html *html)
{
  const struct blocks *blocks = html->blocks;
  struct html_base64 base64 = {.file = html->file};
  size_t n = blocks->n_events < HTML_TIMES ? blocks->n_events : HTML_TIMES;
  html_begin(html, "text/plain", "column-times");
  for (size_t i = 0; blocks->has_times && i < n; i++)
    html_base64_put_real(&base64, (double)blocks->times[n > 1 ? i * (blocks->n_events - 1) / (n - 1) : 0] / 1e9);
  html_base64_flush(&base64);
  fputs("</script>\n", html->file);
}

static int html_compare_addresses(const void *one, const void *other)
{
  const struct block *const *a = one, *const *b = other;
  return (*a)->address < (*b)->address ? -1 : (*a)->address > (*b)->address;
}

/* Addresses have gaps of terabytes. Merges what is less than `gap` apart into `ranges`: how many there are, also those for
 * which there is no room. */
static size_t html_merge(const struct block *const *sorted, size_t n, uint64_t gap, uint64_t (*ranges)[2])
{
  size_t n_ranges = 0;
  uint64_t end = 0, near;
  for (size_t i = 0; i < n; i++) {
    uint64_t from = sorted[i]->address & -(uint64_t)HTML_GAP, to;
    if (__builtin_add_overflow(sorted[i]->address, sorted[i]->bytes + HTML_GAP - 1, &to)) to = UINT64_MAX;
    to &= -(uint64_t)HTML_GAP;
    if (to <= from) to = from + HTML_GAP - 1;
    if (__builtin_add_overflow(end, gap, &near)) near = UINT64_MAX;
    if (!n_ranges || from > near) {
      n_ranges++;
      if (n_ranges <= HTML_MOST_RANGES) ranges[n_ranges - 1][0] = from;
      end = to;
    }
    if (to > end) end = to;
    if (n_ranges <= HTML_MOST_RANGES) ranges[n_ranges - 1][1] = end;
  }
  return n_ranges;
}

/* The ranges of addresses with blocks: start and end of each. False: out of memory. */
static bool html_ranges(const struct html *html)
{
  struct html_base64 base64 = {.file = html->file};
  uint64_t(*ranges)[2] = calloc(HTML_MOST_RANGES, sizeof *ranges), gap = 0;
  const struct block **sorted = calloc(html->n_kept + 1, sizeof(const struct block *));
  bool good = ranges && sorted;
  size_t n = 0;
  if (good) {
    memcpy(sorted, html->kept, html->n_kept * sizeof(const struct block *));
    qsort(sorted, html->n_kept, sizeof(const struct block *), html_compare_addresses);
    while ((n = html_merge((const struct block *const *)sorted, html->n_kept, gap, ranges)) > HTML_MOST_RANGES)
      gap = gap ? 4 * gap : HTML_GAP;
  }
  html_begin(html, "text/plain", "column-ranges");
  for (size_t i = 0; i < n; i++) {
    html_base64_put_real(&base64, (double)ranges[i][0]);
    html_base64_put_real(&base64, (double)ranges[i][1]);
  }
  html_base64_flush(&base64);
  fputs("</script>\n", html->file);
  free(sorted);
  free(ranges);
  return good;
}

/* A text in the log cannot end the script that it stands in. */
static void html_put_json_text(FILE *file, const char *text)
{
  for (; *text; text++)
    if (*text == '<')
      fputs("\\u003c", file);
    else
      putc(*text, file);
}

static bool html_json(const struct html *html)
{
  json_t *object = json_copy((json_t *)html->summary), *stacks = json_array(), *names = json_array();
  char name[BLOCKS_STACK_NAME_BYTES];
  size_t bytes = 0;
  for (uint32_t i = 0; i < html->blocks->stacks.n; i++) {
    const char *text = bytes < HTML_MOST_STACK_BYTES ? stack_texts_get(&html->blocks->stacks, i) : NULL;
    if (text) bytes += strlen(text);
    json_array_append_new(stacks, output_json_string(text ? text : ""));
    if (bytes < HTML_MOST_STACK_BYTES)
      blocks_stack_name(html->blocks, i, name, sizeof name);
    else
      snprintf(name, sizeof name, "(call stack %u: the page has room for fewer)", i);
    json_array_append_new(names, output_json_string(name));
  }
  json_object_set_new(object, "stacks", stacks);
  json_object_set_new(object, "stack_names", names);
  json_object_set_new(object, "stack_sample", json_integer((json_int_t)html->blocks->stack_sample));
  json_object_set_new(object, "kept_blocks", json_integer((json_int_t)html->n_kept));
  char *text = json_dumps(object, JSON_COMPACT);
  json_decref(object);
  if (!text) return false;
  html_begin(html, "application/json", "summary");
  html_put_json_text(html->file, text);
  fputs("</script>\n", html->file);
  free(text);
  return true;
}

static bool html_data(const struct html *html)
{
  if (!html_json(html) || !html_ranges(html)) return false;
  html_events(html, "column-from", false);
  html_events(html, "column-to", true);
  html_times(html);
  return html_column(html, "column-address", HTML_ADDRESS) && html_column(html, "column-bytes", HTML_BYTES) &&
         html_column(html, "column-stream", HTML_STREAM) && html_column(html, "column-thread", HTML_THREAD) &&
         html_column(html, "column-stack", HTML_STACK);
}

/* ---- The page -------------------------------------------------------------------------------------------------- */

struct html_page {
  const json_t *summaries;
  const struct blocks_list *list;
};

static bool html_put_data(FILE *file, const void *closure)
{
  const struct html_page *page = closure;
  bool good = true;
  for (size_t i = 0; good && i < page->list->n; i++) {
    struct html html = {
        .file = file, .index = i, .summary = json_array_get(page->summaries, i), .blocks = &page->list->items[i]};
    good = html_keep(&html) && html_data(&html);
    free(html.kept);
  }
  return good;
}

bool report_html(FILE *file, const char *title, const json_t *summaries, const struct blocks_list *list)
{
  const struct html_page page = {summaries, list};
  return page_write(file, "page.html", title, html_put_data, &page) && fflush(file) == 0 && !ferror(file);
}
