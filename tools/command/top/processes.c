/* SPDX-License-Identifier: MIT */
/* processes.c: see top.h. The files are written by other programs: nothing in them is trusted. */
#include "../../../core/base/text.h"
#include "../../../core/inspect/publish.h"
#include "../array.h"
#include "../cmd.h"
#include "top.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PROCESSES_TRIES = 100 };

/* The names of the counters, as the JSON and the metrics have them. */
static const struct {
  const char *name;
  size_t place;
} processes_counters[] = {
    {"live_bytes", LIVE_PLACE(LIVE_BYTES)},
    {"live_blocks", LIVE_PLACE(LIVE_BLOCKS)},
    {"reserved_bytes", LIVE_PLACE(LIVE_RESERVED)},
    {"peak_reserved_bytes", LIVE_PLACE(LIVE_PEAK_RESERVED)},
    {"peak_bytes", LIVE_PLACE(LIVE_PEAK_BYTES)},
    {"allocations", LIVE_PLACE(LIVE_TOTAL_BLOCKS)},
    {"stream_waits", LIVE_PLACE(LIVE_STREAM_WAITS)},
    {"metadata_bytes", LIVE_PLACE(LIVE_METADATA)},
    {"fragmented_bytes", offsetof(struct live_row, fragmented_bytes)},
    {"pinned_bytes", offsetof(struct live_row, pinned_bytes)},
    {"file_bytes", offsetof(struct live_row, file_bytes)},
};

/* Rows of a release that did not write what stands at the end of live_row. */
enum { PROCESSES_LEAST_ROW = offsetof(struct live_row, size_bytes) };

/* Whether the file has structs that this release knows, or larger ones. */
static bool processes_is_readable(const struct live_file *head)
{
  uint64_t rows_bytes = (uint64_t)head->n_rows * head->row_bytes;
  return memcmp(head->magic, LIVE_MAGIC, sizeof head->magic) == 0 && head->row_bytes >= PROCESSES_LEAST_ROW &&
         head->rows_offset >= offsetof(struct live_file, rows) && head->rows_offset + rows_bytes <= head->file_bytes;
}

static bool processes_copy_rows(int file, struct live_file *copy)
{
  if (copy->n_rows > LIVE_ROWS) copy->n_rows = LIVE_ROWS;
  if (copy->row_bytes == sizeof *copy->rows) {
    ssize_t bytes = (ssize_t)(copy->n_rows * sizeof *copy->rows);
    return pread(file, copy->rows, (size_t)bytes, copy->rows_offset) == bytes;
  }
  const size_t bytes = copy->row_bytes < sizeof *copy->rows ? copy->row_bytes : sizeof *copy->rows;
  for (uint32_t i = 0; i < copy->n_rows; i++) {
    copy->rows[i].size_bytes = 0;
    copy->rows[i].fragmented_bytes = copy->rows[i].pinned_bytes = copy->rows[i].file_bytes = LIVE_UNKNOWN;
    if (pread(file, &copy->rows[i], bytes, copy->rows_offset + (off_t)i * copy->row_bytes) != (ssize_t)bytes)
      return false;
  }
  return true;
}

/* The changes so far, counted at the beginning and at the end of each: odd within one. */
static bool processes_read_sequence(int file, uint64_t *sequence_out)
{
  return pread(file, sequence_out, sizeof *sequence_out, offsetof(struct live_file, sequence)) == sizeof *sequence_out;
}

/* Copies what the process has written between two changes. The sequence is read before all else: one that is read with the
 * head could be that of a change which came after other parts of the head were read. False: it is no such file, or of a
 * release that wrote less. */
static bool processes_copy(int file, struct live_file *copy)
{
  const ssize_t head = offsetof(struct live_file, rows);
  for (int tries = 0; tries < PROCESSES_TRIES; tries++) {
    uint64_t before, after;
    if (!processes_read_sequence(file, &before)) return false;
    if (pread(file, copy, (size_t)head, 0) != head || !processes_is_readable(copy)) return false;
    if (!processes_copy_rows(file, copy) || !processes_read_sequence(file, &after)) return false;
    if (before == after && before % 2 == 0) return true;
    usleep(1000);
  }
  return false;
}

static bool processes_has_row(const struct live_file *copy, uint32_t n, const struct live_row *row)
{
  for (uint32_t i = 0; i < n; i++)
    if (processes_device_of(&copy->rows[i]) == processes_device_of(row) &&
        strcmp(processes_resource_of(&copy->rows[i]), processes_resource_of(row)) == 0 &&
        strcmp(copy->rows[i].type, row->type) == 0)
      return true;
  return false;
}

/* Ends texts, and leaves out what is there twice, for which a monitor would refuse the page. */
static void processes_make_safe(struct live_file *copy)
{
  uint32_t n = 0;
  copy->command[sizeof copy->command - 1] = '\0';
  for (uint32_t i = 0; i < copy->n_rows; i++) {
    struct live_row *row = &copy->rows[i];
    row->path[sizeof row->path - 1] = '\0';
    row->type[sizeof row->type - 1] = '\0';
    if (!processes_has_row(copy, n, row)) copy->rows[n++] = *row;
  }
  copy->n_rows = n;
}

static struct processes_item *processes_next(struct processes *processes)
{
  if (!array_grow(&processes->items, processes->n, &processes->capacity, sizeof *processes->items)) {
    processes->is_truncated = true;
    return NULL;
  }
  return &processes->items[processes->n];
}

/* Whether the process is one of the user's, as the system tells it: its effective user when it published, or one that it can
 * take again. Root needs no disguise. Of a number in another namespace nothing is known here; its user's name stands by it. */
static bool processes_is_of(uint32_t process, unsigned user)
{
  char name[64], line[256];
  unsigned ids[4];
  bool is_of = false;
  if (user == 0) return true;
  snprintf(name, sizeof name, "/proc/%" PRIu32 "/status", process);
  FILE *file = fopen(name, "re");
  while (file && fgets(line, sizeof line, file))
    if (sscanf(line, "Uid: %u %u %u %u", &ids[0], &ids[1], &ids[2], &ids[3]) == 4)
      for (int i = 0; i < 4; i++) is_of = is_of || ids[i] == user;
  if (file) fclose(file);
  return is_of;
}

bool processes_add(struct processes *processes, int file, uint32_t process)
{
  struct processes_item *item = processes_next(processes);
  if (!item || !processes_copy(file, &item->file) || item->file.process != process) return false;
  item->user = geteuid();
  item->space = 0;
  processes_make_safe(&item->file);
  processes->n++;
  return true;
}

static void processes_read_file(struct processes *processes, int folder, const char *name, uint32_t only)
{
  struct publish_file found;
  int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return;
  if (publish_identify(file, name, &found) && (!geteuid() || found.user == geteuid()) &&
      (!only || found.process == only)) {
    bool is_real = !found.is_left_over && (found.space || processes_is_of(found.process, found.user));
    if (found.is_left_over && found.user == geteuid()) unlinkat(folder, name, 0);
    if (is_real && processes_add(processes, file, found.process)) {
      processes->items[processes->n - 1].user = found.user;
      processes->items[processes->n - 1].space = found.space;
    }
  }
  close(file);
}

static int processes_compare(const void *one, const void *other)
{
  const struct processes_item *a = one, *b = other;
  return a->file.process < b->file.process ? -1 : a->file.process > b->file.process;
}

void processes_read(struct processes *processes, uint32_t only)
{
  DIR *folder = opendir(LIVE_FOLDER);
  processes->n = 0;
  processes->is_truncated = false;
  if (!folder) return;
  for (struct dirent *entry; (entry = readdir(folder));)
    if (strncmp(entry->d_name, "hipmm.", 6) == 0) processes_read_file(processes, dirfd(folder), entry->d_name, only);
  closedir(folder);
  if (processes->n) qsort(processes->items, processes->n, sizeof *processes->items, processes_compare);
}

void processes_clear(struct processes *processes)
{
  free(processes->items);
  *processes = (struct processes){0};
}

int processes_device_of(const struct live_row *row)
{
  int device = -1;
  char number[16];
  if (strncmp(row->path, "devices/", 8) != 0) return -1;
  snprintf(number, sizeof number, "%.*s", (int)strcspn(row->path + 8, "/"), row->path + 8);
  return text_parse_ordinal(number, &device) ? device : -1;
}

const char *processes_resource_of(const struct live_row *row)
{
  const char *slash = strchr(row->path, '/');
  if (!*row->type || !slash) return "";
  if (strncmp(row->path, "devices/", 8) != 0) return slash + 1;
  slash = strchr(slash + 1, '/');
  return slash ? slash + 1 : "";
}

static json_t *processes_row_json(const struct live_row *row)
{
  int device = processes_device_of(row);
  json_t *object = json_pack("{s:o, s:o, s:o}", "path", output_json_string(row->path), "device",
                             device < 0 ? json_null() : json_integer(device), "type",
                             *row->type ? output_json_string(row->type) : json_null());
  json_object_set_new(object, "size_bytes", row->size_bytes > 0 ? json_integer(row->size_bytes) : json_null());
  for (size_t i = 0; i < sizeof processes_counters / sizeof *processes_counters; i++) {
    int64_t value = live_row_at(row, processes_counters[i].place);
    json_object_set_new(object, processes_counters[i].name, value == LIVE_UNKNOWN ? json_null() : json_integer(value));
  }
  return object;
}

json_t *processes_json(const struct processes *processes)
{
  json_t *array = json_array();
  for (size_t i = 0; i < processes->n; i++) {
    const struct processes_item *item = &processes->items[i];
    const struct live_file *process = &item->file;
    json_t *rows = json_array();
    for (uint32_t row = 0; row < process->n_rows; row++)
      json_array_append_new(rows, processes_row_json(&process->rows[row]));
    json_array_append_new(
        array, json_pack("{s:I, s:I, s:o, s:I, s:I, s:I, s:o}", "process", (json_int_t)process->process, "user",
                         (json_int_t)item->user, "command", output_json_string(process->command), "started_ns",
                         (json_int_t)process->started_ns, "updated_ns", (json_int_t)process->updated_ns,
                         "omitted_resources", (json_int_t)(process->n_wanted - process->n_rows), "resources", rows));
  }
  return array;
}
