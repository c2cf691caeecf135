/* SPDX-License-Identifier: MIT */
/* devices.h: the devices whose memory hipmm serves to the program, and what serves each kind of it. */
#ifndef HIPMM_PRELOAD_DEVICES_H
#define HIPMM_PRELOAD_DEVICES_H

#include "../core/stack/stack.h"
#include "hooks.h"

#include <stdatomic.h>

/* What the program asked for. Device memory comes from the device's resource in the graph; managed and pinned memory
 * from the resource that the graph calls so. */
enum kind { KIND_DEVICE, KIND_MANAGED, KIND_PINNED, KIND_COUNT };

/* What the program has of one kind of memory, and an estimate of what the driver alone would have taken for it. */
struct usage {
  atomic_int_fast64_t count, bytes, peak_bytes;
  atomic_int_fast64_t small_bytes, large_bytes, driver_peak_bytes;
};

/* Raises a peak to `now`. */
static inline void usage_raise(atomic_int_fast64_t *peak, int64_t now)
{
  int_fast64_t before = atomic_load_explicit(peak, memory_order_relaxed);
  while (now > before &&
         !atomic_compare_exchange_weak_explicit(peak, &before, now, memory_order_relaxed, memory_order_relaxed))
    continue;
}

struct served {
  struct hipmm_resource *resource; /* NULL: not served */
  struct stack *stack;             /* that it belongs to; ours to release if not the device's own */
};

enum { DEVICES_MOST = 64 };

struct served_device {
  int device;
  hipStream_t idle; /* one that no work is ever given to: what is allocated for it and waited for is ready everywhere */
  struct served kinds[KIND_COUNT];
  struct usage usage[KIND_COUNT];
};

const char *kind_name(enum kind kind);

/* The device, made ready if it was not used before; NULL if its stack cannot be built, which is said once. */
struct served_device *devices_get(enum family family, int device);

/* The device if it is served already. */
struct served_device *devices_if_served(int device);

/* How many are served now. */
int devices_count_served(void);

/* Waits until memory allocated for the idle stream is ready. A HIP error code. */
int devices_wait_for_idle_stream(const struct served_device *served);

/* Whether a source of a stack holds memory of the runtime that begins at `ptr`: the program must never free that. */
bool devices_hold(const void *ptr, struct hipmm_block *held_out);

/* Whether `ptr` lies in memory that a resource of a stack holds, be it given out or not. Looks at all extents. */
bool devices_hold_at(const void *ptr);

/* Device memory that the stack holds, and the program does not have. */
int64_t devices_idle_bytes(const struct served_device *served);

/* The most that the stack of this kind held of the runtime; false if it is counted with device memory. */
bool devices_peak_reserved(const struct served_device *served, enum kind kind, int64_t *bytes_out);

/* Lets go of everything that was served, before hipmm itself is closed. */
void devices_close(void);

#endif
