/* SPDX-License-Identifier: MIT */
/* reuse.h: which free block a stream gets that has none of its own at hand, and what has to be waited for. The fixed's
 * lock is held in all of it; lists of other streams go on meanwhile under their own. */
#ifndef HIPMM_FIXED_REUSE_H
#define HIPMM_FIXED_REUSE_H

#include "lists.h"

/* Blocks that no work uses any more. */
struct fixed_chain *reuse_clean(const struct fixed *fixed);
void reuse_add_clean(struct fixed *fixed, struct fixed_chain chain);

/* All work up to now has passed: the blocks that were free are clean. `user` as in streams_any_captured(). */
enum hipmm_status reuse_synchronize_device(struct fixed *fixed, uint32_t user);

/* The id of a stream that is used now. */
enum hipmm_status reuse_enter_stream(struct fixed *fixed, hipStream_t handle, uint32_t *id_out);

/* A block that work on the stream may use. It is in no list, and not yet live. */
enum hipmm_status reuse_take(struct fixed *fixed, uint32_t stream, uint32_t *number_out);

/* The stream, which is still valid, is about to be destroyed: waits for it. Its blocks are clean then. If HIP cannot
 * wait, they stay with the lost stream until the device was waited for. */
void reuse_end_stream(struct fixed *fixed, uint32_t stream, hipStream_t handle);

#endif
