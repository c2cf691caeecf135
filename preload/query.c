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

int query_address_range(enum hook hook, void **base, size_t *bytes, void *ptr)
{
  struct block block;
  bool is_outermost = reentry_enter();
  if ((!base && !bytes) || !query_find_block(is_outermost, ptr, &block))
    return reentry_finish(hook, OUTCOME_PASSED, next_three(hook, base, bytes, ptr));
  if (base) *base = block_start(&block);
  if (bytes) *bytes = block_bytes(&block);
  return reentry_finish(hook, OUTCOME_SERVED, 0);
}

int query_size(enum hook hook, void *ptr, size_t *bytes)
{
  struct block block;
  bool is_outermost = reentry_enter();
  if (!bytes || !query_find_block(is_outermost, ptr, &block) || block_start(&block) != ptr)
    return reentry_finish(hook, OUTCOME_PASSED, next_two(hook, ptr, bytes));
  *bytes = block_bytes(&block);
  return reentry_finish(hook, OUTCOME_SERVED, 0);
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
