/* SPDX-License-Identifier: MIT */
/* release.c: the functions that free. A block is freed with the size that it was allocated with. What is not ours goes
 * to the real function, except what hipmm itself holds of the runtime: a block freed twice may lie there. */
#include "operations.h"

#include "../core/runtime/hip.h"
#include "blocks.h"
#include "deferred_free.h"
#include "failure.h"
#include "init.h"
#include "next_symbol.h"
#include "reentry.h"
#include "streams.h"

#include <stdlib.h>

enum { ERROR_STREAM_CAPTURE_UNSUPPORTED = 900 };

/* Ours, or else what to do instead. */
static struct block *release_take(enum hook hook, void *ptr, unsigned kinds, enum outcome *outcome_out, int *code_out)
{
  bool other_kind = false;
  struct hipmm_block held;
  *outcome_out = OUTCOME_PASSED;
  if (!ptr || init_is_forked() || !init_was_ready()) return NULL;
  struct block *block = blocks_take(ptr, kinds, &other_kind);
  if (block) return block;
  if (!other_kind && !devices_hold(ptr, &held)) return NULL;
  *outcome_out = OUTCOME_FAILED;
  *code_out = other_kind ? failure_refuse(hook, HIPMM_HIP_ERROR_INVALID_VALUE,
                                          "%p is memory of another kind and stays allocated", ptr)
                         : failure_refuse(hook, HIPMM_HIP_ERROR_INVALID_VALUE, "%p was freed before", ptr);
  return NULL;
}

/* On failure the block is as it was. */
static int release_give_back(enum hook hook, struct block *block, hipStream_t stream)
{
  struct hipmm_resource *resource = block->served->kinds[block->kind].resource;
  if (!hipmm_deallocate(resource, block_start(block), block_bytes(block), stream)) {
    blocks_free(block);
    return 0;
  }
  blocks_put(block);
  return failure_of_hipmm(hook, 0);
}

/* Any stream of any device may still use the block, and nobody has said which: all are waited for, and what is free
 * then is free for every stream. While a stream is being captured nothing can be waited for; then the block stays with
 * us until that is over. */
static int release_give_back_after_all(enum hook hook, struct block *block)
{
  int code = deferred_free_synchronize();
  if (code == ERROR_STREAM_CAPTURE_UNSUPPORTED) {
    hip_table()->GetLastError();
    deferred_free_put(block);
    return 0;
  }
  if (!code) return release_give_back(hook, block, block->served->idle);
  blocks_put(block);
  return failure_of_call(hook, code);
}

static int release_free_after_all(enum hook hook, void *ptr, unsigned kinds)
{
  int code = 0;
  enum outcome outcome = OUTCOME_PASSED;
  bool is_outermost = reentry_enter();
  struct block *block = is_outermost ? release_take(hook, ptr, kinds, &outcome, &code) : NULL;
  if (block) {
    code = release_give_back_after_all(hook, block);
    outcome = code ? OUTCOME_FAILED : OUTCOME_SERVED;
  }
  if (outcome == OUTCOME_PASSED)
    code = request_runs_away(hook) ? HIPMM_HIP_ERROR_NOT_SUPPORTED : next_pointer(hook, ptr);
  return reentry_finish(hook, outcome, code);
}

int request_free_device(enum hook hook, void *ptr)
{
  return release_free_after_all(hook, ptr, 1U << KIND_DEVICE | 1U << KIND_MANAGED);
}

int request_free_pinned(enum hook hook, void *ptr)
{
  return release_free_after_all(hook, ptr, 1U << KIND_PINNED);
}

/* What a graph frees when it runs would be free for others at once. */
static int release_give_back_on(enum hook hook, struct block *block, hipStream_t stream)
{
  enum family family = hook_family(hook);
  int code = 0;
  bool is_capturing = (uintptr_t)stream > 1 && next_is_capturing(family, stream, &code);
  if (is_capturing || code) {
    const void *ptr = block_start(block);
    blocks_put(block);
    if (!is_capturing) return code; /* no stream: the runtime has noted its error itself */
    return failure_refuse(hook, ERROR_STREAM_CAPTURE_UNSUPPORTED,
                          "%p was not allocated in the capture that is to free it", ptr);
  }
  if (streams_device(family, stream) != block->served->device) return release_give_back_after_all(hook, block);
  return release_give_back(hook, block, stream);
}

int request_free_device_on(enum hook hook, void *ptr, hipStream_t stream)
{
  int code = 0;
  enum outcome outcome = OUTCOME_PASSED;
  bool is_outermost = reentry_enter();
  struct block *block = is_outermost ? release_take(hook, ptr, 1U << KIND_DEVICE, &outcome, &code) : NULL;
  if (block) {
    code = release_give_back_on(hook, block, streams_meant(hook, stream));
    outcome = code ? OUTCOME_FAILED : OUTCOME_SERVED;
  }
  if (outcome == OUTCOME_PASSED)
    code = request_runs_away(hook) ? HIPMM_HIP_ERROR_NOT_SUPPORTED : next_pointer_stream(hook, ptr, stream);
  return reentry_finish(hook, outcome, code);
}
