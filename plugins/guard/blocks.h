/* SPDX-License-Identifier: MIT */
/* blocks.h: allocating and freeing. A free waits for the work on the block, checks the zones, fills the block with the
 * poison pattern and puts it into the quarantine. A block that the quarantine has no place for goes to the upstream as it
 * is. If a free fails, the block stays allocated as it was. */
#ifndef HIPMM_PLUGINS_GUARD_BLOCKS_H
#define HIPMM_PLUGINS_GUARD_BLOCKS_H

#include "guard.h"

enum hipmm_status blocks_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out);
enum hipmm_status blocks_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream);

#endif
