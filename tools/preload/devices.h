/* SPDX-License-Identifier: MIT */
/* devices.h: the devices that hipmm serves, and the resource that serves each kind of memory. */
#ifndef HIPMM_TOOLS_PRELOAD_DEVICES_H
#define HIPMM_TOOLS_PRELOAD_DEVICES_H

#include "../../core/stack/stack.h"
#include "hooks.h"

#include <stdatomic.h>

/* Device memory comes from the device's resource in the graph; managed and pinned memory come from the resources that the
 * graph calls "managed" and "pinned". */
enum kind { KIND_DEVICE, KIND_MANAGED, KIND_PINNED, KIND_COUNT };

/* Live blocks of one kind of memory, and an estimate of the memory that the driver alone would have taken for them. */
struct usage {
  atomic_int_fast64_t count, bytes, peak_bytes;
  atomic_int_fast64_t small_bytes, large_bytes, driver_peak_bytes;
};

enum { DEVICES_MOST = 64 };

struct served_device {
  int device;
  hipmm_stream_t idle; /* never has work: memory allocated for it is ready for every stream once it was waited for */
  struct stack *stack;
  struct hipmm_resource *resources[KIND_COUNT]; /* of each kind; NULL: by the runtime */
  bool may_lack_order; /* the stack was built for PyTorch, which orders copies between devices, and there are several */
  atomic_bool lacks_order; /* and it was found to map memory */
  struct usage usage[KIND_COUNT];
};

const char *kind_name(enum kind kind);

/* The device, opened if it is not yet. NULL if its stack cannot be built; a message says so, once. */
struct served_device *devices_get(enum family family, int device);

/* The device if it is open, else NULL. */
struct served_device *devices_if_served(int device);

int devices_count_served(void);

/* Waits until memory allocated for the idle stream is ready. A HIP error code. */
int devices_wait_for_idle_stream(const struct served_device *served);

/* Whether a source holds an allocation of the runtime that begins at `ptr`. The program must never free such memory. */
bool devices_have_block(const void *ptr, struct hipmm_block *held_out);

/* Whether `ptr`, in a block of hipmm's, is mapped memory: no allocation of the runtime. Else the allocation. */
bool devices_are_mapped_at(void *ptr, void **base_out, size_t *bytes_out);

/* What the topmost resource that holds memory at `ptr` says of it, live or free, and whose stack it is. False if none holds it.
 * Looks at every extent: slow. */
bool devices_find_extent(const void *ptr, struct hipmm_extent *extent_out, struct served_device **served_out);

/* Memory that the sources of device memory hold, less the live blocks. */
int64_t devices_idle_bytes(const struct served_device *served);

/* The most bytes that the sources of this kind held from the runtime, each at once. False if the runtime serves this kind,
 * and if one of them is a source of device memory too. */
bool devices_peak_reserved(const struct served_device *served, enum kind kind, int64_t *bytes_out);

/* Calls `visit` for each resource of each stack. No device is opened or closed meanwhile. */
void devices_visit(void (*visit)(void *closure, int device, struct instance *instance), void *closure);

/* Closes all devices, before hipmm itself is closed. No block may be live. */
void devices_close(void);

#endif
