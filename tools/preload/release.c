/* SPDX-License-Identifier: MIT */
/* release.c: the functions that free, and the reset of a device. A block is freed with the size that it was allocated
 * with. A pointer that is not a block of hipmm's goes to the runtime, unless hipmm itself holds memory of the runtime
 * that begins there: a block freed twice may have begun there too. */
#include "operations.h"

#include "../../core/base/memory_observer.h"
#include "../../core/runtime/hip.h"
#include "blocks.h"
#include "contexts.h"
#include "failure.h"
#include "init.h"
#include "next_symbol.h"
#include "streams.h"

#include <pthread.h>

enum { ERROR_STREAM_CAPTURE_UNSUPPORTED = 900 };

/* ---- Deferred frees ---- */

/* Blocks that the program has freed while a stream was being captured, when the device cannot be waited for. */
static struct key_tree_node *deferred; /* linked through `left` */
static atomic_bool has_deferred;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void release_defer(struct block *block)
{
  pthread_mutex_lock(&lock);
  block->by_address.left = deferred;
  deferred = &block->by_address;
  atomic_store(&has_deferred, true);
  pthread_mutex_unlock(&lock);
}

bool release_has_deferred(void)
{
  return atomic_load_explicit(&has_deferred, memory_order_relaxed);
}

/* The list is taken before the wait: a block that another thread defers later was not waited for. */
int release_synchronize(void)
{
  struct key_tree_node *all = NULL;
  if (release_has_deferred()) {
    pthread_mutex_lock(&lock);
    all = deferred;
    deferred = NULL;
    atomic_store(&has_deferred, false);
    pthread_mutex_unlock(&lock);
  }
  int code = streams_synchronize_devices();
  while (all) {
    struct block *block = (struct block *)all;
    all = all->left;
    if (code) {
      release_defer(block);
      continue;
    }
    blocks_release(block);
    blocks_free(block);
  }
  return code;
}

/* ---- Freeing ---- */

/* A free of what is no block of the program: of memory of the runtime, or a second one. Only a race detector can tell. */
struct release_stray {
  const struct memory_observer *observer; /* NULL: there is nothing to tell */
  void *token;
};

static void release_stray_begin(struct release_stray *stray, enum hook hook, void *ptr, hipmm_stream_t stream)
{
  if (!ptr || init_is_forked() || !init_was_ready() || !(stray->observer = hip_observer())) return;
  const struct memory_event event = {.resource = "",
                                     .device = contexts_current_device(hook_family(hook)),
                                     .ptr = ptr,
                                     .stream = streams_of_caller(hook, stream)};
  if (event.device >= 0) stray->token = stray->observer->freeing(&event);
}

static void release_stray_end(const struct release_stray *stray, int code)
{
  if (stray->token) stray->observer->freed(stray->token, code != 0);
}

/* The block, taken out of the table; or NULL and what to do instead. */
static struct block *release_extract(enum hook hook, void *ptr, unsigned kinds, enum outcome *outcome_out,
                                     int *code_out)
{
  bool other_kind = false;
  struct hipmm_block held;
  *outcome_out = OUTCOME_PASSED;
  if (!ptr || init_is_forked() || !init_was_ready()) return NULL;
  struct block *block = blocks_remove(ptr, kinds, &other_kind);
  if (block) return block;
  if (!other_kind && !devices_have_block(ptr, &held)) return NULL;
  *outcome_out = OUTCOME_FAILED;
  *code_out = other_kind ? failure_refuse(hook, HIPMM_HIP_ERROR_INVALID_VALUE,
                                          "%p is memory of another kind and stays allocated", ptr)
                         : failure_refuse(hook, HIPMM_HIP_ERROR_INVALID_VALUE, "%p was freed before", ptr);
  return NULL;
}

/* On failure the block is live again. */
static int release_to_stack(enum hook hook, struct block *block, hipmm_stream_t stream)
{
  struct hipmm_resource *resource = block->served->resources[block->kind];
  if (!hipmm_deallocate(resource, block_start(block), block_bytes(block), stream)) {
    blocks_free(block);
    return 0;
  }
  blocks_insert(block);
  return failure_of_hipmm(hook, 0);
}

/* Any stream of any device may still use the block, and the call does not say which: all are waited for, and the block
 * is then free for every stream. Nothing can be waited for while a stream is being captured: the block is deferred. */
static int release_after_all_work(enum hook hook, struct block *block)
{
  int code = release_synchronize();
  if (code == ERROR_STREAM_CAPTURE_UNSUPPORTED) {
    hip_table()->GetLastError();
    release_defer(block);
    return 0;
  }
  if (!code) return release_to_stack(hook, block, block->served->idle);
  blocks_insert(block);
  return failure_of_call(hook, code);
}

static int release_unordered(enum hook hook, void *ptr, unsigned kinds)
{
  int code = 0;
  enum outcome outcome = OUTCOME_PASSED;
  struct release_stray stray = {NULL, NULL};
  bool is_outermost = reentry_enter();
  struct block *block = is_outermost ? release_extract(hook, ptr, kinds, &outcome, &code) : NULL;
  if (block) {
    struct context_switch before = contexts_enter(hook_family(hook), block->served->device);
    code = release_after_all_work(hook, block);
    contexts_leave(before);
    outcome = code ? OUTCOME_FAILED : OUTCOME_SERVED;
  }
  if (!block && is_outermost) release_stray_begin(&stray, hook, ptr, NULL);
  if (outcome == OUTCOME_PASSED) code = next_recurses(hook) ? HIPMM_HIP_ERROR_NOT_SUPPORTED : next_pointer(hook, ptr);
  release_stray_end(&stray, code);
  return reentry_finish(hook, outcome, code);
}

int release_device(enum hook hook, void *ptr)
{
  return release_unordered(hook, ptr, 1U << KIND_DEVICE | 1U << KIND_MANAGED);
}

int release_pinned(enum hook hook, void *ptr)
{
  return release_unordered(hook, ptr, 1U << KIND_PINNED);
}

/* A free that a graph makes when it runs cannot be served: the block would be free for other streams at once. */
static int release_on_stream(enum hook hook, struct block *block, hipmm_stream_t stream)
{
  enum family family = hook_family(hook);
  int code = 0;
  bool is_capturing = (uintptr_t)stream > 1 && next_is_capturing(family, stream, &code);
  if (is_capturing || code) {
    const void *ptr = block_start(block);
    blocks_insert(block);
    if (!is_capturing) return code; /* not a stream: the runtime has set its last error */
    return failure_refuse(hook, ERROR_STREAM_CAPTURE_UNSUPPORTED,
                          "%p was not allocated in the capture that is to free it", ptr);
  }
  bool is_elsewhere = family == FAMILY_DRIVER && (uintptr_t)stream > 2 && !contexts_are_primary(stream);
  if (is_elsewhere && (code = hip_table()->StreamSynchronize(stream))) {
    blocks_insert(block);
    return failure_of_call(hook, code);
  }
  if (is_elsewhere || streams_device(family, stream) != block->served->device)
    return release_after_all_work(hook, block);
  return release_to_stack(hook, block, stream);
}

int release_device_on(enum hook hook, void *ptr, hipmm_stream_t stream)
{
  int code = 0;
  enum outcome outcome = OUTCOME_PASSED;
  struct release_stray stray = {NULL, NULL};
  bool is_outermost = reentry_enter();
  struct block *block = is_outermost ? release_extract(hook, ptr, 1U << KIND_DEVICE, &outcome, &code) : NULL;
  if (block) {
    struct context_switch before = contexts_enter(hook_family(hook), block->served->device);
    stream = streams_of_caller(hook, stream);
    bool is_elsewhere = before.is_switched && (uintptr_t)stream <= 2; /* a default stream of another context */
    code = is_elsewhere ? release_after_all_work(hook, block) : release_on_stream(hook, block, stream);
    contexts_leave(before);
    outcome = code ? OUTCOME_FAILED : OUTCOME_SERVED;
  }
  if (!block && is_outermost) release_stray_begin(&stray, hook, ptr, stream);
  if (outcome == OUTCOME_PASSED)
    code = next_recurses(hook) ? HIPMM_HIP_ERROR_NOT_SUPPORTED
                               : ((int (*)(void *, hipmm_stream_t))next_function_of(hook))(ptr, stream);
  release_stray_end(&stray, code);
  return reentry_finish(hook, outcome, code);
}

/* ---- Reset ---- */

static void release_everything(void)
{
  release_synchronize();
  for (struct block *block; (block = blocks_remove_any());) {
    blocks_release(block);
    blocks_free(block);
  }
  share_close_imports(-1);
  devices_close();
  init_close();
}

/* `named`: the device that the driver's function names. The runtime's function resets the current one. */
static int release_reset(enum hook hook, int named)
{
  static atomic_bool is_written;
  bool is_outermost = reentry_enter();
  enum family family = hook_family(hook);
  int code = 0, device = family == FAMILY_DRIVER ? named : contexts_current_device(family);
  int served = is_outermost && init_was_ready() && !init_is_forked() ? devices_count_served() : 0;
  struct context_switch before = {.previous = NULL};
  if (served) before = contexts_enter(family, device);
  if (served == 1 && devices_if_served(device))
    release_everything();
  else if (device >= 0 && served <= 1 && is_outermost && init_was_ready() && !init_is_forked())
    share_close_imports(device);
  if (served > 1) {
    message_write_once(&is_written,
                       "%s: hipmm serves %d devices, so the memory of this one stays until the program ends",
                       hook_name(hook), served);
    code = streams_synchronize_devices();
  }
  contexts_leave(before);
  if (served <= 1) code = family == FAMILY_DRIVER ? next_int(hook, device) : next_void(hook);
  if (is_outermost && !code) access_reset(family, device, served <= 1);
  if (is_outermost && !code && served <= 1) {
    streams_forget(device);
    pools_reset(device);
    share_forget(device);
  }
  return reentry_finish(hook, served ? OUTCOME_SERVED : OUTCOME_PASSED, code);
}

int release_reset_device(enum hook hook)
{
  return release_reset(hook, 0);
}

int release_reset_primary(enum hook hook, int device)
{
  return release_reset(hook, device);
}
