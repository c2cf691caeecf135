/* SPDX-License-Identifier: MIT */
/* shortage.c: see shortage.h. Called by hooks that pass calls on. */
#include "shortage.h"

#include "../../core/runtime/hip.h"
#include "../../core/stack/physical.h"
#include "contexts.h"
#include "failure.h"
#include "init.h"

static uint64_t shortage_held_bytes(void)
{
  uint64_t bytes = 0;
  for (int device = hip_device_count(); device-- > 0;) bytes += physical_held_bytes(device);
  return bytes;
}

/* While a stream is being captured, a part of the idle memory cannot be waited for: the call is repeated with the rest. */
bool shortage_is_relieved(enum hook hook, int code)
{
  if (code != HIPMM_HIP_ERROR_OUT_OF_MEMORY || !init_was_ready() || init_is_forked()) return false;
  reentry_enter();
  struct context_switch before = contexts_enter(hook_family(hook), 0); /* hipmm waits in primary contexts */
  uint64_t held = shortage_held_bytes();
  bool is_trimmed = !hipmm_trim(0) || shortage_held_bytes() < held;
  contexts_leave(before);
  if (is_trimmed) failure_set(hook_family(hook), 0);
  reentry_leave();
  return is_trimmed;
}
