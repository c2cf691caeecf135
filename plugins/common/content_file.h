/* SPDX-License-Identifier: MIT */
/* content_file.h: a file without a name, for content of device memory. Used by `spilling`, and by a pool that is suspended. */
#ifndef HIPMM_PLUGINS_COMMON_CONTENT_FILE_H
#define HIPMM_PLUGINS_COMMON_CONTENT_FILE_H

#include "../../core/base/output_file.h"
#include "stager.h"

#include <pthread.h>

/* The user clears it before it is opened. */
struct content_file {
  const struct hipmm_services *services;
  const char *folder; /* NULL: there is no file */
  int descriptor;
  struct output_file_identity identity;

  pthread_mutex_t lock; /* of the blocks, for one copy */
  char *blocks;         /* pinned */
};

/* A copy between [offset, offset + bytes) of the file and device memory. The user sets the fields up to copy_block, and clears the
 * others. */
struct content_copy {
  struct stager stager; /* first; content_file_copy() sets its fields */
  struct content_file *file;
  uint64_t offset, bytes;
  bool is_write; /* to the file */

  /* Gives the stream the copies between `block` and what the device has of the content at [at, at + bytes). False: stager_check()
   * knows of a failure. */
  bool (*copy_block)(struct content_copy *copy, char *block, uint64_t at, uint64_t bytes, hipmm_stream_t stream);

  atomic_int code; /* an errno of the file; 0: it did not fail */
};

/* Makes a file in the folder that the resource's option "folder" names. A failure has been reported, and nothing is open. */
enum hipmm_status content_file_open(struct content_file *file, const struct hipmm_services *services,
                                    const char *folder);

/* Also of one that was not opened. */
void content_file_close(struct content_file *file);

/* Gives what is behind `bytes` back to the disk. If that fails, it is only kept for longer. */
void content_file_truncate(struct content_file *file, uint64_t bytes);

/* Waits until the copy is done; what is written is on the disk then. HIPMM_E_IO is not reported, but copy->code; other failures
 * are. Thread-safe. */
enum hipmm_status content_file_copy(struct content_copy *copy);

#endif
