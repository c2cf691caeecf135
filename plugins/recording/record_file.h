/* SPDX-License-Identifier: MIT */
/* record_file.h: the file of a record. Each thread writes into a block that maps the file: what is written there survives
 * the end of the process, however it ends. A full block is copied to the end of the file, which is cheaper than to map
 * another. Where only the last blocks are kept, the file is in memory: a full block is copied to the place of the oldest, and
 * record_file_save() writes what there is into the file of the name. Thread-safe after record_file_open(). */
#ifndef HIPMM_PLUGINS_RECORDING_RECORD_FILE_H
#define HIPMM_PLUGINS_RECORDING_RECORD_FILE_H

#include "../../core/base/record_format.h"
#include "../common/log_file.h"

#include <pthread.h>
#include <stdatomic.h>

struct record_file {
  const struct hipmm_services *services;
  bool uses_counter;
  uint64_t kept_blocks; /* full blocks that are kept, in memory; 0: all, in the file. Set before record_file_open() */
  uint64_t rotate_bytes, stack_sample;
  int64_t rotated_files;
  /* Called with the lock when events that were recorded will not be in the file with later ones: after a rotation, each time that
   * half of the kept blocks were written, and when the file can grow again. Set before record_file_open(). */
  void (*part_begins)(struct record_file *file);
  pthread_mutex_t lock; /* all below */
  struct log_file file;
  struct record_head *head;       /* mapped */
  uint64_t bytes;                 /* of this file */
  uint64_t copied_bytes;          /* of them: full blocks */
  uint64_t sequence;              /* of the last block that was begun */
  uint32_t generation;            /* counts the files from 1 */
  bool is_full;                   /* the last attempt to grow failed */
  atomic_int_fast64_t held_bytes; /* by the sources of the device, set without the lock */
  struct record_file *next;       /* of all that are open; under their own lock */
  char name[OUTPUT_FILE_NAME_BYTES];
};

/* Begins the file `spec->name`. HIPMM_E_STATE, not reported, with a clash: another record is written there. Other
 * failures are reported. */
enum hipmm_status record_file_open(struct record_file *file, const struct hipmm_services *services,
                                   const struct log_file_spec *spec, enum log_file_clash *clash_out);
void record_file_close(struct record_file *file);

/* A new block, mapped and begun for events of `thread`, and the generation of its file. NULL if the file cannot grow: an
 * error line of the log says so once. */
struct record_block *record_file_map_block(struct record_file *file, uint32_t thread, uint64_t lost_events,
                                           uint32_t *generation_out);

/* Copies a block to the end of the file, which may be a later file than the block's. False if the file cannot grow. */
bool record_file_copy_block(struct record_file *file, const struct record_block *block);

/* Begins the block anew, if it is in the present file. False: it is in a file that was rotated away. */
bool record_file_reuse_block(struct record_file *file, struct record_block *block, uint32_t thread,
                             uint64_t lost_events, uint32_t generation);

/* Unmaps the block. With `is_copied`, no reader finds it in the file. */
void record_block_release(struct record_block *block, bool is_copied);

/* Waits until the disk has all that was recorded. Otherwise the system writes when it likes, and only a crash of the
 * system loses events. An errno; 0: done. */
int record_file_flush(struct record_file *file);

/* Writes a record of what is kept. Threads go on recording. An errno; 0: done. */
int record_file_save(struct record_file *file);

#endif
