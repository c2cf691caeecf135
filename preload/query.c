/* SPDX-License-Identifier: MIT */
/* query.c: see answers.h. */
#include "query.h"

#include "blocks.h"
#include "failure.h"
#include "init.h"
#include "limits.h"
#include "next_symbol.h"
#include "reentry.h"

/* ---- How much there is ---- */

int answer_memory_info(enum hook hook, size_t *free_bytes, size_t *total_bytes)
{
  enum family family = hook_family(hook);
  bool is_outermost = thread_enter(), is_served = is_outermost && setup_ready(family);
  struct served_device *served = is_served ? devices_get(family, real_current_device(family)) : NULL;
  int code = real_two(hook, free_bytes, total_bytes);
  if (served && !code && free_bytes && total_bytes) limits_apply(served, free_bytes, total_bytes);
  return thread_finish(hook, served ? code ? OUTCOME_FAILED : OUTCOME_SERVED : OUTCOME_PASSED, code);
}

/* ---- Where it is ---- */

static bool find_block(bool is_outermost, const void *ptr, struct block *block_out)
{
  return is_outermost && ptr && setup_was_ready() && !setup_is_forked() && blocks_holding(ptr, block_out);
}

int answer_address_range(enum hook hook, void **base, size_t *bytes, void *ptr)
{
  struct block block;
  bool is_outermost = thread_enter();
  if ((!base && !bytes) || !find_block(is_outermost, ptr, &block))
    return thread_finish(hook, OUTCOME_PASSED, real_three(hook, base, bytes, ptr));
  if (base) *base = block_start(&block);
  if (bytes) *bytes = block_bytes(&block);
  return thread_finish(hook, OUTCOME_SERVED, 0);
}

int answer_size(enum hook hook, void *ptr, size_t *bytes)
{
  struct block block;
  bool is_outermost = thread_enter();
  if (!bytes || !find_block(is_outermost, ptr, &block) || block_start(&block) != ptr)
    return thread_finish(hook, OUTCOME_PASSED, real_two(hook, ptr, bytes));
  *bytes = block_bytes(&block);
  return thread_finish(hook, OUTCOME_SERVED, 0);
}

/* The flags that the program allocated with: the resource has flags of its own. */
int answer_host_flags(enum hook hook, unsigned *flags, void *ptr)
{
  struct block block;
  bool is_outermost = thread_enter();
  if (!flags || !find_block(is_outermost, ptr, &block) || block.kind != KIND_PINNED)
    return thread_finish(hook, OUTCOME_PASSED, real_two(hook, flags, ptr));
  *flags = block.flags;
  return thread_finish(hook, OUTCOME_SERVED, 0);
}

/* ---- Sharing ---- */

/* Whether the block is all of what a source asked the runtime for. */
static bool is_whole(const struct block *block)
{
  struct hipmm_block held;
  return devices_hold(block_start(block), &held) && held.bytes == block_bytes(block);
}

int answer_share(enum hook hook, void *handle, void *ptr)
{
  struct block block;
  bool is_outermost = thread_enter();
  if (!find_block(is_outermost, ptr, &block) || is_whole(&block))
    return thread_finish(hook, OUTCOME_PASSED, real_two(hook, handle, ptr));
  int code = failure_refuse(hook, HIPMM_HIP_ERROR_NOT_SUPPORTED,
                            "%p lies in a larger allocation of %s, all of which the other process would get; give "
                            "memory that is shared to a resource that asks the driver for each block, such as device",
                            ptr, hipmm_resource_name(block.served->kinds[block.kind].resource));
  return thread_finish(hook, OUTCOME_FAILED, code);
}
