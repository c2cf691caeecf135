/* SPDX-License-Identifier: MIT */
/* columns.c: see columns.h. The script in the page draws from columns of numbers in base64, so that it can zoom to each block.
 *
 * A page of a million events should be small enough to send. So numbers are Exp-Golomb codes of the order that suits their
 * column: see html_numbers(). An event that allocates is the difference to the one before. An event that frees is the
 * difference to the one that allocated. Other columns mostly have few values, which stand in a table, the most frequent first;
 * a number is the value's place in the table. Addresses that mostly differ have no table. */
#include "columns.h"
#include "../../../core/base/key_map.h"
#include "../trace/moment.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

enum {
  HTML_TIMES = 4096,
  HTML_MOST_RANGES = 4096,
  HTML_MOST_SEGMENTS = 100000,
  HTML_MOST_PARTS = 65536,
  HTML_MOST_ORDER = 48,
  HTML_OTHER_WAY = 1 << 30,
  HTML_GAP = 1 << 21
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

void html_begin(const struct html *html, const char *type, const char *name)
{
  fprintf(html->file, "<script type=\"%s\" id=\"%s", type, name);
  if (html->index) fprintf(html->file, "-%zu", html->index);
  fputs("\">", html->file);
}

struct html_bits {
  struct html_base64 base64;
  unsigned byte, n; /* the bits of a byte that is not full */
};

/* The lowest bits of a number, the lowest first. */
static void html_bits_put(struct html_bits *bits, uint64_t number, unsigned n)
{
  for (; n > 0; n--, number >>= 1) {
    bits->byte |= (unsigned)(number & 1) << bits->n;
    if (++bits->n < 8) continue;
    html_base64_put(&bits->base64, bits->byte, 1);
    bits->byte = bits->n = 0;
  }
}

static unsigned html_bit_length(uint64_t number)
{
  return number ? 64 - (unsigned)__builtin_clzll(number) : 0;
}

/* How many bits a code has beyond its order. */
static unsigned html_code_length(uint64_t number, unsigned order)
{
  return html_bit_length(number + (UINT64_C(1) << order)) - 1 - order;
}

/* The order with which the numbers take the fewest bits. */
static unsigned html_order(const uint64_t *numbers, size_t n)
{
  uint64_t least = UINT64_MAX;
  unsigned best = 0;
  for (unsigned order = 0; order < HTML_MOST_ORDER; order++) {
    uint64_t bits = 0;
    for (size_t i = 0; i < n; i++) bits += 2 * html_code_length(numbers[i], order) + order + 1;
    if (bits >= least) continue;
    least = bits;
    best = order;
  }
  return best;
}

/* A column: the order K as a byte, then a code for each number N below 2^63: for N + 2^K, which has K + 1 + Z bits, Z bits 0, a bit 1,
 * and its lowest K + Z bits. */
static void html_numbers(const struct html *html, const char *name, const uint64_t *numbers, size_t n)
{
  struct html_bits bits = {.base64 = {.file = html->file}};
  const unsigned order = html_order(numbers, n);
  html_begin(html, "text/plain", name);
  html_bits_put(&bits, order, 8);
  for (size_t i = 0; i < n; i++) {
    const unsigned zeros = html_code_length(numbers[i], order);
    html_bits_put(&bits, 0, zeros);
    html_bits_put(&bits, 1, 1);
    html_bits_put(&bits, numbers[i] + (UINT64_C(1) << order), order + zeros);
  }
  if (bits.n) html_bits_put(&bits, 0, 8 - bits.n);
  html_base64_flush(&bits.base64);
  fputs("</script>\n", html->file);
}

/* A difference as a number; one that no number of the script holds exactly is any. */
static uint64_t html_signed(uint64_t from, uint64_t to)
{
  const bool is_less = to < from;
  const uint64_t difference = is_less ? from - to : to - from;
  return (difference < UINT64_C(1) << 62 ? difference : 0) << 1 | is_less;
}

/* The bits that are 0 at the end of all values. */
static unsigned html_shift(uint64_t values)
{
  return values ? (unsigned)__builtin_ctzll(values) : 0;
}

/* The events of the blocks: those that allocate, or those that free, for which a block that is not freed has 0. */
static bool html_events(const struct html *html, const char *name, bool are_frees)
{
  uint64_t *numbers = calloc(html->n_kept + 1, sizeof *numbers);
  uint32_t before = 0;
  for (size_t i = 0; numbers && i < html->n_kept; i++) {
    const struct block *block = html->kept[i];
    const uint32_t lifetime = block->to == BLOCK_IS_LIVE ? 0 : block->to - block->from;
    numbers[i] = are_frees ? lifetime : block->from - before;
    before = block->from;
  }
  if (numbers) html_numbers(html, name, numbers, html->n_kept);
  free(numbers);
  return numbers != NULL;
}

enum html_column { HTML_ADDRESS, HTML_BYTES, HTML_STREAM, HTML_THREAD, HTML_STACK, HTML_TAG };

static uint64_t html_value(const struct html *html, const struct block *block, enum html_column column)
{
  switch (column) {
  case HTML_ADDRESS: return block->address;
  case HTML_BYTES: return block->bytes;
  case HTML_STREAM: return block->stream;
  case HTML_THREAD: return block->thread;
  case HTML_TAG: return blocks_tag(html->blocks, block);
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
  for (size_t i = 0; rows && i < html->n_kept; i++)
    rows[i] = (struct html_row){html_value(html, html->kept[i], column), 1};
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

/* The table: how many rows, how far values are shifted, and the differences between rows; for 0 rows the least value. */
static bool html_put_table(const struct html *html, const char *name, const struct html_row *rows, size_t n,
                           unsigned shift)
{
  char table[32];
  uint64_t *numbers = calloc(n + 3, sizeof *numbers), before = 0;
  if (!numbers) return false;
  numbers[0] = n;
  numbers[1] = shift;
  numbers[2] = rows->value >> shift;
  for (size_t i = 0; i < n; i++, before = rows[i - 1].value)
    numbers[i + 2] = html_signed(before >> shift, rows[i].value >> shift);
  snprintf(table, sizeof table, "%s-table", name);
  html_numbers(html, table, numbers, n ? n + 2 : 3);
  free(numbers);
  return true;
}

/* A column by its table; of a table with one value nothing follows. False: out of memory. */
static bool html_column(const struct html *html, const char *name, enum html_column column)
{
  struct key_map places = {0}; /* from 1, by value */
  size_t n, numbered = 0;
  struct html_row *rows = html_table(html, column, &n);
  uint64_t *numbers = calloc(html->n_kept + 1, sizeof *numbers), bits = 0, least = UINT64_MAX;
  bool good = rows && numbers;
  for (size_t i = 0; good && i < n; i++) {
    bits |= rows[i].value;
    if (rows[i].value < least) least = rows[i].value;
    good = key_map_put(&places, rows[i].value, i + 1);
  }
  const unsigned shift = html_shift(bits);
  const bool has_table = !good || n < 2 || n <= html->n_kept / 2;
  for (; good && n > 1 && numbered < html->n_kept; numbered++) {
    const uint64_t value = html_value(html, html->kept[numbered], column);
    numbers[numbered] = has_table ? key_map_get(&places, value) - 1 : html_signed(least >> shift, value >> shift) >> 1;
  }
  if (good && !has_table) rows->value = least;
  good = good && html_put_table(html, name, rows, has_table ? n : 0, shift);
  if (good) html_numbers(html, name, numbers, numbered);
  key_map_clear(&places);
  free(numbers);
  free(rows);
  return good;
}

/* ---- Levels and segments --------------------------------------------------------------------------------------- */

/* Steps of a level: their number, how far the bytes are shifted, then the differences of events and of bytes. */
static bool html_levels(const struct html *html, const char *name, const struct block_levels *levels)
{
  uint64_t *numbers = calloc(2 * levels->n + 2, sizeof *numbers), bits = 0;
  struct block_level before = {0, 0};
  if (!numbers) return false;
  for (size_t i = 0; i < levels->n; i++) bits |= levels->items[i].bytes;
  numbers[0] = levels->n;
  numbers[1] = html_shift(bits);
  for (size_t i = 0; i < levels->n; i++) {
    const struct block_level level = levels->items[i];
    numbers[2 * i + 2] = level.event - before.event;
    numbers[2 * i + 3] = html_signed(before.bytes >> numbers[1], level.bytes >> numbers[1]);
    before = level;
  }
  html_numbers(html, name, numbers, 2 * levels->n + 2);
  free(numbers);
  return true;
}

struct html_pages {
  uint64_t *numbers, before;
};

static void html_note_pages(void *closure, uint32_t event, uint64_t bytes)
{
  struct html_pages *pages = closure;
  const bool allocates = pages->numbers[event], is_less = bytes < pages->before;
  const uint64_t difference = is_less ? pages->before - bytes : bytes - pages->before;
  pages->numbers[event] = difference >> PAGES_SHIFT;
  if (difference && allocates == is_less) pages->numbers[event] += HTML_OTHER_WAY;
  pages->before = bytes;
}

/* The pages after each event, as differences: an event that allocates adds pages, others take some; where that is not so the number
 * is larger by HTML_OTHER_WAY. */
static bool html_pages(const struct html *html)
{
  const struct blocks *blocks = html->blocks;
  struct pages_result result;
  struct html_pages pages = {calloc(blocks->n_events + 1, sizeof *pages.numbers), 0};
  for (size_t i = 0; pages.numbers && i < blocks->n; i++) pages.numbers[blocks->items[i].from] = 1;
  bool good = pages.numbers && pages_count(blocks, html_note_pages, &pages, &result);
  if (good) html_numbers(html, "column-pages", pages.numbers, blocks->n_events);
  free(pages.numbers);
  return good;
}

/* Equal parts of the events, of a page that lacks blocks. */
struct html_parts {
  size_t n, n_events;
  struct block_levels most, least, pages; /* the most pages */
};

static struct block_level *html_part(const struct html_parts *parts, const struct block_levels *levels, size_t event)
{
  return &levels->items[event * parts->n / parts->n_events];
}

static bool html_parts_open(const struct html_parts *parts, struct block_levels *levels, uint64_t bytes)
{
  levels->items = calloc(parts->n, sizeof *levels->items);
  if (!levels->items) return false;
  for (levels->n = 0; levels->n < parts->n; levels->n++)
    levels->items[levels->n] =
        (struct block_level){bytes, (uint32_t)((levels->n * parts->n_events + parts->n - 1) / parts->n)};
  return true;
}

static void html_note_part(void *closure, uint32_t event, uint64_t bytes)
{
  const struct html_parts *parts = closure;
  struct block_level *most = html_part(parts, &parts->pages, event);
  if (bytes > most->bytes) most->bytes = bytes;
}

/* The most and the least live bytes of each part, and the most pages, as levels from its first event on. */
static bool html_parts(const struct html *html)
{
  const struct blocks *blocks = html->blocks;
  struct html_parts parts = {.n = blocks->n_events < HTML_MOST_PARTS ? blocks->n_events : HTML_MOST_PARTS,
                             .n_events = blocks->n_events};
  struct pages_result result;
  uint64_t *live = calloc(blocks->n_events, sizeof *live);
  bool good = live && html_parts_open(&parts, &parts.most, 0) && html_parts_open(&parts, &parts.least, UINT64_MAX) &&
              html_parts_open(&parts, &parts.pages, 0) && pages_count(blocks, html_note_part, &parts, &result);
  if (good) moment_curve(blocks, NULL, 0, live);
  for (size_t event = 0; good && event < blocks->n_events; event++) {
    struct block_level *most = html_part(&parts, &parts.most, event), *least = html_part(&parts, &parts.least, event);
    if (live[event] > most->bytes) most->bytes = live[event];
    if (live[event] < least->bytes) least->bytes = live[event];
  }
  good = good && html_levels(html, "column-most", &parts.most) && html_levels(html, "column-least", &parts.least) &&
         html_levels(html, "column-pages", &parts.pages);
  free(live);
  free(parts.most.items);
  free(parts.least.items);
  free(parts.pages.items);
  return good;
}

/* Segments: their number, then for each the differences of its begin and its address, how many events it is held (0: to the
 * end), and its bytes. */
static bool html_segments(const struct html *html)
{
  const struct segments *segments = &html->blocks->segments;
  const size_t n = segments->n < HTML_MOST_SEGMENTS ? segments->n : HTML_MOST_SEGMENTS;
  uint64_t *numbers = calloc(4 * n + 1, sizeof *numbers);
  struct segment before = {0};
  if (!numbers) return false;
  numbers[0] = n;
  for (size_t i = 0; i < n; i++) {
    const struct segment *segment = &segments->items[i];
    uint64_t *at = numbers + 4 * i + 1;
    at[0] = html_signed(before.from, segment->from);
    at[1] = html_signed(before.address, segment->address);
    at[2] = segment->to == SEGMENT_IS_HELD ? 0 : segment->to - segment->from + 1;
    at[3] = segment->bytes;
    before = *segment;
  }
  html_numbers(html, "column-segments", numbers, 4 * n + 1);
  free(numbers);
  return true;
}

/* ---- Times and addresses --------------------------------------------------------------------------------------- */

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

/* The addresses of a block or a segment. */
struct html_area {
  uint64_t address, bytes;
};

static int html_compare_addresses(const void *one, const void *other)
{
  const struct html_area *a = one, *b = other;
  return a->address < b->address ? -1 : a->address > b->address;
}

/* Addresses have gaps of terabytes. Merges what is less than `gap` apart into `ranges`: how many there are, also those for
 * which there is no room. */
static size_t html_merge(const struct html_area *sorted, size_t n, uint64_t gap, uint64_t (*ranges)[2])
{
  size_t n_ranges = 0;
  uint64_t end = 0, near;
  for (size_t i = 0; i < n; i++) {
    uint64_t from = sorted[i].address & -(uint64_t)HTML_GAP, to;
    if (__builtin_add_overflow(sorted[i].address, sorted[i].bytes + HTML_GAP - 1, &to)) to = UINT64_MAX;
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

/* All areas, by address. NULL: out of memory. */
static struct html_area *html_areas(const struct html *html, size_t *n_out)
{
  const struct segments *segments = &html->blocks->segments;
  struct html_area *areas = calloc(html->n_kept + segments->n + 1, sizeof *areas);
  size_t n = 0;
  for (size_t i = 0; areas && i < html->n_kept; i++)
    areas[n++] = (struct html_area){html->kept[i]->address, html->kept[i]->bytes};
  for (size_t i = 0; areas && i < segments->n; i++)
    areas[n++] = (struct html_area){segments->items[i].address, segments->items[i].bytes};
  if (areas) qsort(areas, n, sizeof *areas, html_compare_addresses);
  *n_out = n;
  return areas;
}

/* The ranges of addresses with blocks or segments: start and end of each. False: out of memory. */
static bool html_ranges(const struct html *html)
{
  struct html_base64 base64 = {.file = html->file};
  uint64_t(*ranges)[2] = calloc(HTML_MOST_RANGES, sizeof *ranges), gap = 0;
  size_t n = 0, n_areas;
  struct html_area *areas = html_areas(html, &n_areas);
  bool good = ranges && areas;
  while (good && (n = html_merge(areas, n_areas, gap, ranges)) > HTML_MOST_RANGES) gap = gap ? 4 * gap : HTML_GAP;
  html_begin(html, "text/plain", "column-ranges");
  for (size_t i = 0; good && i < n; i++) {
    html_base64_put_real(&base64, (double)ranges[i][0]);
    html_base64_put_real(&base64, (double)ranges[i][1]);
  }
  html_base64_flush(&base64);
  fputs("</script>\n", html->file);
  free(areas);
  free(ranges);
  return good;
}

bool html_columns(const struct html *html)
{
  if (!html_ranges(html) || !html_events(html, "column-from", false) || !html_events(html, "column-to", true))
    return false;
  html_times(html);
  return html_levels(html, "column-held", &html->blocks->held) &&
         html_levels(html, "column-device_free", &html->blocks->device_free) &&
         (html->n_kept == html->blocks->n ? html_pages(html) : html_parts(html)) && html_segments(html) &&
         html_column(html, "column-address", HTML_ADDRESS) && html_column(html, "column-bytes", HTML_BYTES) &&
         html_column(html, "column-stream", HTML_STREAM) && html_column(html, "column-thread", HTML_THREAD) &&
         html_column(html, "column-stack", HTML_STACK) && html_column(html, "column-tag", HTML_TAG);
}
