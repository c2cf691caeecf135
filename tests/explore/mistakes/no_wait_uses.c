/* SPDX-License-Identifier: MIT */
/* no_wait_uses.c: a monotonic that starts over without waiting for the streams that used its memory. */
#include "../../../plugins/monotonic/monotonic.h"

#define stream_wait(streams, waiter, id, epoch) ((void)(epoch), true)
#include "../../../plugins/monotonic/uses.c"
