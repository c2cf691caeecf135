/* SPDX-License-Identifier: MIT */
/* blocks.h: the two ops that blocks come and go by. What a free does: wait for the work, look at the zones, poison,
 * keep back; or everything stays as it was. */
#ifndef HIPMM_GUARD_BLOCKS_H
#define HIPMM_GUARD_BLOCKS_H

#include "guard.h"

enum hipmm_status blocks_allocate(void *self, size_t bytes, size_t alignment, hipStream_t stream, void **ptr_out);
enum hipmm_status blocks_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipStream_t stream);

#endif
