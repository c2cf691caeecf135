/* SPDX-License-Identifier: MIT */
/* content_file.c: see content_file.h. The file is unlinked when it is opened, so that nothing of it stays when the process is
 * killed.
 *
 * Content goes through two pinned blocks: while one is copied by the device, the other is written or read. What is written goes to
 * the disk before the device's memory is freed: the content would be lost if the disk failed later. */
#include "content_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCKS = 2, BLOCK_BYTES = 4 << 20 };

/* ---- Life ---- */

/* Returns a descriptor, or -1 with errno. */
static int content_file_create(const char *folder)
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

enum hipmm_status content_file_open(struct content_file *file, const struct hipmm_services *services,
                                    const char *folder)
{
  void *blocks;
  if (!services->hip->HostMalloc || !services->hip->HostFree)
    return services->fail(services, HIPMM_E_NOT_SUPPORTED, "folder", "this runtime does not export hipHostMalloc");
  int descriptor = content_file_create(folder);
  if (descriptor < 0 || !output_file_identify(descriptor, &file->identity)) {
    enum hipmm_status status = services->fail(services, HIPMM_E_IO, "folder", "cannot make a file in \"%.500s\": %s",
                                              folder, output_file_reason(errno));
    if (descriptor >= 0) close(descriptor);
    return status;
  }
  int code = services->hip->HostMalloc(&blocks, BLOCKS * BLOCK_BYTES, HIPMM_HIP_HOST_MALLOC_PORTABLE);
  if (code) {
    close(descriptor);
    return services->refuse_hip(services, "hipHostMalloc", code, BLOCKS * BLOCK_BYTES);
  }
  file->services = services;
  file->folder = folder;
  file->descriptor = descriptor;
  file->blocks = blocks;
  pthread_mutex_init(&file->lock, NULL);
  return HIPMM_OK;
}

void content_file_close(struct content_file *file)
{
  if (!file->folder) return;
  const struct hipmm_hip *hip = file->services->hip;
  if (hip->HostFree(file->blocks) && hip->HostFree(file->blocks)) hip->GetLastError();
  if (output_file_is(file->descriptor, &file->identity)) close(file->descriptor);
  pthread_mutex_destroy(&file->lock);
}

void content_file_truncate(struct content_file *file, uint64_t bytes)
{
  if (file->folder && output_file_is(file->descriptor, &file->identity))
    (void)output_file_truncate(file->descriptor, (off_t)bytes);
}

/* ---- Copies ---- */

static int content_file_read_at(int file, char *block, size_t bytes, uint64_t offset)
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

static int content_file_flush(int file)
{
  int failed;
  do failed = fdatasync(file);
  while (failed && errno == EINTR);
  return failed ? errno : 0;
}

static bool content_file_check(struct content_copy *copy, int code)
{
  if (code) atomic_store(&copy->code, code);
  return !code;
}

/* Either way the block is free again at the end. */
static bool content_file_copy_piece(struct stager *stager, uint64_t piece, unsigned thread, hipmm_stream_t stream)
{
  struct content_copy *copy = (struct content_copy *)stager;
  int file = copy->file->descriptor;
  uint64_t at = piece * BLOCK_BYTES, bytes = copy->bytes - at < BLOCK_BYTES ? copy->bytes - at : BLOCK_BYTES;
  char *block = copy->file->blocks + (size_t)thread * BLOCK_BYTES;
  bool is_good = true;
  if (!copy->is_write) is_good = content_file_check(copy, content_file_read_at(file, block, bytes, copy->offset + at));
  if (is_good) {
    is_good = copy->copy_block(copy, block, at, bytes, stream);
    int code = stager->services->hip->StreamSynchronize(stream); /* also for copies before one that failed */
    is_good = stager_check(stager, "hipStreamSynchronize", code, 0) && is_good;
  }
  if (is_good && copy->is_write)
    is_good = content_file_check(copy, output_file_write_at(file, block, bytes, copy->offset + at));
  return is_good;
}

enum hipmm_status content_file_copy(struct content_copy *copy)
{
  struct content_file *file = copy->file;
  copy->stager.services = file->services;
  copy->stager.copy_piece = content_file_copy_piece;
  copy->stager.n_pieces = (copy->bytes + BLOCK_BYTES - 1) / BLOCK_BYTES;
  pthread_mutex_lock(&file->lock);
  bool is_good = content_file_check(copy, output_file_is(file->descriptor, &file->identity) ? 0 : EBADF);
  if (is_good) is_good = stager_run(&copy->stager, BLOCKS);
  if (is_good && copy->is_write) is_good = content_file_check(copy, content_file_flush(file->descriptor));
  pthread_mutex_unlock(&file->lock);
  if (is_good) return HIPMM_OK;
  return copy->code
             ? HIPMM_E_IO
             : file->services->refuse_hip(file->services, copy->stager.call, copy->stager.code, copy->stager.bytes);
}
