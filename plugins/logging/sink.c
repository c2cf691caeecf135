/* SPDX-License-Identifier: MIT */
/* sink.c: see sink.h. This file creates and closes logs and runs their writer threads; drain.c writes the rings.
 *
 * Lock order: all_lock, a drain's lock, a ring's lock. */
#include "sink.h"
#include "../../core/base/deadline.h"
#include "../../core/base/thread.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

struct log {
  struct sink sink;
  struct log *next; /* under all_lock */
  const struct hipmm_services *services;
  struct thread_watch threads;
  bool has_writer;
  pthread_t writer;
  pthread_mutex_t wake_lock; /* the two below */
  pthread_cond_t wake;
  bool is_woken, ends;
  struct drain drain;
};

static struct log *all; /* that are open */
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t process; /* that opened them; a forked child writes nothing */

static struct log *sink_log_of(struct sink *sink)
{
  return (struct log *)sink;
}

/* ---- The writer ---- */

static void sink_wake(struct log *log)
{
  pthread_mutex_lock(&log->wake_lock);
  log->is_woken = true;
  pthread_cond_signal(&log->wake);
  pthread_mutex_unlock(&log->wake_lock);
}

/* Waits until it is woken, or for the delay if `is_timed`. False when the log ends. */
static bool sink_sleep_in(struct log *log, bool is_timed)
{
  struct timespec limit = deadline_in_ms(CLOCK_MONOTONIC, SINK_DELAY_MS);
  int code = 0;
  pthread_mutex_lock(&log->wake_lock);
  while (!code && !log->is_woken && !log->ends)
    code = is_timed ? pthread_cond_timedwait(&log->wake, &log->wake_lock, &limit)
                    : pthread_cond_wait(&log->wake, &log->wake_lock);
  log->is_woken = false;
  bool ends = log->ends;
  pthread_mutex_unlock(&log->wake_lock);
  return !ends;
}

/* Sleeps until there are rows. The request is set before the last look at the rings, so the thread that adds the next row
 * sees it. */
static bool sink_sleep_until_there_are_rows(struct log *log)
{
  atomic_fetch_or(&log->sink.requests, SINK_WAKE);
  bool goes_on = drain_has_rows(&log->drain) || sink_sleep_in(log, false);
  atomic_fetch_and(&log->sink.requests, ~(unsigned)SINK_WAKE);
  return goes_on;
}

static void *sink_write_log(void *argument)
{
  struct log *log = argument;
  pthread_setname_np(pthread_self(), "hipmm-logging");
  while (sink_sleep_until_there_are_rows(log)) do
      if (!sink_sleep_in(log, true)) return NULL;
    while (drain_write(&log->drain));
  return NULL;
}

/* Without a writer thread the log is written when a ring is full, on flush and at the end. */
static void sink_start_writer(struct log *log)
{
  int code = thread_start(&log->writer, NULL, sink_write_log, log);
  log->has_writer = !code;
  if (code)
    log->services->log(log->services, HIPMM_LOG_WARNING, "no thread to write the log: %s; rows are written late",
                       strerror(code));
}

static void sink_stop_writer(struct log *log)
{
  if (!log->has_writer) return;
  pthread_mutex_lock(&log->wake_lock);
  log->ends = true;
  pthread_cond_signal(&log->wake);
  pthread_mutex_unlock(&log->wake_lock);
  pthread_join(log->writer, NULL);
}

/* ---- Rows ---- */

void sink_serve_requests(struct sink *sink)
{
  struct log *log = sink_log_of(sink);
  unsigned requests = atomic_load_explicit(&sink->requests, memory_order_relaxed);
  if (requests & SINK_WRITE)
    drain_write(&log->drain);
  else if (!(requests & SINK_WAKE) || atomic_fetch_and(&sink->requests, ~(unsigned)SINK_WAKE) & SINK_WAKE)
    sink_wake(log);
}

void sink_add_slow(struct sink *sink, struct row row)
{
  struct log *log = sink_log_of(sink);
  bool is_watched = thread_register(); /* otherwise nobody would be told when the thread needs its ring no more */
  struct ring *ring = is_watched ? drain_ring_of_thread(&log->drain) : NULL;
  if (!ring) {
    drain_write_row(&log->drain, row);
    return;
  }
  thread_remember(sink->serial, sink, ring);
  while (!ring_add(ring, row)) drain_make_room(&log->drain, ring);
  sink_serve_requests(sink);
}

enum hipmm_status sink_flush(struct sink *sink)
{
  struct log *log = sink_log_of(sink);
  drain_write(&log->drain);
  int code = drain_take_error(&log->drain);
  if (!code) return HIPMM_OK;
  return log->services->fail(log->services, HIPMM_E_IO, "file", "rows were lost: %s", output_file_reason(code));
}

struct sink_counts sink_count(struct sink *sink)
{
  return drain_count(&sink_log_of(sink)->drain);
}

static void sink_thread_ended(struct thread_watch *watch, uint64_t thread)
{
  struct log *log = (struct log *)((char *)watch - offsetof(struct log, threads));
  drain_end_thread(&log->drain, thread);
}

/* ---- At exit ---- */

/* Waits at most a second: a thread that exits in a signal handler may hold the lock for ever. */
static bool sink_lock_soon(pthread_mutex_t *lock)
{
  struct timespec limit = deadline_in_ms(CLOCK_REALTIME, 1000);
  return pthread_mutex_timedlock(lock, &limit) == 0;
}

/* The process may exit with live stacks. From now on, other threads write their rows at once. */
__attribute__((destructor)) static void sink_flush_at_exit(void)
{
  if (process != getpid() || !sink_lock_soon(&all_lock)) return;
  for (struct log *log = all; log; log = log->next) {
    atomic_fetch_or(&log->sink.requests, SINK_WRITE);
    if (!sink_lock_soon(&log->drain.lock)) continue;
    drain_write_locked(&log->drain);
    pthread_mutex_unlock(&log->drain.lock);
  }
  pthread_mutex_unlock(&all_lock);
}

/* ---- Opening and closing ---- */

/* The open log that writes the same file; NULL if there is none. Its file changes when it is rotated. Under all_lock. */
static const struct log *sink_log_of_file(const struct log_file *file)
{
  for (struct log *log = all; log; log = log->next) {
    pthread_mutex_lock(&log->drain.lock);
    bool is_same = log_file_is_same(&log->drain.output.file, file);
    pthread_mutex_unlock(&log->drain.lock);
    if (is_same) return log;
  }
  return NULL;
}

/* Empties the file only if no other log writes it. Under all_lock. */
static enum hipmm_status sink_begin(struct log *log, const struct log_file_spec *spec, enum log_file_clash *clash_out)
{
  struct log_file *file = &log->drain.output.file;
  const struct log *other = sink_log_of_file(file);
  *clash_out = LOG_FILE_NO_CLASH;
  if (other)
    *clash_out = other->services->device == log->services->device ? LOG_FILE_SAME_DEVICE : LOG_FILE_OTHER_DEVICE;
  else if ((!spec->appends || spec->rotate_bytes) && !log_file_lock(file))
    *clash_out = LOG_FILE_OTHER_PROCESS;
  if (*clash_out) return HIPMM_E_STATE;
  enum hipmm_status status = output_begin(file, log->services, spec);
  if (status) return status;
  log->next = all;
  all = log;
  process = getpid();
  return HIPMM_OK;
}

static void sink_discard(struct log *log)
{
  drain_close(&log->drain);
  pthread_cond_destroy(&log->wake);
  pthread_mutex_destroy(&log->wake_lock);
  log->services->host_free(log->services, log, sizeof *log);
}

static bool sink_prepare(struct log *log, const struct hipmm_services *services, struct log_file file,
                         const struct log_file_spec *spec, uint32_t auto_flush)
{
  pthread_condattr_t attributes;
  log->services = services;
  log->sink.serial = thread_new_owner();
  atomic_init(&log->sink.requests, auto_flush ? SINK_WRITE : 0);
  pthread_mutex_init(&log->wake_lock, NULL);
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&log->wake, &attributes);
  pthread_condattr_destroy(&attributes);
  return drain_open(&log->drain, services, file, spec);
}

enum hipmm_status sink_open(const struct hipmm_services *services, const struct log_file_spec *spec,
                            uint32_t auto_flush, enum log_file_clash *clash_out, struct sink **sink_out)
{
  struct log_file file;
  enum hipmm_status status = log_file_open(services, spec->name, OUTPUT_FILE_APPEND, &file);
  if (status) return status;
  struct log *log = services->host_allocate(services, sizeof *log);
  if (!log) {
    log_file_close(&file);
    return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for a log");
  }
  if (sink_prepare(log, services, file, spec, auto_flush)) {
    pthread_mutex_lock(&all_lock);
    status = sink_begin(log, spec, clash_out);
    pthread_mutex_unlock(&all_lock);
  } else {
    status = services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the name of a log");
  }
  if (status) {
    sink_discard(log);
    return status;
  }
  log->threads.ended = sink_thread_ended;
  thread_watch_open(&log->threads);
  if (!auto_flush) sink_start_writer(log);
  *sink_out = &log->sink;
  return HIPMM_OK;
}

void sink_close(struct sink *sink)
{
  struct log *log = sink_log_of(sink);
  pthread_mutex_lock(&all_lock);
  struct log **link = &all;
  while (*link != log) link = &(*link)->next;
  *link = log->next;
  pthread_mutex_unlock(&all_lock);
  thread_watch_close(&log->threads);
  sink_stop_writer(log);
  drain_write(&log->drain);
  sink_discard(log);
}
