/* SPDX-License-Identifier: MIT */
/* handle_set.h: sets of handles that the program got from its runtime (streams, pools of the driver), each with its
 * device. Thread-safe. */
#ifndef HIPMM_PRELOAD_HANDLE_SET_H
#define HIPMM_PRELOAD_HANDLE_SET_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct handle {
  void *handle;
  int device;
  struct pool_account *account; /* of a pool that hipmm may serve; NULL for others */
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

/* Adds the handle, or replaces the one with the same value. It stays unknown if there is no host memory for it. */
void handle_set_add(struct handle_set *handles, struct handle handle);
bool handle_set_find(struct handle_set *handles, const void *handle, struct handle *found_out);
bool handle_set_remove(struct handle_set *handles, const void *handle, struct handle *found_out);

/* Whether `is` returns true for a handle of the device. Stops at the first. `is` must not use the set. */
bool handle_set_any(struct handle_set *handles, int device, bool (*is)(const struct handle *handle));

#endif
