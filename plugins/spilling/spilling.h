/* SPDX-License-Identifier: MIT */
/* spilling.h: movable buffers (hipmm/spill.h), and the tiers where their content may be: memory of the upstream, pinned host memory
 * of another resource, and a file without a name.
 *
 *   spilling.c    options, values, the ops of the resource
 *   movables.c    pins; which buffers are moved, and when
 *   tiers.c       a buffer's way from one tier to another
 *   file.c        the file: its space, and copies between it and the other tiers
 *
 * A buffer is in one tier. While a thread moves it (is_moving), other threads wait and the lock is free, so that copies hold up
 * nobody else. The source keeps the content until the copy is complete: a failure changes nothing. */
#ifndef HIPMM_PLUGINS_SPILLING_SPILLING_H
#define HIPMM_PLUGINS_SPILLING_SPILLING_H

#include "../common/content_file.h"

enum tier { TIER_NONE, TIER_DEVICE, TIER_PINNED, TIER_FILE, TIERS };

/* In the memory that the core has for it. */
struct movable {
  const void *handle;              /* the program's, which the core sets */
  struct movable *previous, *next; /* in spilling.idle, or in file.extents */
  void *memory;                    /* of the tiers TIER_DEVICE and TIER_PINNED */
  uint64_t bytes, offset;          /* offset: in the file */
  uint64_t idle_since_ns;          /* when it was unpinned */
  hipmm_hip_event_t last_use;      /* after all work that it was unpinned for */
  int64_t rank;                    /* what the policy said last; 0 without one */
  uint32_t pins;
  uint8_t tier; /* enum tier */
  bool was_used, is_moving;
};

_Static_assert(sizeof(struct movable) <= HIPMM_MOVABLE_BYTES, "the core has no more memory for a movable buffer");

struct movable_list {
  struct movable *first, *last;
};

/* `after` NULL: at the front. */
static inline void movable_list_insert(struct movable_list *list, struct movable *after, struct movable *movable)
{
  movable->previous = after;
  movable->next = after ? after->next : list->first;
  *(movable->next ? &movable->next->previous : &list->last) = movable;
  *(after ? &after->next : &list->first) = movable;
}

static inline void movable_list_remove(struct movable_list *list, struct movable *movable)
{
  *(movable->next ? &movable->next->previous : &list->last) = movable->previous;
  *(movable->previous ? &movable->previous->next : &list->first) = movable->next;
}

struct spill_file {
  struct content_file file;
  struct movable_list extents; /* by offset; under the lock of struct spilling */
  int warned;                  /* the errno of the last warning; 0: none since a success; under the same lock */
};

struct spilling_options {
  struct hipmm_resource *pinned;
  uint64_t pinned_limit;
  const char *folder;
  uint64_t file_limit;
  uint64_t high_water;
  const struct hipmm_hooks *policy; /* NULL: none */
};

struct spilling {
  const struct hipmm_services *services;
  const struct spilling_options *options;
  struct hipmm_resource *upstream;
  hipmm_stream_t stream; /* of copies to pinned memory */
  hipmm_stream_t frees;  /* of buffers that are destroyed, whose work may not be over */

  pthread_mutex_t lock;            /* of all below; around HIP calls that do not wait, and the policy */
  pthread_cond_t changed;          /* a buffer is not moved any more, or can be */
  struct movable_list idle[TIERS]; /* TIER_DEVICE, TIER_PINNED: what is not pinned; unpinned longest ago first */
  uint64_t bytes[TIERS];           /* a buffer that goes from pinned memory to the file counts in both */
  uint64_t live_bytes;
  unsigned n_moving_out;
  uint64_t chances; /* for the thread: buffers that became idle, and room that was given back */
  uint64_t spills, demotions, restores, spilled_bytes, restored_bytes;

  struct spill_file file;

  pthread_t thread; /* spills ahead of need */
  bool has_thread, is_ending;
};

/* ---- movables.c ---- */

extern const struct hipmm_moving movables_functions;

/* Allocates from the upstream. If it has no memory, moves buffers out of the way. */
enum hipmm_status movables_obtain(struct spilling *spilling, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                  void **ptr_out);

/* Moves idle buffers out of the device until so many bytes are free, on `stream`; and returns how many are. The first is the one
 * that the policy wants, or else the coldest. */
uint64_t movables_spill(struct spilling *spilling, uint64_t bytes, hipmm_stream_t stream);

/* Starts the thread, which ends with is_ending. */
bool movables_start_thread(struct spilling *spilling);

/* ---- tiers.c; the device is current ---- */

/* Whether pinned memory is large enough for so many bytes, if others leave it. */
bool tiers_may_be_pinned(const struct spilling *spilling, uint64_t bytes);

/* The tier, of those that are not `is_closed`, that has room for the buffer: TIER_NONE if none has. With the lock. */
enum tier tiers_find_room(const struct spilling *spilling, const struct movable *movable, const bool *is_closed);

/* Takes room that was found. The buffer is in no list. With the lock. */
void tiers_take_room(struct spilling *spilling, struct movable *movable, enum tier tier);

/* Gives room back. With the lock. */
void tiers_leave(struct spilling *spilling, struct movable *movable, enum tier tier);

/* Copies a buffer out of its tier, the device or pinned memory, into its room, and frees its memory there; on `stream` if it is of
 * the device. False: it is still there. Without the lock. */
bool tiers_copy_out(struct spilling *spilling, struct movable *movable, enum tier to, hipmm_stream_t stream);

/* Copies a buffer's content into device memory, so that work on `stream` sees it, and frees what it had in its tier, but for the
 * room. After a failure it still has it. Without the lock. */
enum hipmm_status tiers_copy_in(struct spilling *spilling, struct movable *movable, void *memory,
                                hipmm_stream_t stream);

/* Frees memory that no buffer has. */
void tiers_drop(const struct spilling *spilling, struct hipmm_resource *resource, void *ptr, size_t bytes,
                hipmm_stream_t stream);

/* Frees a buffer's memory. Without the lock. */
enum hipmm_status tiers_free(struct spilling *spilling, const struct movable *movable);

/* ---- file.c ---- */

/* Whether there is room below `limit_bytes`; takes it. With the lock. */
bool spill_file_has_room(const struct spill_file *file, uint64_t bytes, uint64_t limit_bytes);
void spill_file_take_room(struct spill_file *file, struct movable *movable);
void spill_file_leave(struct spill_file *file, struct movable *movable);

/* Copies between the buffer's part of the file and its memory, after the buffer's last use. Waits until it is done, and the
 * content is on the disk. Without the lock. */
enum hipmm_status spill_file_write(struct spilling *spilling, const struct movable *movable);
enum hipmm_status spill_file_read(struct spilling *spilling, const struct movable *movable, void *memory);

#endif
