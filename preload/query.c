/* SPDX-License-Identifier: MIT */
/* query.c: see answers.h. */
#include "query.h"

#include "blocks.h"
#include "failure.h"
#include "init.h"
#include "limits.h"
#include "next_symbol.h"
#include "reentry.h"

#include <string.h>

enum { ERROR_NOT_FOUND = 500 };

/* ---- How much there is ---- */

int query_memory_info(enum hook hook, size_t *free_bytes, size_t *total_bytes)
{
  enum family family = hook_family(hook);
  bool is_outermost = reentry_enter(), is_served = is_outermost && init_ready(family);
  struct served_device *served = is_served ? devices_get(family, next_current_device(family)) : NULL;
  int code = next_two(hook, free_bytes, total_bytes);
  if (served && !code && free_bytes && total_bytes) limits_apply(served, free_bytes, total_bytes);
  return reentry_finish(hook, served ? code ? OUTCOME_FAILED : OUTCOME_SERVED : OUTCOME_PASSED, code);
}

/* ---- Where it is ---- */

static bool query_find_block(bool is_outermost, const void *ptr, struct block *block_out)
{
  return is_outermost && ptr && init_was_ready() && !init_is_forked() && blocks_holding(ptr, block_out);
}

/* The end of a call that was passed on and returned `code`. The runtime knows memory that the stack holds idle; the
 * program has no block there, and gets the error for an unknown pointer. */
static int query_finish_passed(enum hook hook, bool is_outermost, const void *ptr, int code, int unknown)
{
  bool is_idle = !code && is_outermost && ptr && init_was_ready() && !init_is_forked() && devices_hold_at(ptr);
  return reentry_finish(hook, OUTCOME_PASSED, is_idle ? failure_keep(hook_family(hook), unknown) : code);
}

int query_address_range(enum hook hook, void **base, size_t *bytes, void *ptr)
{
  struct block block;
  bool is_outermost = reentry_enter();
  if ((!base && !bytes) || !query_find_block(is_outermost, ptr, &block))
    return query_finish_passed(hook, is_outermost, ptr, next_three(hook, base, bytes, ptr), ERROR_NOT_FOUND);
  if (base) *base = block_start(&block);
  if (bytes) *bytes = block_bytes(&block);
  return reentry_finish(hook, OUTCOME_SERVED, 0);
}

int query_size(enum hook hook, void *ptr, size_t *bytes)
{
  struct block block;
  bool is_outermost = reentry_enter();
  if (!bytes || !query_find_block(is_outermost, ptr, &block) || block_start(&block) != ptr)
    return query_finish_passed(hook, is_outermost, ptr, next_two(hook, ptr, bytes), HIPMM_HIP_ERROR_INVALID_VALUE);
  *bytes = block_bytes(&block);
  return reentry_finish(hook, OUTCOME_SERVED, 0);
}

/* As hipPointer_attribute numbers them. */
enum { ATTRIBUTE_BUFFER_ID = 7, ATTRIBUTE_RANGE_START = 11, ATTRIBUTE_RANGE_SIZE = 12 };

/* In as many bytes as HIP writes: a size has 32 bits there. False for what holds of the runtime's allocation too. */
static bool query_answer_attribute(const struct block *block, int attribute, void *data)
{
  void *start = block_start(block);
  uint32_t bytes = (uint32_t)block_bytes(block);
  switch (attribute) {
  case ATTRIBUTE_BUFFER_ID: memcpy(data, &block->id, sizeof block->id); return true;
  case ATTRIBUTE_RANGE_START: memcpy(data, &start, sizeof start); return true;
  case ATTRIBUTE_RANGE_SIZE: memcpy(data, &bytes, sizeof bytes); return true;
  default: return false;
  }
}

int query_attribute(enum hook hook, void *data, int attribute, void *ptr)
{
  struct block block;
  bool is_outermost = reentry_enter(), is_ours = data && query_find_block(is_outermost, ptr, &block);
  if (is_ours && query_answer_attribute(&block, attribute, data)) return reentry_finish(hook, OUTCOME_SERVED, 0);
  int code = ((int (*)(void *, int, void *))next_function_of(hook))(data, attribute, ptr);
  if (is_ours) return reentry_finish(hook, OUTCOME_SERVED, code);
  return query_finish_passed(hook, is_outermost, ptr, code, HIPMM_HIP_ERROR_INVALID_VALUE);
}

/* The flags that the program allocated with: the resource has flags of its own. */
int answer_host_flags(enum hook hook, unsigned *flags, void *ptr)
{
  struct block block;
  bool is_outermost = reentry_enter();
  if (!flags || !query_find_block(is_outermost, ptr, &block) || block.kind != KIND_PINNED)
    return reentry_finish(hook, OUTCOME_PASSED, next_two(hook, flags, ptr));
  *flags = block.flags;
  return reentry_finish(hook, OUTCOME_SERVED, 0);
}

/* ---- Sharing ---- */

/* Whether the block is all of what a source asked the runtime for. */
static bool query_is_whole(const struct block *block)
{
  struct hipmm_block held;
  return devices_hold(block_start(block), &held) && held.bytes == block_bytes(block);
}

int query_share(enum hook hook, void *handle, void *ptr)
{
  struct block block;
  bool is_outermost = reentry_enter();
  if (!query_find_block(is_outermost, ptr, &block) || query_is_whole(&block))
    return reentry_finish(hook, OUTCOME_PASSED, next_two(hook, handle, ptr));
  int code = failure_refuse(hook, HIPMM_HIP_ERROR_NOT_SUPPORTED,
                            "%p lies in a larger allocation of %s, all of which the other process would get; give "
                            "memory that is shared to a resource that asks the driver for each block, such as device",
                            ptr, hipmm_resource_name(block.served->kinds[block.kind].resource));
  return reentry_finish(hook, OUTCOME_FAILED, code);
}
