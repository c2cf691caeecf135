/* SPDX-License-Identifier: MIT */
/* early_reuse.c: a fixed_size that treats work of a stream as completed as soon as it queries it. */
#include "../../../plugins/fixed_size/fixed.h"

#define stream_poll(streams, id) stream_complete(streams, id)
#include "../../../plugins/fixed_size/reuse.c"
