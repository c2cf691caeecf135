/* SPDX-License-Identifier: MIT */
/* file.c: see spilling.h. The space in the file, and copies between the file and the other tiers. */
#include "../common/sizes.h"
#include "spilling.h"

enum { PAGE_BYTES = 4096 };

/* ---- Room ---- */

static uint64_t spill_file_end(const struct movable *movable)
{
  return movable ? sizes_round_up(movable->offset + movable->bytes, PAGE_BYTES) : 0;
}

/* The buffer in front of the first gap that is large enough; NULL: none is. */
static struct movable *spill_file_find_gap(const struct spill_file *file, uint64_t bytes)
{
  struct movable *before = NULL, *next = file->extents.first;
  while (next && next->offset - spill_file_end(before) < bytes) {
    before = next;
    next = next->next;
  }
  return before;
}

bool spill_file_has_room(const struct spill_file *file, uint64_t bytes, uint64_t limit_bytes)
{
  if (!file->file.folder || bytes > limit_bytes) return false;
  return spill_file_end(spill_file_find_gap(file, bytes)) <= limit_bytes - bytes;
}

void spill_file_take_room(struct spill_file *file, struct movable *movable)
{
  struct movable *before = spill_file_find_gap(file, movable->bytes);
  movable->offset = spill_file_end(before);
  movable_list_insert(&file->extents, before, movable);
}

/* The end of the file goes back to the disk. */
void spill_file_leave(struct spill_file *file, struct movable *movable)
{
  bool is_last = file->extents.last == movable;
  movable_list_remove(&file->extents, movable);
  if (is_last) content_file_truncate(&file->file, spill_file_end(file->extents.last));
}

/* ---- Copies ---- */

struct spill_copy {
  struct content_copy copy; /* first */
  char *memory;
};

static bool spill_file_copy_block(struct content_copy *copy, char *block, uint64_t at, uint64_t bytes,
                                  hipmm_stream_t stream)
{
  char *memory = ((struct spill_copy *)copy)->memory + at;
  int code = copy->file->services->hip->MemcpyAsync(copy->is_write ? block : memory, copy->is_write ? memory : block,
                                                    bytes, HIPMM_HIP_MEMCPY_DEFAULT, stream);
  return stager_check(&copy->stager, "hipMemcpyAsync", code, bytes);
}

/* HIPMM_E_IO, which is not reported: code_out gets the file's errno, else 0. Copies of other buffers do not wait for the work of
 * this one. */
static enum hipmm_status spill_file_copy(struct spilling *spilling, const struct movable *movable, void *memory,
                                         bool is_write, int *code_out)
{
  struct spill_copy copy = {.copy = {.file = &spilling->file.file,
                                     .offset = movable->offset,
                                     .bytes = movable->bytes,
                                     .is_write = is_write,
                                     .copy_block = spill_file_copy_block},
                            .memory = memory};
  int code = spilling->services->hip->EventSynchronize(movable->last_use);
  *code_out = 0;
  if (code) return spilling->services->refuse_hip(spilling->services, "hipEventSynchronize", code, 0);
  enum hipmm_status status = content_file_copy(&copy.copy);
  *code_out = copy.copy.code;
  return status;
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
                            "cannot move %llu bytes into a file in \"%.500s\": %s; they stay where they are",
                            (unsigned long long)movable->bytes, file->file.folder, output_file_reason(code));
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
                        (unsigned long long)movable->bytes, spilling->file.file.folder, output_file_reason(code));
}
