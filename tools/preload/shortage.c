/* SPDX-License-Identifier: MIT */
/* shortage.c: see shortage.h. Called by hooks that pass calls on. */
#include "shortage.h"

#include "contexts.h"
#include "devices.h"
#include "failure.h"
#include "init.h"

bool shortage_is_relieved(enum hook hook, int code)
{
  if (code != HIPMM_HIP_ERROR_OUT_OF_MEMORY || !init_was_ready() || init_is_forked()) return false;
  reentry_enter();
  struct context_switch before = contexts_enter(hook_family(hook), 0); /* hipmm waits in primary contexts */
  bool is_trimmed = !hipmm_trim(0);
  contexts_leave(before);
  if (is_trimmed) failure_set(hook_family(hook), 0);
  reentry_leave();
  return is_trimmed;
}
