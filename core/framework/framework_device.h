/* SPDX-License-Identifier: MIT */
/* framework_device.h: the devices as the hooks of frameworks (torch.c, cupy.c) see them: initialised at the first use, the
 * resource found once, streams promised once, and what is live counted against a limit. */
#ifndef HIPMM_CORE_FRAMEWORK_FRAMEWORK_DEVICE_H
#define HIPMM_CORE_FRAMEWORK_FRAMEWORK_DEVICE_H

#include "../base/lifecycle.h"
#include "../stack/device_table.h"

enum { FRAMEWORK_STREAMS = 512 };

struct torch_pool;

struct framework_device {
  atomic_uint opening; /* of the table of devices that all below is about; 0: none yet */
  int device;
  struct hipmm_resource *resource;
  atomic_size_t limit;                            /* SIZE_MAX: none */
  struct torch_pool *_Atomic pool;                /* that allocations belong to now; NULL: none */
  _Alignas(64) atomic_size_t live;                /* bytes, as requested */
  hipStream_t _Atomic streams[FRAMEWORK_STREAMS]; /* that were promised to last; open addressing */
};

extern struct framework_device framework_devices[DEVICE_TABLE_MOST];

/* The device, or NULL when hipmm is not initialised or the device was not opened since. */
static inline struct framework_device *framework_find(int device)
{
  if (__builtin_expect((unsigned)device >= DEVICE_TABLE_MOST || lifecycle_is_forked(), 0)) return NULL;
  struct framework_device *found = &framework_devices[device];
  unsigned opening = atomic_load_explicit(&found->opening, memory_order_acquire);
  return opening == atomic_load_explicit(&device_table_openings, memory_order_relaxed) ? found : NULL;
}

/* PyTorch orders its copies between devices with events. CuPy relies on the runtime's order. */
enum framework { FRAMEWORK_TORCH, FRAMEWORK_CUPY };

/* The device, opened if need be, hipmm initialised if need be. NULL: the thread's error and the log say why. A stack
 * that is built here is told whether the framework orders its copies between devices. */
struct framework_device *framework_open(int device, enum framework framework);

static inline struct framework_device *framework_get(int device, enum framework framework)
{
  struct framework_device *found = framework_find(device);
  return __builtin_expect(found != NULL, 1) ? found : framework_open(device, framework);
}

/* The same for a call that uses the device's resource: hipmm_finalize() waits until framework_leave(). NULL: there is
 * nothing to leave. */
struct framework_device *framework_enter_slowly(int device, enum framework framework);

static inline struct framework_device *framework_enter_known(int device)
{
  if (__builtin_expect(
          atomic_load_explicit(&lifecycle_now, memory_order_relaxed) != LIFECYCLE_READY || lifecycle_enter(), 0))
    return NULL;
  struct framework_device *entered = framework_find(device);
  if (!entered) lifecycle_leave();
  return entered;
}

static inline struct framework_device *framework_enter(int device, enum framework framework)
{
  struct framework_device *entered = framework_enter_known(device);
  return __builtin_expect(entered != NULL, 1) ? entered : framework_enter_slowly(device, framework);
}

static inline void framework_leave(void)
{
  lifecycle_leave();
}

/* Initialises hipmm if nobody has. A failure is logged once, and given again at later calls. */
enum hipmm_status framework_initialise(void);

/* Promises, once, that the stream lasts. The default streams need no promise, and the per-thread one cannot be given
 * one: its handle names another stream in each thread. */
void framework_promise_stream(struct framework_device *device, hipStream_t stream);

static inline size_t framework_stream_slot(hipStream_t stream)
{
  return ((uintptr_t)stream >> 4) * 0x9E3779B97F4A7C15u >> 55;
}

static inline bool framework_knows_stream(struct framework_device *device, hipStream_t stream)
{
  hipStream_t _Atomic *slot = &device->streams[framework_stream_slot(stream)];
  return (uintptr_t)stream <= 2 || atomic_load_explicit(slot, memory_order_relaxed) == stream;
}

bool framework_count_within(struct framework_device *device, size_t bytes, size_t limit);

/* Counts bytes as live if the limit allows it. No allocation fails because of another that will not come to be, save
 * one that is still being tried. */
static inline bool framework_count(struct framework_device *device, size_t bytes)
{
  size_t limit = atomic_load_explicit(&device->limit, memory_order_relaxed);
  if (__builtin_expect(limit != SIZE_MAX, 0)) return framework_count_within(device, bytes, limit);
  atomic_fetch_add_explicit(&device->live, bytes, memory_order_relaxed);
  return true;
}

static inline void framework_uncount(struct framework_device *device, size_t bytes)
{
  atomic_fetch_sub_explicit(&device->live, bytes, memory_order_relaxed);
}

/* Gives a block back and uncounts it, or logs why it is refused. */
void framework_free(struct framework_device *device, void *ptr, size_t bytes, hipStream_t stream);

/* Logs the thread's last error; but not that hipmm cannot be initialised, which was logged at the first time. */
void framework_complain(const char *framework, const char *what);

#endif
