/* SPDX-License-Identifier: MIT */
/* no_device_wait_reuse.c: a fixed_size that treats all work of the device as completed and does not wait for it. */
#include "../../../plugins/fixed_size/fixed.h"

#define streams_wait_for_device(streams, user) ((void)(user), HIPMM_OK)
#include "../../../plugins/fixed_size/reuse.c"
