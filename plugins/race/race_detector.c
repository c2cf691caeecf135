/* SPDX-License-Identifier: MIT */
/* race_detector.c: see race_detector.h. Called in any thread, also with locks of a runtime held. The detector's
 * lock is the last in the order, and no call of HIP or of the program is made under it. */
#include "race_detector.h"
#include "race_memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static atomic_bool is_on;
static bool knows_all_work, is_reported;
static bool is_fed, is_forked; /* something is known; of the parent, and not of this process */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local unsigned depth; /* calls of resources that the thread is in */

/* False when there is nothing to do. races_end() puts errno back. */
static bool races_begin(int *error_out)
{
  if (!atomic_load_explicit(&is_on, memory_order_relaxed)) return false; /* the lock orders the rest */
  *error_out = errno;
  pthread_mutex_lock(&lock);
  is_fed = true;
  if (!race_order_is_lost()) return true;
  static const char message[] = "hipmm: race: out of host memory, so that no more races are found\n";
  atomic_store(&is_on, false);
  pthread_mutex_unlock(&lock);
  if (write(STDERR_FILENO, message, sizeof message - 1) < 0) errno = *error_out; /* there is no other place for it */
  return false;
}

static void races_end(int error)
{
  pthread_mutex_unlock(&lock);
  errno = error;
}

void races_start(bool all_work)
{
  pthread_mutex_lock(&lock);
  if (!is_forked) {
    if (!atomic_load(&is_on)) race_report_open();
    knows_all_work = all_work;
    atomic_store_explicit(&is_on, true, memory_order_release);
  }
  pthread_mutex_unlock(&lock);
}

/* What is known is the parent's, and another thread may have been about to change it. */
static void races_enter_child(void)
{
  if (!is_fed) return;
  lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
  atomic_store(&is_on, false);
  is_reported = is_forked = true;
  race_report_forget();
}

/* Not when the detector starts: that is with a lock of the software device, which a fork takes too. */
__attribute__((constructor)) static void races_watch_forks(void)
{
  pthread_atfork(NULL, NULL, races_enter_child);
}

bool races_are_on(void)
{
  return atomic_load_explicit(&is_on, memory_order_acquire);
}

/* ---- Work ---- */

static struct race_site races_site(const char *name, const struct race_stream *stream)
{
  return (struct race_site){.call = name, .stream = stream->handle, .device = stream->device};
}

void races_work(const struct race_stream *stream, const char *name, struct race_access to, struct race_access from)
{
  int error;
  if (!races_begin(&error)) return;
  struct race_line *line = race_order_line(stream);
  if (line) {
    struct race_use use = {race_order_advance(line), races_site(name, stream)};
    if (!depth) race_memory_work(line, &use, to, from);
  }
  races_end(error);
}

void races_record(const struct race_stream *stream, const void *event)
{
  int error;
  if (!races_begin(&error)) return;
  struct race_line *line = race_order_line(stream);
  if (line) race_order_record(line, event);
  races_end(error);
}

void races_wait(const struct race_stream *stream, const void *event)
{
  int error;
  if (!races_begin(&error)) return;
  struct race_line *line = race_order_line(stream);
  if (line) race_order_wait(line, event);
  races_end(error);
}

void races_end_event(const void *event)
{
  int error;
  if (!races_begin(&error)) return;
  race_order_end_event(event);
  races_end(error);
}

void races_add_stream(const struct race_stream *stream)
{
  int error;
  if (!races_begin(&error)) return;
  race_order_end_stream(stream->key); /* one that ended out of sight */
  race_order_line(stream);
  races_end(error);
}

void races_end_stream(const void *key)
{
  int error;
  if (!races_begin(&error)) return;
  race_order_end_stream(key);
  races_end(error);
}

void races_host_after_event(const void *event)
{
  int error;
  if (!races_begin(&error)) return;
  race_order_host_after_event(event);
  races_end(error);
}

void races_host_after_stream(const struct race_stream *stream)
{
  int error;
  if (!races_begin(&error)) return;
  struct race_line *line = race_order_line(stream);
  if (line) race_order_host_after_stream(line);
  races_end(error);
}

void races_host_after_device(int device)
{
  int error;
  if (!races_begin(&error)) return;
  race_order_host_after_device(device);
  races_end(error);
}

/* ---- Memory ---- */

void races_driver_gave(const void *start, size_t bytes)
{
  int error;
  if (!bytes || !races_begin(&error)) return;
  race_memory_driver_gave((uintptr_t)start, bytes);
  races_end(error);
}

void races_driver_took(const void *start, size_t bytes)
{
  int error;
  if (!start || !races_begin(&error)) return;
  race_memory_driver_took((uintptr_t)start, bytes ? bytes : race_remains_given_bytes((uintptr_t)start));
  races_end(error);
}

void races_share(const void *start, size_t bytes)
{
  int error;
  if (!races_begin(&error)) return;
  race_memory_share((uintptr_t)start, bytes);
  races_end(error);
}

bool races_enter(void)
{
  return depth++ == 0;
}

void races_leave(void)
{
  depth--;
}

void races_allocated(const struct memory_event *event, const struct race_stream *stream)
{
  int error;
  if (!event->ptr || !event->bytes || !races_begin(&error)) return;
  struct race_line *line = race_order_line(stream);
  if (line) {
    struct race_use use = {race_order_advance(line), races_site("allocation", stream)};
    if (stream->is_captured) use.point.tick = 0; /* which every stream is after: the graph may run on any */
    use.site.trace = race_report_trace();
    race_memory_allocate(event, line, &use, knows_all_work && !event->is_host_accessible);
  }
  races_end(error);
}

/* A free under way. */
struct race_free {
  struct race_block *block; /* NULL: of what is not live */
  const void *ptr;
  struct race_site site;
};

void *races_freeing(const struct memory_event *event, const struct race_stream *stream)
{
  int error;
  struct race_free *going_on = event->ptr ? malloc(sizeof *going_on) : NULL;
  if (!going_on || !races_begin(&error)) {
    free(going_on);
    return NULL;
  }
  struct race_line *line = race_order_line(stream);
  *going_on = (struct race_free){.ptr = event->ptr, .site = races_site("free", stream)};
  going_on->site.trace = race_report_trace();
  if (line) {
    const struct race_use use = {race_order_advance(line), going_on->site};
    going_on->block = race_memory_free(event->ptr, line, &use, !stream->is_captured);
  }
  races_end(error);
  return going_on;
}

void races_freed(void *token, bool is_refused)
{
  int error;
  struct race_free *going_on = token;
  if (!going_on || !races_begin(&error)) return;
  if (!going_on->block)
    race_memory_free_again(going_on->ptr, &going_on->site, is_refused);
  else if (is_refused)
    race_memory_undo_free(going_on->block);
  else
    race_memory_end_free(going_on->block, &going_on->site);
  races_end(error);
  free(going_on);
}

void races_destroyed(const void *owner)
{
  int error;
  if (!races_begin(&error)) return;
  race_memory_forget_owner(owner);
  races_end(error);
}

/* ---- What was found ---- */

const char *races_report(size_t index, const char **kind_out)
{
  pthread_mutex_lock(&lock);
  const char *text = race_report_text(index, kind_out);
  pthread_mutex_unlock(&lock);
  return text;
}

size_t races_count(void)
{
  return race_report_count();
}

/* A handler of a signal may end the process in the middle of a call of the detector, whose lock is never released then. */
static bool races_try_lock(void)
{
  enum { MOST_MS = 100 };
  const struct timespec short_while = {.tv_nsec = 1000000};
  for (int ms = 0; ms < MOST_MS; ms++) {
    if (!pthread_mutex_trylock(&lock)) return true;
    nanosleep(&short_while, NULL);
  }
  return false;
}

void races_summarise(void)
{
  char text[400];
  if (races_count() && races_try_lock()) {
    bool is_wanted = !is_reported;
    if (is_wanted) race_report_summary(text, sizeof text);
    is_reported = true;
    pthread_mutex_unlock(&lock);
    if (is_wanted) dprintf(STDERR_FILENO, "%s\n", text);
  }
}
