/* SPDX-License-Identifier: MIT */
/* worker.h: a run of the model, which all its threads share, and one of these threads. */
#ifndef HIPMM_TOOLS_COMMAND_PLUGIN_WORKER_H
#define HIPMM_TOOLS_COMMAND_PLUGIN_WORKER_H

#include "../../../core/runtime/hip.h"
#include "model.h"
#include "ranges.h"

enum { WORKER_BLOCKS = 200, WORKER_CHECKS = 24 };

/* A block that the thread has allocated. Its last use is on `stream`. */
struct held_block {
  char *ptr;
  size_t bytes, alignment;
  int stream, pattern;
};

/* What a stream has read of a block before it was freed; compared once the stream has executed the copy. */
struct block_check {
  char *copy;
  size_t bytes;
  int pattern;
};

struct run {
  const struct model *model;
  struct hipmm_resource *resource;
  const struct hipmm_hip *hip;
  struct ranges ranges;
  pthread_rwlock_t streams_lock; /* written while a stream is made anew */
  hipmm_stream_t streams[MODEL_MOST_STREAMS];
  pthread_mutex_t result_lock;
  struct model_result result;
};

struct worker {
  struct run *run;
  uint64_t random;
  struct held_block blocks[WORKER_BLOCKS];
  size_t n_blocks;
  struct block_check checks[MODEL_MOST_STREAMS][WORKER_CHECKS]; /* by stream */
  size_t n_checks[MODEL_MOST_STREAMS];
  char *copies[MODEL_MOST_STREAMS]; /* where checks are copied to: pinned, or copying would wait for the stream */
  size_t copied_bytes[MODEL_MOST_STREAMS];
  unsigned long long allocations, refusals;
  int pattern;
};

/* Records a failure of the run; the first one counts. The checks record one unless the call came out right. */
void worker_fail_run(struct run *run, enum model_fault fault, const char *format, ...) HIPMM_PRINTF(3, 4);
bool worker_has_failed(struct run *run);
void worker_check_hip(struct run *run, const char *call, int code);
void worker_check_status(struct run *run, const char *call, enum hipmm_status status, enum hipmm_status wanted);

/* Whether the stream is one of those that are always there. */
bool worker_is_default_stream(const struct run *run, int stream);

/* The function of the thread; `closure` is its struct worker. Frees all that it allocates. */
void *worker_run(void *closure);

#endif
