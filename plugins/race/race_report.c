/* SPDX-License-Identifier: MIT */
/* race_report.c: see race_memory.h. Called by race_detector.c and race_memory.c. */
#include "../common/stack_traces.h"
#include "race_memory.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/* So many different reports are told, and so many call stacks are kept, each with so many calls. */
enum { REPORTS_MOST = 100, TRACES_MOST = 1 << 16, DEPTH_MOST = 24 };

static const struct {
  const char *word, *text;
} kinds[RACE_KINDS] = {
    [RACE_REUSE] = {"reuse", "memory is given to a stream that is not ordered after the free before"},
    [RACE_EARLY_USE] = {"early_use", "work on a stream that is not ordered after the allocation of this memory"},
    [RACE_UNORDERED] = {"unordered_use", "work that is not ordered after another stream's work on the same bytes"},
    [RACE_FREE_IN_USE] = {"free_in_use",
                          "memory is freed on a stream that is not ordered after the work on it, or its allocation"},
    [RACE_USE_AFTER_FREE] = {"use_after_free", "work on memory that was freed"},
    [RACE_DOUBLE_FREE] = {"double_free", "memory is freed a second time"},
    [RACE_OVERLAP] = {"overlap", "memory is given out that is in use"},
    [RACE_PAST_END] = {"past_end", "work past the end of a block"},
    [RACE_NEVER_WRITTEN] = {"never_written", "bytes are read that were never written"},
};

struct race_text {
  enum race_kind kind;
  uint32_t now, before; /* call stacks, by which reports are told apart */
  const char *calls[2];
  char *text; /* NULL: one of more than are told */
};

static struct stack_traces traces;
static const char *own_file; /* the file that the detector is in; NULL: the program */
static struct race_text *texts;
static size_t n_texts;
static atomic_size_t n_found;
static size_t found_of_kind[RACE_KINDS];

/* ---- Call stacks ---- */

static void *race_report_allocate(const struct hipmm_services *services, size_t bytes)
{
  (void)services;
  return calloc(1, bytes);
}

static void race_report_free(const struct hipmm_services *services, void *ptr, size_t bytes)
{
  (void)services, (void)bytes;
  free(ptr);
}

/* The loader has a lock around it, and around constructors, which may be waiting for the detector: so it is asked once. */
static const char *race_report_own_file(void)
{
  Dl_info own, program;
  bool is_known = dladdr(&traces, &own) && own.dli_fname;
  bool is_program = is_known && dladdr((void *)getauxval(AT_ENTRY), &program) && program.dli_fbase == own.dli_fbase;
  return is_known && !is_program ? own.dli_fname : NULL;
}

void race_report_open(void)
{
  static const struct hipmm_services services = {
      .struct_size = sizeof services, .host_allocate = race_report_allocate, .host_free = race_report_free};
  stack_traces_open(&traces, &services);
  traces.is_guarded = true;
  own_file = race_report_own_file();
}

uint32_t race_report_trace(void)
{
  return traces.used < TRACES_MOST ? stack_traces_record(&traces, NULL, DEPTH_MOST) : 0;
}

/* ---- Text ---- */

struct race_writer {
  char *text;
  size_t used;
};

static HIPMM_PRINTF(2, 3) void race_report_write(struct race_writer *writer, const char *format, ...)
{
  char line[1600];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  size_t bytes = length < 0 ? 0 : (size_t)length < sizeof line ? (size_t)length : sizeof line - 1;
  char *text = realloc(writer->text, writer->used + bytes + 1);
  if (!text) return;
  writer->text = text;
  memcpy(text + writer->used, line, bytes + 1);
  writer->used += bytes;
}

/* The lines of a call stack, without those of hipmm in front. */
struct race_frames {
  struct race_writer *writer;
  bool has_begun;
};

/* Whether a frame lies in the detector's own file, unless that is the whole program, or in one with a core of hipmm. Plugins
 * are none of them: a program's own may make the mistake. */
static bool race_report_is_own_frame(const char *line)
{
  return (own_file && strstr(line, own_file)) || strstr(line, "/preload.so (+") || strstr(line, "/libhipmm.so");
}

static void race_report_write_frame(void *closure, const char *line)
{
  struct race_frames *frames = closure;
  if (!frames->has_begun && race_report_is_own_frame(line)) return;
  frames->has_begun = true;
  race_report_write(frames->writer, "  %s\n", line);
}

static void race_report_write_site(struct race_writer *writer, const char *label, const struct race_site *site)
{
  char stream[64];
  uintptr_t handle = (uintptr_t)site->stream;
  if (handle <= 1)
    snprintf(stream, sizeof stream, "the default stream");
  else if (handle == 2)
    snprintf(stream, sizeof stream, "a thread's default stream");
  else
    snprintf(stream, sizeof stream, "stream %p", site->stream);
  race_report_write(writer, "  %s: %s on %s of device %d\n", label, site->call, stream, site->device);
  stack_traces_write(&traces, site->trace, race_report_write_frame, &(struct race_frames){.writer = writer});
}

static char *race_report_make_text(const struct race_finding *finding)
{
  struct race_writer writer = {NULL, 0};
  race_report_write(&writer, "hipmm: race: %s: %zu bytes at %#lx, ", kinds[finding->kind].text, finding->bytes,
                    (unsigned long)finding->start);
  if (finding->start >= finding->block)
    race_report_write(&writer, "offset %zu of", (size_t)(finding->start - finding->block));
  else
    race_report_write(&writer, "which reach into");
  race_report_write(&writer, " a block of %zu bytes of resource \"%s\"\n", finding->block_bytes, finding->resource);
  race_report_write_site(&writer, "now", &finding->now);
  race_report_write_site(&writer, "before", &finding->before);
  return writer.text;
}

/* ---- Reports ---- */

static bool race_report_is_known(const struct race_finding *finding)
{
  for (size_t i = 0; i < n_texts; i++)
    if (texts[i].kind == finding->kind && texts[i].now == finding->now.trace &&
        texts[i].before == finding->before.trace && texts[i].calls[0] == finding->now.call &&
        texts[i].calls[1] == finding->before.call)
      return true;
  return false;
}

static void race_report_tell(const char *text)
{
  for (size_t left = text ? strlen(text) : 0; left;) {
    ssize_t written = write(STDERR_FILENO, text, left);
    if (written <= 0) return; /* there is no other place for it */
    text += written;
    left -= (size_t)written;
  }
}

void race_report_add(const struct race_finding *finding)
{
  atomic_fetch_add(&n_found, 1);
  if (race_report_is_known(finding)) return;
  found_of_kind[finding->kind]++;
  if (n_texts == REPORTS_MOST) return;
  if (!texts) texts = calloc(REPORTS_MOST, sizeof *texts);
  if (!texts) return;
  texts[n_texts++] = (struct race_text){.kind = finding->kind,
                                        .now = finding->now.trace,
                                        .before = finding->before.trace,
                                        .calls = {finding->now.call, finding->before.call},
                                        .text = race_report_make_text(finding)};
  race_report_tell(texts[n_texts - 1].text);
  if (n_texts == REPORTS_MOST) race_report_tell("hipmm: race: further reports are counted, but not printed\n");
}

size_t race_report_count(void)
{
  return atomic_load(&n_found);
}

void race_report_forget(void)
{
  n_texts = 0;
  atomic_store(&n_found, 0);
}

const char *race_report_text(size_t index, const char **kind_out)
{
  if (index >= n_texts) return NULL;
  if (kind_out) *kind_out = kinds[texts[index].kind].word;
  return texts[index].text ? texts[index].text : "";
}

void race_report_summary(char *text, size_t bytes)
{
  char seen[40] = "once";
  size_t n = 0, used = 0, n_seen = atomic_load(&n_found);
  for (int kind = 0; kind < RACE_KINDS; kind++) n += found_of_kind[kind];
  if (n_seen > 1) snprintf(seen, sizeof seen, "%zu times", n_seen);
  used += (size_t)snprintf(text, bytes, "hipmm: races: %zu found, seen %s:", n, seen);
  for (int kind = 0; kind < RACE_KINDS && used < bytes; kind++)
    if (found_of_kind[kind])
      used += (size_t)snprintf(text + used, bytes - used, " %s %zu", kinds[kind].word, found_of_kind[kind]);
}
