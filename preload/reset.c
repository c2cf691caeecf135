/* SPDX-License-Identifier: MIT */
/* reset.c: see reset.h. */
#include "reset.h"

#include "blocks.h"
#include "deferred_free.h"
#include "init.h"
#include "message.h"
#include "next_symbol.h"
#include "peers.h"
#include "pools.h"
#include "reentry.h"

#include <stdlib.h>

static void reset_give_everything_back(void)
{
  deferred_free_synchronize();
  for (struct block *block; (block = blocks_take_any());) {
    blocks_give_back(block);
    blocks_free(block);
  }
  devices_close();
  init_close();
}

int reset_device(enum hook hook)
{
  static atomic_bool said;
  bool is_outermost = reentry_enter();
  int served = is_outermost && init_was_ready() && !init_is_forked() ? devices_count_served() : 0;
  int device = next_current_device(hook_family(hook));
  bool is_alone = served == 1 && devices_if_served(device);
  if (is_alone) reset_give_everything_back();
  if (served > 1)
    message_write_once(&said, "%s: hipmm serves %d devices, so the memory of this one stays until the program ends",
                       hook_name(hook), served);
  int code = served > 1 ? devices_synchronize() : next_nothing(hook);
  if (is_outermost && !code) peers_reset(hook_family(hook), device, served <= 1);
  if (is_outermost && !code && served <= 1) pools_reset(device);
  return reentry_finish(hook, served ? OUTCOME_SERVED : OUTCOME_PASSED, code);
}
