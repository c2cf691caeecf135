/* SPDX-License-Identifier: MIT */
/* hipmm/spill.h: movable buffers. A program may have more of them than the device has memory: while a movable buffer is not
 * pinned, hipmm may move its content to pinned host memory, or to a file.
 *
 * A resource of the type `spilling` (`hipmm describe spilling`) owns the buffers, and knows where content may go. It moves the
 * buffers that were unpinned longest ago, or those that the program's function ranks first (HIPMM_EVENT_RANK), if a pin or another
 * allocation of the device finds no memory, and in hipmm_resource_trim().
 *
 * The conventions of hipmm.h hold. All functions are thread-safe. */
#ifndef HIPMM_SPILL_H
#define HIPMM_SPILL_H

#include <hipmm/hipmm.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default) /* the library itself is compiled with hidden symbols */
#endif

/* A movable buffer. It refers to its resource, which lives as long. */
struct hipmm_movable;

/* Creates a movable buffer of the nearest `spilling` resource, from `resource` down; NULL: the device's current resource. It gets
 * memory when it is pinned for the first time, and its content is undefined then. The caller owns it. HIPMM_E_ARGUMENT: neither
 * the resource nor one below it is `spilling`. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_movable_create(struct hipmm_resource *resource, size_t bytes,
                                                        struct hipmm_movable **movable_out);

/* Frees the buffer, wherever its content is. Work that it was unpinned for still sees its memory. Waits for another thread that
 * moves the buffer, and where the memory's source waits at a free (`device` or `pinned` without a pool). NULL is ignored.
 * HIPMM_E_STATE: it is pinned, and nothing has changed. */
enum hipmm_status hipmm_movable_destroy(struct hipmm_movable *movable);

/* Brings the buffer into device memory, and keeps it there until as many calls of hipmm_movable_unpin(). `ptr_out` gets its
 * address, which may differ from that of an earlier pin; NULL for 0 bytes. Work on `stream` after the call sees all that was
 * written on other streams before they were passed to hipmm_movable_unpin(). The call waits for the copy of what is in a file,
 * for another thread that moves the buffer, and for copies of other buffers that make room; and for `stream`, if the buffer is in
 * pinned memory whose source waits at a free (`pinned` without a pool).
 *
 * After a failure the buffer is where it was, with its content, and has no new pin. HIPMM_E_OUT_OF_MEMORY, HIPMM_E_LIMIT: no
 * memory, and no unpinned buffer could be moved out of the way. HIPMM_E_IO: the file could not be read. HIPMM_E_STATE: `stream` is
 * captured, and the buffer has no pin: pin it before the capture, and unpin it after the graph's last launch. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_movable_pin(struct hipmm_movable *movable, hipmm_stream_t stream,
                                                     void **ptr_out);

/* Takes one pin back. `stream` has been given all work that uses the buffer for this pin; the buffer is not moved before that work
 * is over. Does not wait. HIPMM_E_STATE: it is not pinned, or `stream` is captured. After a failure it stays pinned. */
enum hipmm_status hipmm_movable_unpin(struct hipmm_movable *movable, hipmm_stream_t stream);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
