/* SPDX-License-Identifier: MIT */
/* no_wait_reuse.c: a fixed_size that gives out blocks of other streams and waits for no event. */
#include "../../../plugins/fixed_size/fixed.h"

#define stream_wait(streams, waiter, id, epoch) ((void)(epoch), true)
#include "../../../plugins/fixed_size/reuse.c"
