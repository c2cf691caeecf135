/* SPDX-License-Identifier: MIT */
/* screen.c: see top.h. */
#include "../../../core/base/text.h"
#include "../../../core/base/units.h"
#include "../array.h"
#include "../cmd.h"
#include "top.h"

#include <stdlib.h>
#include <string.h>

enum { SCREEN_WORDS = 64, SCREEN_NUMBER = 11, SCREEN_NAME = 24, SCREEN_COMMAND = 10 };

/* A row of a process. */
struct screen_row {
  const struct live_file *process;
  const struct live_row *row;
  const struct screen_memory *memory; /* NULL: none */
};

/* ---- Memory ---------------------------------------------------------------------------------------------------- */

static struct screen_memory *screen_memory_of(const struct screen *screen, uint32_t process, const char *path)
{
  for (size_t i = 0; i < screen->n_memories; i++)
    if (screen->memories[i].process == process && strcmp(screen->memories[i].path, path) == 0)
      return &screen->memories[i];
  return NULL;
}

/* NULL: out of memory. */
static struct screen_memory *screen_new_memory(struct screen *screen, uint32_t process, const char *path)
{
  if (!array_grow(&screen->memories, screen->n_memories, &screen->capacity, sizeof *screen->memories)) return NULL;
  struct screen_memory *memory = &screen->memories[screen->n_memories++];
  *memory = (struct screen_memory){.process = process, .allocations = LIVE_UNKNOWN, .rate = -1};
  snprintf(memory->path, sizeof memory->path, "%s", path);
  return memory;
}

/* What a row holds: reserved, or what is live where nothing is reserved. */
static int64_t screen_held(const struct live_row *row)
{
  return row->counters[LIVE_RESERVED] != LIVE_UNKNOWN ? row->counters[LIVE_RESERVED] : row->counters[LIVE_BYTES];
}

static void screen_note_row(struct screen *screen, const struct live_file *process, const struct live_row *row)
{
  struct screen_memory *memory = screen_memory_of(screen, process->process, row->path);
  if (!memory) memory = screen_new_memory(screen, process->process, row->path);
  if (!memory) return;
  int64_t allocations = row->counters[LIVE_TOTAL_BLOCKS];
  double passed = (double)process->updated_ns - (double)memory->at_ns; /* numbers of another process: they may be any */
  if (allocations != LIVE_UNKNOWN && memory->allocations != LIVE_UNKNOWN && passed > 0)
    memory->rate = ((double)allocations - (double)memory->allocations) * 1e9 / passed;
  memory->allocations = allocations;
  memory->at_ns = process->updated_ns;
  if (memory->n_held == SCREEN_HISTORY)
    memmove(memory->held, memory->held + 1, (SCREEN_HISTORY - 1) * sizeof *memory->held);
  else
    memory->n_held++;
  memory->held[memory->n_held - 1] = screen_held(row);
  memory->is_seen = true;
}

void screen_note(struct screen *screen, const struct processes *processes)
{
  size_t kept = 0;
  for (size_t i = 0; i < screen->n_memories; i++) screen->memories[i].is_seen = false;
  for (size_t i = 0; i < processes->n; i++)
    for (uint32_t row = 0; row < processes->items[i].file.n_rows; row++)
      screen_note_row(screen, &processes->items[i].file, &processes->items[i].file.rows[row]);
  for (size_t i = 0; i < screen->n_memories; i++)
    if (screen->memories[i].is_seen) screen->memories[kept++] = screen->memories[i];
  screen->n_memories = kept;
}

/* ---- Order ----------------------------------------------------------------------------------------------------- */

static double screen_key(const struct screen_row *row, enum screen_order order)
{
  if (order == SCREEN_BY_RATE) return row->memory ? row->memory->rate : -1;
  return (double)row->row->counters[order == SCREEN_BY_LIVE ? LIVE_BYTES : LIVE_RESERVED];
}

static int screen_compare(const void *one, const void *other, void *closure)
{
  const struct screen_row *a = one, *b = other;
  const enum screen_order order = *(const enum screen_order *)closure;
  if (order != SCREEN_BY_PROCESS && screen_key(a, order) != screen_key(b, order))
    return screen_key(a, order) > screen_key(b, order) ? -1 : 1;
  if (a->process != b->process) return a->process < b->process ? -1 : 1;
  return a->row < b->row ? -1 : a->row > b->row; /* as the process wrote them: from the top of a stack down */
}

/* All rows in order; NULL: out of memory. */
static struct screen_row *screen_rows(struct screen *screen, const struct processes *processes, size_t *n_out)
{
  size_t n = 0;
  for (size_t i = 0; i < processes->n; i++) n += processes->items[i].file.n_rows;
  struct screen_row *rows = calloc(n + 1, sizeof *rows);
  if (!rows) return NULL;
  *n_out = 0;
  for (size_t i = 0; i < processes->n; i++) {
    const struct live_file *process = &processes->items[i].file;
    for (uint32_t row = 0; row < process->n_rows; row++)
      rows[(*n_out)++] = (struct screen_row){process, &process->rows[row],
                                             screen_memory_of(screen, process->process, process->rows[row].path)};
  }
  qsort_r(rows, n, sizeof *rows, screen_compare, &screen->order);
  return rows;
}

/* ---- Printing -------------------------------------------------------------------------------------------------- */

/* A line of text that ends at the last column. */
struct screen_line {
  char text[1024];
  size_t used, columns;
};

static void screen_put(struct screen_line *line, const char *text, int width)
{
  char cell[256];
  int pad = (width < 0 ? -width : width) - (int)text_width(text);
  snprintf(cell, sizeof cell, width < 0 ? "%2$s%1$*3$s" : "%1$*3$s%2$s", "", text, pad > 0 ? pad : 0);
  size_t bytes = strlen(cell);
  if (line->used + bytes + 2 >= sizeof line->text) return;
  memcpy(line->text + line->used, cell, bytes);
  line->used += bytes;
  line->text[line->used++] = ' ';
  line->text[line->used] = '\0';
}

static void screen_end(struct screen_line *line, enum style kind)
{
  while (line->used && line->text[line->used - 1] == ' ') line->text[--line->used] = '\0';
  text_cut(line->text, line->columns);
  print_padded(kind, line->text, 0);
  putchar('\n');
  *line = (struct screen_line){.columns = line->columns};
}

static void screen_put_bytes(struct screen_line *line, int64_t bytes)
{
  char words[SCREEN_WORDS] = "-";
  if (bytes != LIVE_UNKNOWN) units_format_bytes(bytes > 0 ? (uint64_t)bytes : 0, words, sizeof words);
  screen_put(line, words, SCREEN_NUMBER);
}

static void screen_put_count(struct screen_line *line, double count)
{
  char words[SCREEN_WORDS] = "-";
  if (count >= 0) snprintf(words, sizeof words, count >= 1e6 ? "%.3g M" : "%.0f", count >= 1e6 ? count / 1e6 : count);
  screen_put(line, words, 8);
}

/* What the row held recently, against the most of it. */
static void screen_put_history(struct screen_line *line, const struct screen_memory *memory)
{
  static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  char text[SCREEN_HISTORY * 4] = "";
  int64_t most = 1;
  for (unsigned i = 0; memory && i < memory->n_held; i++)
    if (memory->held[i] > most) most = memory->held[i];
  for (unsigned i = 0; memory && i < memory->n_held; i++)
    strcat(text, memory->held[i] < 0 ? " " : bars[(int)(7.0 * (double)memory->held[i] / (double)most + 0.5)]);
  screen_put(line, text, -SCREEN_HISTORY);
}

/* The columns between the first four and the last, in the order in which they find room: each with its space. The command
 * has some room first. */
static const struct {
  const char *name;
  int width;
} screen_more[] = {{"PEAK", SCREEN_NUMBER}, {"BLOCKS", 8}, {"ALLOC/S", 8}, {"RECENTLY HELD", -SCREEN_HISTORY}};

static size_t screen_n_more(const struct screen *screen, size_t columns)
{
  size_t n = 0, used = 8 + SCREEN_NAME + 2 * SCREEN_NUMBER + 4 + SCREEN_COMMAND;
  size_t most = sizeof screen_more / sizeof *screen_more - screen->is_plain; /* nobody reads bars aloud */
  while (n < most && (used += (size_t)abs(screen_more[n].width) + 1) <= columns) n++;
  return n;
}

/* "devices/0 of 79.65 GiB", "  devices/0/pool". */
static void screen_put_name(struct screen_line *line, const struct live_row *row)
{
  char text[LIVE_PATH_BYTES + SCREEN_WORDS + 8], words[SCREEN_WORDS];
  units_format_bytes(row->size_bytes > 0 ? (uint64_t)row->size_bytes : 0, words, sizeof words);
  bool has_size = !*row->type && row->size_bytes > 0;
  snprintf(text, sizeof text, "%s%s%s%s", *row->type ? "  " : "", row->path, has_size ? " of " : "",
           has_size ? words : "");
  text_cut(text, SCREEN_NAME);
  screen_put(line, text, -SCREEN_NAME);
}

/* "python3 train.py" of "/usr/bin/python3 train.py". */
static const char *screen_command(const char *command)
{
  const char *start = command;
  for (const char *at = command; *at && *at != ' '; at++)
    if (*at == '/') start = at + 1;
  return start;
}

/* What a row has besides its columns: idle memory in pieces, and the tiers of `spilling`. Returns the lines: 1, or 0. */
static size_t screen_print_details(const struct live_row *row, size_t columns)
{
  const struct {
    const char *before, *after;
    int64_t bytes;
  } details[] = {{"", " idle in pieces", row->fragmented_bytes},
                 {"pinned ", "", row->pinned_bytes},
                 {"file ", "", row->file_bytes}};
  struct screen_line line = {.columns = columns};
  char text[256] = "", words[SCREEN_WORDS];
  for (size_t i = 0; i < sizeof details / sizeof *details; i++)
    if (details[i].bytes > 0)
      text_append(text, sizeof text, "%s%s%s%s", *text ? ", " : "", details[i].before,
                  units_format_bytes((uint64_t)details[i].bytes, words, sizeof words), details[i].after);
  if (!*text) return 0;
  screen_put(&line, "", 8);
  screen_put(&line, "   ", 3);
  screen_put(&line, text, -1);
  screen_end(&line, STYLE_FAINT);
  return 1;
}

/* Returns the number of lines. */
static size_t screen_print_row(const struct screen *screen, const struct screen_row *row, size_t columns)
{
  const size_t n_more = screen_n_more(screen, columns);
  struct screen_line line = {.columns = columns};
  char text[SCREEN_WORDS];
  const int64_t *counters = row->row->counters;
  snprintf(text, sizeof text, "%u", (unsigned)row->process->process);
  screen_put(&line, text, 8);
  screen_put_name(&line, row->row);
  screen_put_bytes(&line, counters[LIVE_BYTES]);
  screen_put_bytes(&line, counters[LIVE_RESERVED]);
  if (n_more > 0)
    screen_put_bytes(&line, counters[LIVE_PEAK_RESERVED] != LIVE_UNKNOWN ? counters[LIVE_PEAK_RESERVED]
                                                                         : counters[LIVE_PEAK_BYTES]);
  if (n_more > 1) screen_put_count(&line, (double)(counters[LIVE_BLOCKS] == LIVE_UNKNOWN ? -1 : counters[LIVE_BLOCKS]));
  if (n_more > 2) screen_put_count(&line, row->memory ? row->memory->rate : -1);
  if (n_more > 3) screen_put_history(&line, row->memory);
  screen_put(&line, *row->row->type ? row->row->type : screen_command(row->process->command), -1);
  screen_end(&line, *row->row->type ? STYLE_OFF : STYLE_TYPE);
  return 1 + screen_print_details(row->row, columns);
}

/* ---- Sums ------------------------------------------------------------------------------------------------------ */

struct screen_sum {
  uint64_t held_bytes, size_bytes;
  size_t n;
};

static struct screen_sum screen_sum_of(const struct processes *processes, int device)
{
  struct screen_sum sum = {0};
  for (size_t i = 0; i < processes->n; i++)
    for (uint32_t r = 0; r < processes->items[i].file.n_rows; r++) {
      const struct live_row *row = &processes->items[i].file.rows[r];
      if (*row->type || processes_device_of(row) != device) continue;
      sum.n++;
      if (row->counters[LIVE_RESERVED] > 0) sum.held_bytes += (uint64_t)row->counters[LIVE_RESERVED];
      if (row->size_bytes > 0 && (uint64_t)row->size_bytes > sum.size_bytes) sum.size_bytes = (uint64_t)row->size_bytes;
    }
  return sum;
}

/* What all processes together hold of each device. Returns the number of lines. */
static size_t screen_print_sums(const struct processes *processes, size_t columns)
{
  enum { MOST_DEVICES = 64 };
  size_t lines = 0;
  for (int device = 0; device < MOST_DEVICES; device++) {
    const struct screen_sum sum = screen_sum_of(processes, device);
    struct screen_line line = {.columns = columns};
    char text[SCREEN_WORDS * 4], held[SCREEN_WORDS], size[SCREEN_WORDS];
    if (!sum.n || !sum.size_bytes) continue;
    snprintf(text, sizeof text, "device %d: %s of %s reserved (%.0f%%) by %zu process%s", device,
             units_format_bytes(sum.held_bytes, held, sizeof held),
             units_format_bytes(sum.size_bytes, size, sizeof size),
             100.0 * (double)sum.held_bytes / (double)sum.size_bytes, sum.n, sum.n == 1 ? "" : "es");
    screen_put(&line, text, -1);
    screen_end(&line, STYLE_OFF);
    lines++;
  }
  return lines;
}

void screen_print(struct screen *screen, const struct processes *processes, size_t rows, size_t columns)
{
  static const char *const orders[] = {"process", "live bytes", "reserved bytes", "allocations a second"};
  struct screen_line line = {.columns = columns};
  char text[SCREEN_WORDS * 2];
  size_t n = 0, shown = 0, lines = 2;
  struct screen_row *all = screen_rows(screen, processes, &n);
  snprintf(text, sizeof text, "hipmm: %zu process%s, by %s", processes->n, processes->n == 1 ? "" : "es",
           orders[screen->order]);
  screen_put(&line, text, -1);
  screen_end(&line, STYLE_NAME);
  lines += screen_print_sums(processes, columns);
  screen_put(&line, "PROCESS", 8);
  screen_put(&line, "DEVICE / RESOURCE", -SCREEN_NAME);
  screen_put(&line, "LIVE", SCREEN_NUMBER);
  screen_put(&line, "RESERVED", SCREEN_NUMBER);
  for (size_t i = 0; i < screen_n_more(screen, columns); i++)
    screen_put(&line, screen_more[i].name, screen_more[i].width);
  screen_put(&line, "TYPE / COMMAND", -1);
  screen_end(&line, STYLE_FAINT);
  for (; all && shown < n && (!rows || lines + 2 < rows); shown++)
    lines += screen_print_row(screen, &all[shown], columns);
  if (shown < n) {
    snprintf(text, sizeof text, "… and %zu more", n - shown);
    screen_put(&line, text, -1);
    screen_end(&line, STYLE_FAINT);
  }
  if (!processes->n)
    printf("No process publishes: run programs with HIPMM_PUBLISH=1, or write \"publish\": true in hipmm.json\n");
  free(all);
}

void screen_clear(struct screen *screen)
{
  free(screen->memories);
  *screen = (struct screen){0};
}
