/* SPDX-License-Identifier: MIT */
/* stale_reuse.c: a fixed_size with an old mistake: it takes a new stream for a destroyed one with the same handle. */
#include "../../../plugins/fixed_size/fixed.h"

#define stream_has_stable_handle(streams, id) ((void)(streams), (void)(id), true)
#include "../../../plugins/fixed_size/reuse.c"
