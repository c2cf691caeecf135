/* SPDX-License-Identifier: MIT */
/* stack_traces.c: a hash table that doubles. The number of a trace is its index, so the table may move. */
#include "stack_traces.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The most frames of this file, and of a function that wraps backtrace(), in front of the requested one. */
enum { FIRST_CAPACITY = 64, MOST_OWN_FRAMES = 8 };

void stack_traces_open(struct stack_traces *traces, const struct hipmm_services *services)
{
  void *frame[1];
  *traces = (struct stack_traces){.services = services, .used = 1};
  pthread_mutex_init(&traces->lock, NULL);
  backtrace(frame, 1); /* the first call loads a library, which must not happen during an allocation */
}

void stack_traces_close(struct stack_traces *traces)
{
  const struct hipmm_services *services = traces->services;
  if (traces->items) services->host_free(services, traces->items, traces->capacity * sizeof *traces->items);
  if (traces->buckets) services->host_free(services, traces->buckets, traces->capacity * sizeof *traces->buckets);
  pthread_mutex_destroy(&traces->lock);
}

static void stack_traces_lock(struct stack_traces *traces)
{
  if (!traces->is_guarded) pthread_mutex_lock(&traces->lock);
}

static void stack_traces_unlock(struct stack_traces *traces)
{
  if (!traces->is_guarded) pthread_mutex_unlock(&traces->lock);
}

/* ---- The table; the lock is held ---- */

static uint64_t stack_traces_hash_of(void *const *frames, uint32_t depth)
{
  uint64_t hash = depth;
  for (uint32_t i = 0; i < depth; i++) {
    hash = (hash ^ (uint64_t)(uintptr_t)frames[i]) * 0x9E3779B97F4A7C15ull;
    hash ^= hash >> 29;
  }
  return hash;
}

static uint32_t *stack_traces_bucket_of(const struct stack_traces *traces, uint64_t hash)
{
  return &traces->buckets[hash & (traces->capacity - 1)];
}

/* Puts the traces that are in use into the buckets. */
static void stack_traces_fill_buckets(struct stack_traces *traces)
{
  for (uint32_t number = 1; number < traces->used; number++) {
    struct stack_trace *trace = &traces->items[number];
    if (!trace->users) continue;
    uint32_t *bucket = stack_traces_bucket_of(traces, trace->hash);
    trace->next = *bucket;
    *bucket = number;
  }
}

static bool stack_traces_grow(struct stack_traces *traces)
{
  const struct hipmm_services *services = traces->services;
  uint32_t capacity = traces->capacity ? 2 * traces->capacity : FIRST_CAPACITY;
  if (capacity > UINT32_MAX / 4) return false;
  struct stack_trace *items = services->host_allocate(services, capacity * sizeof *items);
  uint32_t *buckets = services->host_allocate(services, capacity * sizeof *buckets);
  if (!items || !buckets) {
    if (items) services->host_free(services, items, capacity * sizeof *items);
    if (buckets) services->host_free(services, buckets, capacity * sizeof *buckets);
    return false;
  }
  if (traces->items) {
    memcpy(items, traces->items, traces->used * sizeof *items);
    services->host_free(services, traces->items, traces->capacity * sizeof *items);
    services->host_free(services, traces->buckets, traces->capacity * sizeof *buckets);
  }
  traces->items = items;
  traces->buckets = buckets;
  traces->capacity = capacity;
  stack_traces_fill_buckets(traces);
  return true;
}

static uint32_t stack_traces_find(const struct stack_traces *traces, uint64_t hash, void *const *frames, uint32_t depth)
{
  uint32_t number = traces->capacity ? *stack_traces_bucket_of(traces, hash) : 0;
  while (number) {
    const struct stack_trace *trace = &traces->items[number];
    if (trace->hash == hash && trace->depth == depth && !memcmp(trace->frames, frames, depth * sizeof *frames)) break;
    number = trace->next;
  }
  return number;
}

/* An unused number, or 0. */
static uint32_t stack_traces_unused_number(struct stack_traces *traces)
{
  uint32_t number = traces->first_free;
  if (number)
    traces->first_free = traces->items[number].next;
  else if (traces->used < traces->capacity || stack_traces_grow(traces))
    number = traces->used++;
  return number;
}

static uint32_t stack_traces_add(struct stack_traces *traces, uint64_t hash, void *const *frames, uint32_t depth)
{
  uint32_t number = stack_traces_find(traces, hash, frames, depth);
  if (!number) {
    number = stack_traces_unused_number(traces);
    if (!number) return 0;
    struct stack_trace *trace = &traces->items[number];
    uint32_t *bucket = stack_traces_bucket_of(traces, hash);
    *trace = (struct stack_trace){.hash = hash, .next = *bucket, .depth = depth};
    memcpy(trace->frames, frames, depth * sizeof *frames);
    *bucket = number;
  }
  traces->items[number].users++;
  return number;
}

static void stack_traces_forget(struct stack_traces *traces, uint32_t number)
{
  struct stack_trace *trace = &traces->items[number];
  uint32_t *link = stack_traces_bucket_of(traces, trace->hash);
  while (*link != number) link = &traces->items[*link].next;
  *link = trace->next;
  trace->next = traces->first_free;
  traces->first_free = number;
}

/* ---- Taking ---- */

/* Where the frames of the caller begin. */
static int stack_traces_skip_own(void *const *frames, int count, const void *from)
{
  for (int i = 0; i < count && i < MOST_OWN_FRAMES; i++)
    if (frames[i] == from) return i;
  return count > 1 ? 1 : 0;
}

uint32_t stack_traces_record(struct stack_traces *traces, const void *from, uint32_t depth)
{
  void *frames[STACK_TRACE_MOST_FRAMES + MOST_OWN_FRAMES];
  int count = backtrace(frames, STACK_TRACE_MOST_FRAMES + MOST_OWN_FRAMES);
  int first = stack_traces_skip_own(frames, count, from);
  uint32_t taken = (uint32_t)(count - first) < depth ? (uint32_t)(count - first) : depth;
  uint64_t hash = stack_traces_hash_of(frames + first, taken);
  stack_traces_lock(traces);
  uint32_t number = stack_traces_add(traces, hash, frames + first, taken);
  stack_traces_unlock(traces);
  return number;
}

void stack_traces_drop(struct stack_traces *traces, uint32_t number)
{
  if (!number) return;
  stack_traces_lock(traces);
  if (!--traces->items[number].users) stack_traces_forget(traces, number);
  stack_traces_unlock(traces);
}

int64_t stack_traces_metadata_bytes(struct stack_traces *traces)
{
  stack_traces_lock(traces);
  int64_t bytes = (int64_t)(traces->capacity * (sizeof *traces->items + sizeof *traces->buckets));
  stack_traces_unlock(traces);
  return bytes;
}

/* ---- Writing ---- */

/* A C++ program has the function that demangles its names; others need none. */
static char *stack_traces_demangle(const char *name)
{
  char *(*function)(const char *, char *, size_t *, int *) = NULL;
  *(void **)&function = dlsym(RTLD_DEFAULT, "__cxa_demangle");
  int status = -1;
  return function && !strncmp(name, "_Z", 2) ? function(name, NULL, NULL, &status) : NULL;
}

/* In the format of RMM, with the offsets in the function and in the file, for addr2line. The address of the call is before
 * the return address. */
static void stack_traces_frame_text(uint32_t index, void *frame, char *line, size_t line_bytes)
{
  Dl_info info;
  if (!dladdr((char *)frame - 1, &info) || !info.dli_fname) {
    snprintf(line, line_bytes, "  #%u in %p", index, frame);
    return;
  }
  char *readable = info.dli_sname ? stack_traces_demangle(info.dli_sname) : NULL;
  unsigned long in_file = (unsigned long)((char *)frame - 1 - (char *)info.dli_fbase);
  if (info.dli_sname)
    snprintf(line, line_bytes, "  #%u in %.500s+%#lx from %.500s (+%#lx)", index, readable ? readable : info.dli_sname,
             (unsigned long)((char *)frame - 1 - (char *)info.dli_saddr), info.dli_fname, in_file);
  else
    snprintf(line, line_bytes, "  #%u in ? from %.500s (+%#lx)", index, info.dli_fname, in_file);
  free(readable);
}

void stack_traces_write(struct stack_traces *traces, uint32_t number, void (*write)(void *closure, const char *line),
                        void *closure)
{
  char line[1200];
  if (!number) return;
  stack_traces_lock(traces);
  struct stack_trace trace = traces->items[number];
  stack_traces_unlock(traces);
  for (uint32_t i = 0; i < trace.depth; i++) {
    stack_traces_frame_text(i, trace.frames[i], line, sizeof line);
    write(closure, line);
  }
}

struct log_lines {
  const struct hipmm_services *services;
  enum hipmm_log_level level;
};

static void stack_traces_log_line(void *closure, const char *line)
{
  const struct log_lines *lines = closure;
  lines->services->log(lines->services, lines->level, "%s", line);
}

void stack_traces_log(struct stack_traces *traces, uint32_t number, enum hipmm_log_level level)
{
  struct log_lines lines = {traces->services, level};
  stack_traces_write(traces, number, stack_traces_log_line, &lines);
}
