/* SPDX-License-Identifier: MIT */
/* record_file.c: see record_file.h. The disk space of a mapped block is allocated first: writing to a mapping without
 * space would raise SIGBUS. */
#include "record_file.h"
#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

static struct record_file *all; /* that are open */
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- The file; its lock is held, or nobody else knows it ---- */

/* Adds a block of zeros to the file and maps it. An errno; 0: done. */
static int record_file_map(struct log_file *file, uint64_t *bytes, void **block_out)
{
  int code = log_file_is_open(file) ? output_file_allocate(file->descriptor, *bytes, RECORD_BLOCK_BYTES) : EBADF;
  if (code) return code;
  void *block = mmap(NULL, RECORD_BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file->descriptor, (off_t)*bytes);
  if (block == MAP_FAILED) return errno;
  *bytes += RECORD_BLOCK_BYTES;
  *block_out = block;
  return 0;
}

static void record_file_write_head(const struct record_file *file, struct record_head *head)
{
  struct timespec wall;
  struct utsname host;
  head->byte_order = RECORD_BYTE_ORDER;
  head->block_bytes = RECORD_BLOCK_BYTES;
  head->ticks_per_second = clock_ticks_per_second(file->uses_counter);
  head->ticks = clock_ticks(file->uses_counter);
  head->nanoseconds = monotonic_ns();
  clock_gettime(CLOCK_REALTIME, &wall);
  head->wall_offset = wall.tv_sec * INT64_C(1000000000) + wall.tv_nsec - (int64_t)head->nanoseconds;
  head->process = (uint32_t)getpid();
  head->device = file->services->device;
  head->stack_sample = file->stack_sample;
  if (!uname(&host)) memcpy(head->host, host.nodename, strnlen(host.nodename, sizeof head->host - 1));
  memcpy(head->magic, RECORD_MAGIC, sizeof head->magic);
}

static void record_file_set_end(const struct record_file *file)
{
  file->head->end_ticks = clock_ticks(file->uses_counter);
  file->head->end_nanoseconds = monotonic_ns();
}

static void record_file_end(struct record_file *file)
{
  record_file_set_end(file);
  munmap(file->head, RECORD_BLOCK_BYTES);
}

/* Begins an empty file. An errno; 0: done. */
static int record_file_begin(struct record_file *file, struct log_file opened)
{
  uint64_t bytes = 0;
  void *head = NULL;
  int code = output_file_truncate(opened.descriptor, 0);
  if (!code) code = record_file_map(&opened, &bytes, &head);
  if (code) return code;
  file->file = opened;
  file->head = head;
  file->bytes = bytes + file->kept_blocks * RECORD_BLOCK_BYTES; /* kept blocks come next, then those of the threads */
  file->copied_bytes = 0;
  file->generation++;
  record_file_write_head(file, head);
  return 0;
}

/* Renames the file and begins a new one. Blocks that threads write into stay mapped. On failure the file grows on, and a
 * line of the log says so. */
static void record_file_rotate(struct record_file *file)
{
  struct log_file opened = {.descriptor = -1}, before = file->file;
  struct record_head *head = file->head;
  int code = log_file_rotate(file->name, file->rotated_files);
  if (!code) code = log_file_try(file->name, OUTPUT_FILE_MAP, &opened);
  if (!code) (void)log_file_lock(&opened);
  if (!code) code = record_file_begin(file, opened);
  if (code) {
    log_file_close(&opened);
    file->rotate_bytes = 0;
    file->services->log(file->services, HIPMM_LOG_WARNING, "%.500s is not rotated any more: %s", file->name,
                        output_file_reason(code));
    return;
  }
  struct record_file old = {.head = head, .uses_counter = file->uses_counter};
  record_file_end(&old);
  log_file_close(&before);
  file->part_begins(file);
}

/* ---- Blocks ---- */

/* The block is void. Under the lock. */
static void record_file_begin_block(struct record_file *file, struct record_block *block, uint32_t thread,
                                    uint64_t lost_events)
{
  block->thread = thread;
  block->lost_events = lost_events;
  block->sequence = ++file->sequence;
  block->held_bytes = 1 + (uint64_t)atomic_load_explicit(&file->held_bytes, memory_order_relaxed);
  block->ticks = clock_ticks(file->uses_counter);
  block->nanoseconds = monotonic_ns();
  __atomic_store_n(&block->magic, RECORD_BLOCK_MAGIC, __ATOMIC_RELEASE);
}

/* Says once that the file cannot grow, and begins a part once it can. Under the lock. */
static void record_file_tell(struct record_file *file, int code)
{
  if (code && !file->is_full)
    file->services->log(file->services, HIPMM_LOG_ERROR, "%.500s cannot grow: %s; events are lost", file->name,
                        output_file_reason(code));
  if (!code && file->is_full) file->part_begins(file);
  file->is_full = code != 0;
}

struct record_block *record_file_map_block(struct record_file *file, uint32_t thread, uint64_t lost_events,
                                           uint32_t *generation_out)
{
  void *block = NULL;
  pthread_mutex_lock(&file->lock);
  int code = record_file_map(&file->file, &file->bytes, &block);
  if (block) record_file_begin_block(file, block, thread, lost_events);
  record_file_tell(file, code);
  *generation_out = file->generation;
  pthread_mutex_unlock(&file->lock);
  return block;
}

bool record_file_copy_block(struct record_file *file, const struct record_block *block)
{
  pthread_mutex_lock(&file->lock);
  if (file->rotate_bytes && file->copied_bytes + RECORD_BLOCK_BYTES > file->rotate_bytes) record_file_rotate(file);
  const uint64_t kept_bytes = file->kept_blocks * RECORD_BLOCK_BYTES;
  uint64_t at = kept_bytes ? RECORD_BLOCK_BYTES + file->copied_bytes % kept_bytes : file->bytes;
  bool is_open = log_file_is_open(&file->file);
  int code = is_open ? output_file_write_at(file->file.descriptor, (const char *)block, RECORD_BLOCK_BYTES, at) : EBADF;
  if (!code) {
    file->copied_bytes += RECORD_BLOCK_BYTES;
    if (!kept_bytes) file->bytes += RECORD_BLOCK_BYTES;
    if (kept_bytes && file->copied_bytes % (kept_bytes / 2) < RECORD_BLOCK_BYTES) file->part_begins(file);
  } else if (is_open && !kept_bytes) {
    output_file_truncate(file->file.descriptor, (off_t)file->bytes); /* a part: the next block there is zeros */
  }
  record_file_tell(file, code);
  pthread_mutex_unlock(&file->lock);
  return !code;
}

/* From here on no reader finds the block in the file, or events in the block. What is behind them stays. */
static void record_block_void(struct record_block *block)
{
  __atomic_store_n(&block->magic, 0, __ATOMIC_RELAXED);
  __atomic_signal_fence(__ATOMIC_SEQ_CST); /* in this order also for who reads what a killed process left */
  memset(block, 0, sizeof *block + 1);
}

bool record_file_reuse_block(struct record_file *file, struct record_block *block, uint32_t thread,
                             uint64_t lost_events, uint32_t generation)
{
  record_block_void(block);
  pthread_mutex_lock(&file->lock);
  bool is_present = generation == file->generation;
  if (is_present) record_file_begin_block(file, block, thread, lost_events);
  pthread_mutex_unlock(&file->lock);
  return is_present;
}

void record_block_release(struct record_block *block, bool is_copied)
{
  if (is_copied) record_block_void(block);
  munmap(block, RECORD_BLOCK_BYTES);
}

int record_file_flush(struct record_file *file)
{
  pthread_mutex_lock(&file->lock);
  int code = log_file_is_open(&file->file) && !fdatasync(file->file.descriptor) ? 0 : errno;
  pthread_mutex_unlock(&file->lock);
  return code;
}

/* ---- Kept blocks ---- */

/* A file in memory; an errno, or 0. */
static int record_file_open_memory(struct log_file *file_out)
{
  struct log_file file = {.descriptor = output_file_spare_standard(memfd_create("hipmm-record", MFD_CLOEXEC)),
                          .is_regular = true};
  if (file.descriptor < 0) return errno;
  if (!output_file_identify(file.descriptor, &file.identity)) {
    int code = errno;
    close(file.descriptor);
    return code;
  }
  *file_out = file;
  return 0;
}

static bool record_file_has_begun(const char *blocks, uint64_t at)
{
  return !at || __atomic_load_n(&((const struct record_block *)(blocks + at))->magic, __ATOMIC_RELAXED);
}

/* Blocks that no thread has begun are left out. A thread that writes into its block stores the byte that ends it before what
 * leads further, so what is copied of it is whole events. What the output has stays if there is no space. */
static int record_file_save_blocks(const struct record_file *file, const char *blocks, const struct log_file *output)
{
  uint64_t saved_bytes = 0;
  for (uint64_t at = 0; at < file->bytes; at += RECORD_BLOCK_BYTES)
    saved_bytes += record_file_has_begun(blocks, at) * (uint64_t)RECORD_BLOCK_BYTES;
  int code = output_file_allocate(output->descriptor, 0, saved_bytes);
  if (code) (void)!output_file_truncate(output->descriptor, (off_t)output->bytes);
  for (uint64_t at = saved_bytes = 0; !code && at < file->bytes; at += RECORD_BLOCK_BYTES) {
    if (!record_file_has_begun(blocks, at)) continue; /* or a thread has ended its block meanwhile */
    code = output_file_write(output->descriptor, blocks + at, RECORD_BLOCK_BYTES, NULL);
    saved_bytes += RECORD_BLOCK_BYTES;
  }
  return code ? code : output_file_truncate(output->descriptor, (off_t)saved_bytes);
}

/* The lock is held. An errno; 0: done. */
static int record_file_save_into(struct record_file *file, const struct log_file *output)
{
  record_file_set_end(file);
  int code = log_file_is_open(&file->file) ? output_file_truncate(file->file.descriptor, (off_t)file->bytes) : EBADF;
  if (code) return code;
  char *blocks = mmap(NULL, file->bytes, PROT_READ, MAP_SHARED, file->file.descriptor, 0);
  if (blocks == MAP_FAILED) return errno;
  code = record_file_save_blocks(file, blocks, output);
  munmap(blocks, file->bytes);
  return code;
}

/* ---- Life ---- */

/* Why the opened file cannot be this record's. Under all_lock. */
static enum log_file_clash record_file_clash(const struct record_file *file, const struct log_file *opened)
{
  for (struct record_file *other = all; other; other = other->next) {
    if (other == file) continue;
    pthread_mutex_lock(&other->lock);
    bool is_same = log_file_is_same(&other->file, opened) ||
                   (file->kept_blocks && other->kept_blocks && !strcmp(file->name, other->name));
    pthread_mutex_unlock(&other->lock);
    if (is_same)
      return other->services->device == file->services->device ? LOG_FILE_SAME_DEVICE : LOG_FILE_OTHER_DEVICE;
  }
  return log_file_lock(opened) ? LOG_FILE_NO_CLASH : LOG_FILE_OTHER_PROCESS;
}

int record_file_save(struct record_file *file)
{
  struct log_file output = {.descriptor = -1};
  pthread_mutex_lock(&all_lock);
  int code = log_file_try(file->name, OUTPUT_FILE_MAP, &output);
  if (!code && !output.is_regular) code = ESPIPE;
  if (!code && record_file_clash(file, &output)) code = EBUSY;
  pthread_mutex_lock(&file->lock);
  if (!code) code = record_file_save_into(file, &output);
  pthread_mutex_unlock(&file->lock);
  log_file_close(&output);
  pthread_mutex_unlock(&all_lock);
  return code;
}

enum hipmm_status record_file_open(struct record_file *file, const struct hipmm_services *services,
                                   const struct log_file_spec *spec, enum log_file_clash *clash_out)
{
  struct log_file opened;
  file->services = services;
  file->uses_counter = clock_has_counter();
  bool is_nameable = log_file_absolute_name(spec->name, file->name);
  file->rotate_bytes = is_nameable ? spec->rotate_bytes : 0;
  file->rotated_files = spec->rotated_files;
  enum hipmm_status status = HIPMM_OK;
  int reason = !file->kept_blocks ? 0 : is_nameable ? record_file_open_memory(&opened) : ENAMETOOLONG;
  if (reason) return log_file_refuse(services, spec->name, reason);
  if (!file->kept_blocks) status = log_file_open(services, spec->name, OUTPUT_FILE_MAP, &opened);
  if (status) return status;
  pthread_mutex_lock(&all_lock);
  *clash_out = record_file_clash(file, &opened);
  if (*clash_out) {
    status = HIPMM_E_STATE;
  } else {
    int code = opened.is_regular ? record_file_begin(file, opened) : ESPIPE;
    if (code == ESPIPE)
      status = services->fail(services, HIPMM_E_CONFIG, "file",
                              "\"%.500s\" is not a regular file; a record is written into memory that maps its file",
                              spec->name);
    else if (code)
      status = log_file_refuse(services, spec->name, code);
  }
  if (!status) {
    pthread_mutex_init(&file->lock, NULL);
    file->next = all;
    all = file;
  }
  pthread_mutex_unlock(&all_lock);
  if (status) log_file_close(&opened);
  return status;
}

void record_file_close(struct record_file *file)
{
  pthread_mutex_lock(&all_lock);
  struct record_file **link = &all;
  while (*link != file) link = &(*link)->next;
  *link = file->next;
  pthread_mutex_unlock(&all_lock);
  record_file_end(file);
  log_file_close(&file->file);
  pthread_mutex_destroy(&file->lock);
}
