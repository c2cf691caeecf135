/* SPDX-License-Identifier: MIT */
/* sink.c: see sink.h. The buffer is our own and not the C library's, which a forked child would write once more when it
 * exits. */
#include "sink.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 16 };

struct sink {
  const struct hipmm_services *services;
  struct sink *next; /* under sinks_lock */
  pid_t process;     /* that opened it: a child writes nothing */
  int file;
  dev_t file_device;
  ino_t file_number; /* both of a regular file */
  bool is_regular;

  pthread_mutex_t lock; /* all below */
  bool auto_flush;
  int write_error; /* errno of the first loss since the last flush; 0: none */
  struct sink_counts counts;
  int64_t buffered_rows;
  struct row_clock clock;
  size_t used;
  char buffer[BUFFER_BYTES];
};

static struct sink *sinks; /* all that are open */
static pthread_mutex_t sinks_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- Writing; the sink's lock is held ---- */

static bool write_all(int file, const char *bytes, size_t length)
{
  while (length) {
    ssize_t written = write(file, bytes, length);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes += written;
    length -= (size_t)written;
  }
  return true;
}

/* Rows that cannot be written are dropped: the program goes on, and the log says so once. */
static void lose_rows(struct sink *sink, int code)
{
  if (!sink->counts.lost_rows)
    sink->services->log(sink->services, HIPMM_LOG_ERROR, "the log cannot be written: %s; rows are lost",
                        strerror(code));
  sink->counts.lost_rows += sink->buffered_rows;
  if (!sink->write_error) sink->write_error = code;
}

static void write_buffer(struct sink *sink)
{
  if (sink->used && !write_all(sink->file, sink->buffer, sink->used)) lose_rows(sink, errno);
  sink->used = 0;
  sink->buffered_rows = 0;
}

void sink_add(struct sink *sink, enum row_action action, const void *ptr, size_t bytes, hipStream_t stream)
{
  pthread_mutex_lock(&sink->lock);
  if (sink->used > BUFFER_BYTES - ROW_BYTES) write_buffer(sink);
  sink->used += row_write(&sink->clock, action, ptr, bytes, stream, sink->buffer + sink->used);
  sink->buffered_rows++;
  sink->counts.rows++;
  if (sink->auto_flush) write_buffer(sink);
  pthread_mutex_unlock(&sink->lock);
}

enum hipmm_status sink_flush(struct sink *sink)
{
  pthread_mutex_lock(&sink->lock);
  write_buffer(sink);
  int code = sink->write_error;
  sink->write_error = 0;
  pthread_mutex_unlock(&sink->lock);
  if (!code) return HIPMM_OK;
  return sink->services->fail(sink->services, HIPMM_E_IO, "file", "rows were lost: %s", strerror(code));
}

struct sink_counts sink_count(struct sink *sink)
{
  pthread_mutex_lock(&sink->lock);
  struct sink_counts counts = sink->counts;
  pthread_mutex_unlock(&sink->lock);
  return counts;
}

/* ---- At exit ---- */

/* A thread that exits while it writes a row, in a signal handler, holds its lock for ever: do not wait for ever. */
static bool lock_soon(pthread_mutex_t *lock)
{
  struct timespec limit;
  clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_sec++;
  return pthread_mutex_timedlock(lock, &limit) == 0;
}

/* The process may exit with its stacks live. Rows that other threads still add are written as they come. */
__attribute__((destructor)) static void flush_at_exit(void)
{
  if (!lock_soon(&sinks_lock)) return;
  for (struct sink *sink = sinks; sink; sink = sink->next) {
    if (sink->process != getpid() || !lock_soon(&sink->lock)) continue;
    write_buffer(sink);
    sink->auto_flush = true;
    pthread_mutex_unlock(&sink->lock);
  }
  pthread_mutex_unlock(&sinks_lock);
}

/* ---- Opening and closing ---- */

static enum hipmm_status refuse_file(const struct hipmm_services *services, const char *name, int code)
{
  const char *remedy = code == ENOENT   ? "; its folder does not exist, create it first"
                       : code == EISDIR ? "; write the name of a file in it"
                                        : "";
  return services->fail(services, HIPMM_E_IO, "file", "cannot write \"%.500s\": %s%s", name, strerror(code), remedy);
}

/* The open sink that writes the same file; NULL if there is none. */
static const struct sink *sink_of_file(const struct sink *sink)
{
  for (const struct sink *other = sinks; sink->is_regular && other; other = other->next)
    if (other->is_regular && other->file_device == sink->file_device && other->file_number == sink->file_number)
      return other;
  return NULL;
}

/* Opening without waiting: a pipe that nobody reads is an error and not a hang. */
static int open_file(const char *name)
{
  int file = open(name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
  if (file >= 0) fcntl(file, F_SETFL, fcntl(file, F_GETFL) & ~O_NONBLOCK);
  return file;
}

static int identify(struct sink *sink)
{
  struct stat status;
  if (fstat(sink->file, &status)) return errno;
  sink->is_regular = S_ISREG(status.st_mode);
  sink->file_device = status.st_dev;
  sink->file_number = status.st_ino;
  return 0;
}

/* Empties the file only once it is known that no other sink writes it. Returns errno. */
static int begin_file(struct sink *sink)
{
  if (sink->is_regular && ftruncate(sink->file, 0)) return errno;
  return write_all(sink->file, ROW_HEADER, sizeof ROW_HEADER - 1) ? 0 : errno;
}

static void discard(struct sink *sink)
{
  if (sink->file >= 0) close(sink->file);
  pthread_mutex_destroy(&sink->lock);
  sink->services->host_free(sink->services, sink, sizeof *sink);
}

/* Under sinks_lock. */
static enum hipmm_status enter(struct sink *sink, const char *name, int32_t *device_out)
{
  sink->file = open_file(name);
  int code = sink->file < 0 ? errno : identify(sink);
  if (code) return refuse_file(sink->services, name, code);
  const struct sink *other = sink_of_file(sink);
  if (other) {
    *device_out = other->services->device;
    return HIPMM_E_STATE;
  }
  code = begin_file(sink);
  if (code) return refuse_file(sink->services, name, code);
  sink->next = sinks;
  sinks = sink;
  return HIPMM_OK;
}

enum hipmm_status sink_open(const struct hipmm_services *services, const char *name, uint32_t auto_flush,
                            int32_t *device_out, struct sink **sink_out)
{
  struct sink *sink = services->host_allocate(services, sizeof *sink);
  if (!sink) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for a buffer");
  sink->services = services;
  sink->process = getpid();
  sink->auto_flush = auto_flush;
  pthread_mutex_init(&sink->lock, NULL);
  pthread_mutex_lock(&sinks_lock);
  enum hipmm_status status = enter(sink, name, device_out);
  pthread_mutex_unlock(&sinks_lock);
  if (status)
    discard(sink);
  else
    *sink_out = sink;
  return status;
}

void sink_close(struct sink *sink)
{
  pthread_mutex_lock(&sinks_lock);
  struct sink **link = &sinks;
  while (*link != sink) link = &(*link)->next;
  *link = sink->next;
  pthread_mutex_unlock(&sinks_lock);
  write_buffer(sink);
  discard(sink);
}
