/* SPDX-License-Identifier: MIT */
/* ctl_profile.c: see ctl.h. `hipmm convert` does the work: it gets the file that a `recording` resource of the process writes,
 * or the report of a `tracking` resource in the form of torch.cuda.memory._snapshot(). */
#include "../../../core/base/record_format.h"
#include "../../../core/base/text.h"
#include "../cmd.h"
#include "../trace/stack_frames.h"
#include "ctl.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int ctl_convert(const char *log, const char *output, const char *format)
{
  char *arguments[] = {"convert", "-o", (char *)(uintptr_t)output, (char *)(uintptr_t)log, NULL, NULL, NULL};
  int n = 4;
  if (format) {
    arguments[n++] = "--format";
    arguments[n++] = (char *)(uintptr_t)format;
  }
  return convert_command.run(n, arguments);
}

/* ---- A record ---- */

/* Whether a file is open in the process, and is the record of the device (-1: of any). */
static bool ctl_is_record(const char *path, const struct ctl *ctl, int device)
{
  struct stat status;
  struct record_head head;
  if (stat(path, &status) || !S_ISREG(status.st_mode)) return false;
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  bool is_whole = file >= 0 && pread(file, &head, sizeof head, 0) == (ssize_t)sizeof head;
  if (file >= 0) close(file);
  return is_whole && !memcmp(head.magic, RECORD_MAGIC, sizeof head.magic) && (device < 0 || head.device == device) &&
         head.process == (uint32_t)ctl->process;
}

/* The file may have been renamed or removed; the process has it open. */
static int ctl_profile_record(struct ctl *ctl, const char *path, int device, const char *output, const char *format)
{
  char folder[64], file[400], found[400];
  if (!ctl_do(ctl, CONTROL_FLUSH, path, "", 0)) return CMD_BAD;
  snprintf(folder, sizeof folder, "/proc/%d/fd", ctl->process);
  DIR *entries = opendir(folder);
  int n = 0;
  for (struct dirent *entry; entries && (entry = readdir(entries));) {
    snprintf(file, sizeof file, "%s/%.300s", folder, entry->d_name);
    if (ctl_is_record(file, ctl, device) && !n++) memcpy(found, file, sizeof found);
  }
  if (entries) closedir(entries);
  if (n == 1) return ctl_convert(found, output, format);
  if (n)
    say("ctl: process %d: %d of its open files may be the record of %s; give that one to `hipmm convert`", ctl->process,
        n, path);
  else
    say("ctl: process %d: the file of %s cannot be seen; is the process in another container?", ctl->process, path);
  return CMD_BAD;
}

/* ---- A list of blocks ---- */

/* A file's name may have any bytes. */
static json_t *ctl_string(const char *start, const char *end)
{
  char *copy = strndup(start, (size_t)(end - start));
  json_t *string = copy ? output_json_string(copy) : NULL;
  free(copy);
  return string;
}

static json_t *ctl_frame(const struct stack_frame *frame)
{
  return json_pack("{s:o, s:o, s:I}", "name", ctl_string(frame->name, frame->name_end), "filename",
                   ctl_string(frame->file, frame->file_end), "line", (json_int_t)frame->line);
}

/* "0x7f…: 4096 B (allocation 7, stream 0x…)"; NULL: another line. */
static json_t *ctl_block(const char *line)
{
  unsigned long long address, bytes, number, stream = 0;
  if (sscanf(line, "%llx: %llu B (allocation %llu, stream %llx)", &address, &bytes, &number, &stream) < 3) return NULL;
  return json_pack("{s:s, s:I, s:I, s:I, s:I, s:[]}", "action", "alloc", "addr", (json_int_t)address, "size",
                   (json_int_t)bytes, "stream", (json_int_t)stream, "time_us", (json_int_t)number, "frames");
}

/* The trace of a device. */
static json_t *ctl_blocks(const char *report)
{
  json_t *trace = json_array(), *block = NULL;
  struct stack_frame frame;
  for (const char *line = report; *line;) {
    if (*line == ' ' && stack_frames_next(&line, &frame)) {
      if (block) json_array_append_new(json_object_get(block, "frames"), ctl_frame(&frame));
    } else {
      json_t *next = ctl_block(line);
      if (next && !json_array_append_new(trace, next)) block = next;
      line += strcspn(line, "\n");
    }
    line += *line == '\n';
  }
  return trace;
}

static int ctl_convert_blocks(json_t *trace, const char *output, const char *format)
{
  char name[64];
  json_t *state = json_pack("{s:[o], s:[]}", "device_traces", trace, "segments");
  int file = memfd_create("hipmm-profile", MFD_CLOEXEC);
  bool is_written = state && file >= 0 && !json_dumpfd(state, file, JSON_COMPACT);
  json_decref(state);
  snprintf(name, sizeof name, "/proc/self/fd/%d", file);
  int status = is_written ? ctl_convert(name, output, format) : CMD_BAD;
  if (!is_written) say("ctl: out of memory");
  if (file >= 0) close(file);
  return status;
}

static int ctl_profile_blocks(struct ctl *ctl, const char *path, const char *output, const char *format)
{
  char *report = ctl_do(ctl, CONTROL_REPORT, path, "", 0) ? ctl_text(ctl) : NULL;
  if (!report) return CMD_BAD;
  int status = ctl_convert_blocks(ctl_blocks(report), output, format);
  free(report);
  return status;
}

/* ---- The choice ---- */

static bool ctl_has_profile(const struct live_row *row)
{
  return !strcmp(row->type, "recording") || !strcmp(row->type, "tracking");
}

/* The only row that has a profile; NULL: the error was printed. */
static const struct live_row *ctl_profile_row(const struct ctl *ctl, const struct live_file *file)
{
  const struct live_row *found = NULL;
  for (uint32_t i = 0; i < file->n_rows; i++) {
    if (!ctl_has_profile(&file->rows[i])) continue;
    if (found) {
      say("ctl: process %d: %s and %s know who allocates; name one", ctl->process, found->path, file->rows[i].path);
      return NULL;
    }
    found = &file->rows[i];
  }
  if (!found)
    say("ctl: process %d: no resource here knows who allocates; put one on top of the stack, as in {\"stack\": "
        "[{\"type\": \"tracking\", \"stacks\": \"python\"}, \"pool\", \"device\"]}",
        ctl->process);
  return found;
}

int ctl_profile(struct ctl *ctl, const char *path, const char *output, const char *format)
{
  struct processes processes;
  if (!ctl_counters(ctl, path, &processes)) return CMD_BAD;
  const struct live_row *row = ctl_profile_row(ctl, &processes.items[0].file);
  int status = CMD_BAD;
  if (row && !strcmp(row->type, "recording"))
    status = ctl_profile_record(ctl, row->path, processes_device_of(row), output, format);
  else if (row)
    status = ctl_profile_blocks(ctl, row->path, output, format);
  processes_clear(&processes);
  return status;
}
