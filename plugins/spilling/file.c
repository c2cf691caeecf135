/* SPDX-License-Identifier: MIT */
/* file.c: see spilling.h. The file is unlinked when it is opened, so that nothing of it stays when the process is killed.
 *
 * Content goes through two pinned blocks: while one is copied by the device, the other is written or read. What is written goes to
 * the disk before the device's memory is freed: the content would be lost if the disk failed later. */
#include "../common/sizes.h"
#include "../common/stager.h"
#include "spilling.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK_BYTES = 4 << 20, PAGE_BYTES = 4096 };

/* ---- Life ---- */

/* Returns a descriptor, or -1 with errno. */
static int spill_file_create(const char *folder)
{
  char name[OUTPUT_FILE_NAME_BYTES];
  int file;
  do file = open(folder, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
  while (file < 0 && errno == EINTR);
  if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return output_file_spare_standard(file);
  int length = snprintf(name, sizeof name, "%s/hipmm-XXXXXX", folder);
  if (length < 0 || (size_t)length >= sizeof name) {
    errno = ENAMETOOLONG;
    return -1;
  }
  do {
    strcpy(name + length - 6, "XXXXXX");
    file = mkostemp(name, O_CLOEXEC);
  } while (file < 0 && errno == EINTR);
  if (file >= 0) unlink(name);
  return output_file_spare_standard(file);
}

enum hipmm_status spill_file_open(struct spilling *spilling)
{
  const struct hipmm_services *services = spilling->services;
  struct spill_file *file = &spilling->file;
  void *blocks;
  *file = (struct spill_file){
      .folder = spilling->options->folder, .descriptor = -1, .limit_bytes = spilling->options->file_limit};
  if (!file->folder) return HIPMM_OK;
  if (!services->hip->HostMalloc || !services->hip->HostFree)
    return services->fail(services, HIPMM_E_NOT_SUPPORTED, "folder", "this runtime does not export hipHostMalloc");
  file->descriptor = spill_file_create(file->folder);
  if (file->descriptor < 0 || !output_file_identify(file->descriptor, &file->identity)) {
    enum hipmm_status status = services->fail(services, HIPMM_E_IO, "folder", "cannot make a file in \"%.500s\": %s",
                                              file->folder, output_file_reason(errno));
    if (file->descriptor >= 0) close(file->descriptor);
    return status;
  }
  int code = services->hip->HostMalloc(&blocks, SPILL_FILE_BLOCKS * BLOCK_BYTES, HIPMM_HIP_HOST_MALLOC_PORTABLE);
  if (code) {
    close(file->descriptor);
    return services->refuse_hip(services, "hipHostMalloc", code, SPILL_FILE_BLOCKS * BLOCK_BYTES);
  }
  file->blocks = blocks;
  pthread_mutex_init(&file->lock, NULL);
  return HIPMM_OK;
}

void spill_file_close(struct spilling *spilling)
{
  const struct hipmm_hip *hip = spilling->services->hip;
  struct spill_file *file = &spilling->file;
  if (!file->folder) return;
  if (hip->HostFree(file->blocks) && hip->HostFree(file->blocks)) hip->GetLastError();
  if (output_file_is(file->descriptor, &file->identity)) close(file->descriptor);
  pthread_mutex_destroy(&file->lock);
}

/* ---- Room ---- */

static uint64_t spill_file_end(const struct movable *movable)
{
  return movable ? sizes_round_up(movable->offset + movable->bytes, PAGE_BYTES) : 0;
}

/* The first gap that is large enough. */
bool spill_file_take_room(struct spill_file *file, struct movable *movable)
{
  struct movable *before = NULL, *next = file->extents.first;
  if (!file->folder) return false;
  while (next && next->offset - spill_file_end(before) < movable->bytes) {
    before = next;
    next = next->next;
  }
  movable->offset = spill_file_end(before);
  if (movable->offset > file->limit_bytes || movable->bytes > file->limit_bytes - movable->offset) return false;
  movable_list_insert(&file->extents, before, movable);
  return true;
}

/* The end of the file goes back to the disk. If that fails, it is only kept for longer. */
void spill_file_leave(struct spill_file *file, struct movable *movable)
{
  bool is_last = file->extents.last == movable;
  movable_list_remove(&file->extents, movable);
  if (is_last && output_file_is(file->descriptor, &file->identity))
    (void)output_file_truncate(file->descriptor, (off_t)spill_file_end(file->extents.last));
}

/* ---- Copies ---- */

struct file_copy {
  struct stager stager; /* first */
  struct spilling *spilling;
  const struct movable *movable;
  char *memory;
  bool is_write;
  atomic_int code; /* an errno; 0: the file did not fail */
};

static int spill_file_read_at(int file, char *block, size_t bytes, uint64_t offset)
{
  while (bytes) {
    ssize_t n = pread(file, block, bytes, (off_t)offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : EIO;
    block += n;
    bytes -= (size_t)n;
    offset += (uint64_t)n;
  }
  return 0;
}

static int spill_file_flush(int file)
{
  int failed;
  do failed = fdatasync(file);
  while (failed && errno == EINTR);
  return failed ? errno : 0;
}

static bool spill_file_check(struct file_copy *copy, int code)
{
  if (code) atomic_store(&copy->code, code);
  return !code;
}

/* Either way the block is free again at the end. */
static bool spill_file_copy_piece(struct stager *stager, uint64_t piece, unsigned thread, hipmm_stream_t stream)
{
  struct file_copy *copy = (struct file_copy *)stager;
  const struct hipmm_hip *hip = stager->services->hip;
  const struct movable *movable = copy->movable;
  int file = copy->spilling->file.descriptor;
  uint64_t at = piece * BLOCK_BYTES, bytes = movable->bytes - at < BLOCK_BYTES ? movable->bytes - at : BLOCK_BYTES;
  char *block = copy->spilling->file.blocks + (size_t)thread * BLOCK_BYTES, *device = copy->memory + at;
  bool is_good = true;
  if (!copy->is_write) is_good = spill_file_check(copy, spill_file_read_at(file, block, bytes, movable->offset + at));
  if (is_good)
    is_good = stager_check(stager, "hipMemcpyAsync",
                           hip->MemcpyAsync(copy->is_write ? block : device, copy->is_write ? device : block, bytes,
                                            HIPMM_HIP_MEMCPY_DEFAULT, stream),
                           bytes);
  if (is_good) is_good = stager_check(stager, "hipStreamSynchronize", hip->StreamSynchronize(stream), 0);
  if (is_good && copy->is_write)
    is_good = spill_file_check(copy, output_file_write_at(file, block, bytes, movable->offset + at));
  return is_good;
}

/* HIPMM_E_IO, which is not reported: code_out gets the file's errno, else 0. */
static enum hipmm_status spill_file_copy(struct spilling *spilling, const struct movable *movable, void *memory,
                                         bool is_write, int *code_out)
{
  const struct hipmm_services *services = spilling->services;
  struct spill_file *file = &spilling->file;
  struct file_copy copy = {.stager = {.services = services,
                                      .copy_piece = spill_file_copy_piece,
                                      .n_pieces = (movable->bytes + BLOCK_BYTES - 1) / BLOCK_BYTES},
                           .spilling = spilling,
                           .movable = movable,
                           .memory = memory,
                           .is_write = is_write};
  int code = services->hip->EventSynchronize(movable->last_use); /* copies of other buffers do not wait for this work */
  *code_out = 0;
  if (code) return services->refuse_hip(services, "hipEventSynchronize", code, 0);
  pthread_mutex_lock(&file->lock);
  bool is_good = spill_file_check(&copy, output_file_is(file->descriptor, &file->identity) ? 0 : EBADF);
  if (is_good) is_good = stager_run(&copy.stager, SPILL_FILE_BLOCKS);
  if (is_good && is_write) is_good = spill_file_check(&copy, spill_file_flush(file->descriptor));
  pthread_mutex_unlock(&file->lock);
  *code_out = copy.code;
  if (is_good) return HIPMM_OK;
  return *code_out ? HIPMM_E_IO : services->refuse_hip(services, copy.stager.call, copy.stager.code, copy.stager.bytes);
}

/* A disk that stays full is worth one warning. */
enum hipmm_status spill_file_write(struct spilling *spilling, const struct movable *movable)
{
  struct spill_file *file = &spilling->file;
  int code;
  enum hipmm_status status = spill_file_copy(spilling, movable, movable->memory, true, &code);
  pthread_mutex_lock(&spilling->lock);
  bool is_new = code && code != file->warned;
  if (code || !status) file->warned = code;
  pthread_mutex_unlock(&spilling->lock);
  if (is_new)
    spilling->services->log(spilling->services, HIPMM_LOG_WARNING,
                            "cannot move %llu bytes into a file in \"%.500s\": %s; they stay on the device",
                            (unsigned long long)movable->bytes, file->folder, output_file_reason(code));
  return status;
}

enum hipmm_status spill_file_read(struct spilling *spilling, const struct movable *movable, void *memory)
{
  const struct hipmm_services *services = spilling->services;
  int code;
  enum hipmm_status status = spill_file_copy(spilling, movable, memory, false, &code);
  if (status != HIPMM_E_IO) return status;
  return services->fail(services, HIPMM_E_IO, NULL,
                        "cannot read %llu bytes of a movable buffer from the file in \"%.500s\": %s; the buffer stays "
                        "there, and can be pinned again later",
                        (unsigned long long)movable->bytes, spilling->file.folder, output_file_reason(code));
}
