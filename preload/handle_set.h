/* SPDX-License-Identifier: MIT */
/* handle_set.h: sets of handles that the program got from its runtime (streams, pools of the driver), each with the device
 * that it is of. */
#ifndef HIPMM_PRELOAD_HANDLE_SET_H
#define HIPMM_PRELOAD_HANDLE_SET_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct handle {
  void *handle;
  int device;
  struct pool_account *account; /* of a pool whose memory may come from elsewhere; NULL for others */
};

struct handle_set {
  pthread_mutex_t lock;
  struct handle *items;
  size_t count, capacity;
};

#define HANDLES_EMPTY                 \
  {                                   \
    .lock = PTHREAD_MUTEX_INITIALIZER \
  }

/* Notes the handle, in the place of one with the same value. Without memory for it, it stays unknown. */
void handle_set_add(struct handle_set *handles, struct handle handle);
bool handle_set_find(struct handle_set *handles, const void *handle, struct handle *found_out);
bool handle_set_remove(struct handle_set *handles, const void *handle, struct handle *found_out);

/* Whether `is` holds for a handle of the device; it is not asked for those after the first. */
bool handle_set_any(struct handle_set *handles, int device, bool (*is)(const struct handle *handle));

#endif
