/* SPDX-License-Identifier: MIT */
/* publish.c: see publish.h. The thread that copies the counters asks resources for their values as any caller of
 * hipmm_resource_query() does; the threads that allocate do nothing for it. */
#include "publish.h"
#include "../base/deadline.h"
#include "../base/error.h"
#include "../base/live_format.h"
#include "../base/log.h"
#include "../base/output_file.h"
#include "../base/thread.h"
#include "../stack/physical.h"
#include "inspect.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Within a change, except where noted. */
static struct {
  struct live_file *file;               /* mapped; NULL: nothing is published */
  int descriptor;                       /* holds the lock; -1: not open */
  struct output_file_identity identity; /* of the file */
  pid_t process;                        /* that publishes */
  char name[64];
  pthread_t thread;
  pthread_mutex_t lock; /* of `ends` */
  pthread_cond_t wake;
  bool ends;
} publish = {.descriptor = -1, .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static int64_t publish_now(void)
{
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* ---- Rows ---- */

/* Where a value of a plugin goes; NULL: nowhere. */
static int64_t *publish_place_of(struct live_row *row, const char *value)
{
  static const struct {
    const char *value;
    size_t place;
    const char *type; /* NULL: any */
  } names[] = {{"live_bytes", LIVE_PLACE(LIVE_BYTES), NULL},
               {"current_bytes", LIVE_PLACE(LIVE_BYTES), NULL},
               {"allocated_bytes", LIVE_PLACE(LIVE_BYTES), NULL},
               {"used_bytes", LIVE_PLACE(LIVE_BYTES), NULL},
               {"live_count", LIVE_PLACE(LIVE_BLOCKS), NULL},
               {"current_count", LIVE_PLACE(LIVE_BLOCKS), NULL},
               {"reserved_bytes", LIVE_PLACE(LIVE_RESERVED), NULL},
               {"peak_reserved_bytes", LIVE_PLACE(LIVE_PEAK_RESERVED), NULL},
               {"device_bytes", LIVE_PLACE(LIVE_RESERVED), NULL},
               {"peak_bytes", LIVE_PLACE(LIVE_PEAK_BYTES), NULL},
               {"peak_used_bytes", LIVE_PLACE(LIVE_PEAK_BYTES), NULL},
               {"total_count", LIVE_PLACE(LIVE_TOTAL_BLOCKS), NULL},
               {"stream_waits", LIVE_PLACE(LIVE_STREAM_WAITS), NULL},
               {"metadata_bytes", LIVE_PLACE(LIVE_METADATA), NULL},
               {"fragmented_bytes", offsetof(struct live_row, fragmented_bytes), NULL},
               {"pinned_bytes", offsetof(struct live_row, pinned_bytes), "spilling"},
               {"file_bytes", offsetof(struct live_row, file_bytes), "spilling"}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!strcmp(names[i].value, value) && (!names[i].type || !strcmp(names[i].type, row->type)))
      return (int64_t *)((char *)row + names[i].place);
  return NULL;
}

/* The next row, with nothing known but what a row of the path had in pieces; NULL if there is no room. */
static struct live_row *publish_next_row(struct live_file *file, const char *path, const char *type)
{
  file->n_wanted++;
  if (file->n_rows == LIVE_ROWS) return NULL;
  struct live_row *row = &file->rows[file->n_rows++];
  for (int i = 0; i < LIVE_COUNTERS; i++) row->counters[i] = LIVE_UNKNOWN;
  if (strcmp(row->path, path) != 0) row->fragmented_bytes = LIVE_UNKNOWN;
  row->size_bytes = 0;
  row->pinned_bytes = row->file_bytes = LIVE_UNKNOWN;
  snprintf(row->path, sizeof row->path, "%.*s", (int)sizeof row->path - 1, path);
  snprintf(row->type, sizeof row->type, "%.*s", (int)sizeof row->type - 1, type);
  return row;
}

/* Values that come from the driver are not asked for ten times a second, by a thread that the program does not know. So
 * what a stack with a driver's pool holds is what was counted last, here alone. */
static bool publish_asks_driver(const struct hipmm_plugin *plugin)
{
  return plugin->role == HIPMM_ROLE_SOURCE;
}

/* A pool looks at all its blocks for it, under its lock: once a second. */
static bool publish_is_fresh(const struct live_file *file, const struct live_row *row, const int64_t *place)
{
  enum { EVERY = 10 };
  return place == &row->fragmented_bytes && *place != LIVE_UNKNOWN && file->sequence / 2 % EVERY != 0;
}

static void publish_instance(struct live_file *file, const struct instance *instance)
{
  char path[PATH_BYTES];
  const struct hipmm_plugin *plugin = &instance->node->plugin->descriptor;
  if (!*path_of(instance, path, sizeof path)) return;
  struct live_row *row = publish_next_row(file, path, plugin->type);
  if (!row || publish_asks_driver(plugin)) return;
  for (uint32_t i = 0; i < plugin->n_values; i++) {
    int64_t *place = publish_place_of(row, plugin->values[i].name), value;
    if (!place || publish_is_fresh(file, row, place)) continue;
    if (!instance->resource.ops->query(instance->resource.self, i, &value)) *place = value;
  }
}

/* What the program has created past hipmm, once it has. */
static void publish_past(struct live_file *file, int device)
{
  char path[PATH_BYTES];
  const struct physical_past past = physical_past(device);
  snprintf(path, sizeof path, "devices/%d/past_hipmm", device);
  struct live_row *row = past.peak_bytes ? publish_next_row(file, path, "past_hipmm") : NULL;
  if (!row) return;
  row->counters[LIVE_BYTES] = row->counters[LIVE_RESERVED] = (int64_t)past.bytes;
  row->counters[LIVE_PEAK_BYTES] = row->counters[LIVE_PEAK_RESERVED] = (int64_t)past.peak_bytes;
  row->counters[LIVE_BLOCKS] = (int64_t)past.count;
}

static struct publish_private (*_Atomic publish_private)(int device);

void publish_set_private(struct publish_private (*count)(int device))
{
  atomic_store(&publish_private, count);
}

static void publish_private_pools(struct live_file *file, int device)
{
  char path[PATH_BYTES];
  struct publish_private (*count)(int device) = atomic_load(&publish_private);
  const struct publish_private private = count ? count(device) : (struct publish_private){0};
  snprintf(path, sizeof path, "devices/%d/private_pools", device);
  struct live_row *row = private.pools ? publish_next_row(file, path, "private_pools") : NULL;
  if (!row) return;
  row->counters[LIVE_RESERVED] = (int64_t) private.idle_bytes;
  row->counters[LIVE_BLOCKS] = (int64_t) private.blocks;
}

static void publish_stack(struct live_file *file, const struct stack *stack)
{
  char path[PATH_BYTES];
  if (*path_of(&stack->instances[stack->top], path, sizeof path)) {
    *strrchr(path, '/') = '\0';
    struct live_row *row = publish_next_row(file, path, "");
    if (row) row->counters[LIVE_RESERVED] = atomic_load(&stack->held_bytes);
    if (row) row->counters[LIVE_PEAK_RESERVED] = atomic_load(&stack->peak_held_bytes);
    if (row) row->size_bytes = (int64_t)stack->device_bytes;
    if (!stack->entry.name) publish_past(file, stack->device);
    if (!stack->entry.name) publish_private_pools(file, stack->device);
  }
  STACK_EACH(instance, stack) publish_instance(file, instance);
}

/* The odd number goes before the rows, which the order of a change does not say. GCC's ThreadSanitizer knows no fences, and needs
 * none here: the reader is another process. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wtsan"
#endif
static void publish_mark_odd(struct live_file *file)
{
  __atomic_fetch_add(&file->sequence, 1, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_RELEASE);
}

static void publish_rows(struct live_file *file)
{
  publish_mark_odd(file);
  file->n_rows = file->n_wanted = 0;
  for (struct stack *stack = stack_next(NULL); stack; stack = stack_next(stack)) publish_stack(file, stack);
  file->updated_ns = publish_now();
  __atomic_fetch_add(&file->sequence, 1, __ATOMIC_RELEASE);
}

/* ---- The thread ---- */

/* False when publishing ends. */
static bool publish_sleep(void)
{
  struct timespec until = deadline_in_ms(CLOCK_REALTIME, LIVE_PERIOD_MS);
  int code = 0;
  pthread_mutex_lock(&publish.lock);
  while (!publish.ends && !code) code = pthread_cond_timedwait(&publish.wake, &publish.lock, &until);
  bool ends = publish.ends;
  pthread_mutex_unlock(&publish.lock);
  return !ends;
}

static void *publish_run(void *argument)
{
  pthread_setname_np(pthread_self(), "hipmm-publish");
  do publish_rows(argument);
  while (publish_sleep());
  return NULL;
}

/* ---- The file ---- */

static void publish_read_command(char *command)
{
  int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  ssize_t bytes = file < 0 ? 0 : read(file, command, LIVE_COMMAND_BYTES - 1);
  if (file >= 0) close(file);
  command[bytes > 0 ? bytes : 0] = '\0';
  for (ssize_t i = 0; i + 1 < bytes; i++)
    if (!command[i]) command[i] = ' ';
}

static void publish_write_head(struct live_file *file)
{
  file->file_bytes = sizeof *file;
  file->row_bytes = sizeof *file->rows;
  file->rows_offset = offsetof(struct live_file, rows);
  file->process = (uint32_t)getpid();
  file->started_ns = publish_now();
  publish_read_command(file->command);
  memcpy(file->magic, LIVE_MAGIC, sizeof file->magic);
}

/* Of the numbers of processes, as the system counts namespaces; 0 if it does not tell. */
static unsigned long long publish_namespace(void)
{
  struct stat status;
  return stat("/proc/self/ns/pid", &status) ? 0 : (unsigned long long)status.st_ino;
}

void publish_fill(struct live_file *file)
{
  publish_write_head(file);
  publish_rows(file);
}

static void publish_close_descriptor(void)
{
  if (publish.descriptor >= 0 && output_file_is(publish.descriptor, &publish.identity)) close(publish.descriptor);
  publish.descriptor = -1;
}

bool publish_identify(int file, const char *name, struct publish_file *file_out)
{
  struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
  struct stat status;
  char expected[64], magic[sizeof LIVE_MAGIC - 1];
  unsigned long long space;
  unsigned user, process;
  if (sscanf(name, "hipmm.%u.%llu.%u", &user, &space, &process) != 3 || process > INT_MAX) return false;
  snprintf(expected, sizeof expected, LIVE_NAME, user, space, (long)process);
  if (strcmp(expected + sizeof LIVE_FOLDER, name) != 0 || fstat(file, &status)) return false;
  if (!S_ISREG(status.st_mode) || status.st_uid != user) return false;
  if (pread(file, magic, sizeof magic, 0) != (ssize_t)sizeof magic || memcmp(magic, LIVE_MAGIC, sizeof magic) != 0)
    return false;
  bool is_left_over = !fcntl(file, F_OFD_GETLK, &lock) && lock.l_type == F_UNLCK;
  *file_out = (struct publish_file){user, space == publish_namespace() ? 0 : space, process, is_left_over};
  return true;
}

/* Removes what processes of this user left that were killed, some at each beginning. A process that begins now may have
 * got the number of one of them, and puts its own file in place of that one's. */
static void publish_remove_left_over(void)
{
  enum { MOST_FILES = 64 };
  char own[32];
  struct publish_file found;
  int n_files = 0;
  DIR *folder = opendir(LIVE_FOLDER);
  if (!folder) return;
  size_t length = (size_t)snprintf(own, sizeof own, "hipmm.%u.", (unsigned)geteuid());
  for (struct dirent *entry; n_files < MOST_FILES && (entry = readdir(folder));) {
    if (strncmp(entry->d_name, own, length) != 0) continue;
    int file = openat(dirfd(folder), entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    n_files += file >= 0;
    bool is_dead = file >= 0 && publish_identify(file, entry->d_name, &found) && found.is_left_over;
    if (is_dead && (found.space || kill((pid_t)found.process, 0))) (void)unlinkat(dirfd(folder), entry->d_name, 0);
    if (file >= 0) close(file);
  }
  closedir(folder);
}

/* The file gets its name when it is locked and whole: a reader removes files that are not locked. Files of these names are
 * left over from a process that had the same number. An errno; 0: opened. */
static int publish_open(void)
{
  const struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  char draft[sizeof publish.name + 1];
  unsigned long long namespace = publish_namespace();
  snprintf(publish.name, sizeof publish.name, LIVE_NAME, (unsigned)geteuid(), namespace, (long)getpid());
  snprintf(draft, sizeof draft, LIVE_DRAFT, (unsigned)geteuid(), namespace, (long)getpid());
  (void)unlink(draft);
  publish.descriptor = open(draft, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (publish.descriptor < 0) return errno;
  int code = output_file_identify(publish.descriptor, &publish.identity) ? 0 : errno;
  if (!code && fcntl(publish.descriptor, F_OFD_SETLK, &whole)) code = errno;
  if (!code) code = output_file_allocate(publish.descriptor, 0, sizeof *publish.file);
  void *file =
      code ? MAP_FAILED : mmap(NULL, sizeof *publish.file, PROT_READ | PROT_WRITE, MAP_SHARED, publish.descriptor, 0);
  if (!code && file == MAP_FAILED) code = errno;
  if (!code) publish_write_head(file);
  if (!code && rename(draft, publish.name)) code = errno;
  if (code) {
    if (file != MAP_FAILED) munmap(file, sizeof *publish.file);
    unlink(draft);
    publish_close_descriptor();
    return code;
  }
  publish.file = file;
  publish.process = getpid();
  return 0;
}

static void publish_close(void)
{
  unlink(publish.name);
  munmap(publish.file, sizeof *publish.file);
  publish_close_descriptor();
  publish.file = NULL;
}

/* The lock lives as long as a process has the descriptor open: a child's would outlive the process that publishes. */
static void publish_leave_to_parent(void)
{
  publish_close_descriptor();
  publish.file = NULL;
}

static void publish_watch_forks(void)
{
  pthread_atfork(NULL, NULL, publish_leave_to_parent);
}

void publish_begin(void)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, publish_watch_forks);
  if (publish.file) return;
  publish_remove_left_over();
  int code = publish_open();
  if (!code) {
    publish.ends = false;
    code = thread_start(&publish.thread, NULL, publish_run, publish.file);
    if (code) publish_close();
  }
  if (code) log_line(HIPMM_LOG_WARNING, "publish", "counters are not published: %s: %s", publish.name, strerror(code));
}

void publish_end(void)
{
  if (!publish.file || publish.process != getpid()) return;
  pthread_mutex_lock(&publish.lock);
  publish.ends = true;
  pthread_cond_signal(&publish.wake);
  pthread_mutex_unlock(&publish.lock);
  pthread_join(publish.thread, NULL);
  publish_close();
}

/* A process may exit without hipmm_finalize(). */
__attribute__((destructor)) static void publish_unlink_at_exit(void)
{
  if (publish.file && publish.process == getpid()) unlink(publish.name);
}
