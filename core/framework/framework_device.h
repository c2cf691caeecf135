/* SPDX-License-Identifier: MIT */
/* framework_device.h: devices for the hooks of frameworks (torch.c, cupy.c): hipmm is initialised at the first use,
 * each allocation is from the current resource, each stream is retained once, and live bytes are counted against a
 * limit. */
#ifndef HIPMM_CORE_FRAMEWORK_FRAMEWORK_DEVICE_H
#define HIPMM_CORE_FRAMEWORK_FRAMEWORK_DEVICE_H

#include "../base/lifecycle.h"
#include "../call/device_table.h"
#include "../reclaim/reclaim.h"

enum { FRAMEWORK_STREAMS = 512 };

struct framework_device {
  atomic_uint generation; /* of the table of devices that the rest is about; 0: none yet */
  int device;
  struct hipmm_resource *resource; /* current at the first use: of blocks without a record */
  atomic_size_t limit;             /* SIZE_MAX: none */
  atomic_uint n_apart; /* PyTorch's private pools that take allocations, and its blocks that wait for streams */
  _Alignas(64) atomic_size_t live;                   /* bytes, as requested */
  atomic_size_t peak;                                /* of them */
  hipmm_stream_t _Atomic streams[FRAMEWORK_STREAMS]; /* that are retained; open addressing */
};

extern struct framework_device framework_devices[STACK_MOST_DEVICES];

/* The device, or NULL when the device was not opened since hipmm was initialised. */
static inline struct framework_device *framework_find(int number)
{
  if (__builtin_expect((unsigned)number >= STACK_MOST_DEVICES, 0)) return NULL;
  struct framework_device *found = &framework_devices[number];
  unsigned generation = atomic_load_explicit(&found->generation, memory_order_acquire);
  return generation == atomic_load_explicit(&device_table_generation, memory_order_relaxed) ? found : NULL;
}

/* PyTorch orders its copies between devices with events. CuPy relies on the runtime's order. */
enum framework { FRAMEWORK_TORCH, FRAMEWORK_CUPY };

/* Called when PyTorch begins to use these functions for all its memory, and not for a MemPool alone. */
void framework_begin_torch(void);

/* Whom a stack is built for that is built for no framework: PyTorch, once it has begun. */
enum stack_user framework_user_of_process(void);

/* A call that uses the device's resource: hipmm_finalize() waits until framework_leave(). `device` NULL: there is nothing
 * to leave. */
struct framework_call {
  struct framework_device *device;
  struct caller_thread *thread;
};

static inline void framework_leave(struct framework_call call)
{
  lifecycle_leave_thread(call.thread);
}

/* NULL where hipmm is not initialised or the device was not opened since. On the path of each block: no function call. */
__attribute__((always_inline)) static inline struct framework_call framework_enter_known(int number)
{
  struct framework_call none = {NULL, NULL}, call;
  if (__builtin_expect(atomic_load_explicit(&lifecycle_now, memory_order_relaxed) != LIFECYCLE_READY, 0)) return none;
  call.thread = lifecycle_enter_thread();
  if (__builtin_expect(!call.thread, 0)) return none;
  call.device = framework_find(number);
  if (__builtin_expect(!call.device, 0)) framework_leave(call);
  return call;
}

/* NULL: the thread's error and the log say why. */
struct framework_call framework_enter_slow_path(int number, enum framework framework);

static inline struct framework_call framework_enter(int number, enum framework framework)
{
  struct framework_call call = framework_enter_known(number);
  return __builtin_expect(call.device != NULL, 1) ? call : framework_enter_slow_path(number, framework);
}

/* Initialises hipmm if the program has not. A failure is logged once, and is the status of later calls. */
enum hipmm_status framework_initialise(void);

/* Retains a stream once. The default streams need none of it, and the per-thread one cannot be retained: its handle names
 * another stream in each thread. */
void framework_retain_stream(struct framework_device *device, hipmm_stream_t stream);

static inline size_t framework_stream_slot(hipmm_stream_t stream)
{
  return ((uintptr_t)stream >> 4) * 0x9E3779B97F4A7C15u >> 55;
}

static inline bool framework_has_stream(struct framework_device *device, hipmm_stream_t stream)
{
  hipmm_stream_t _Atomic *slot = &device->streams[framework_stream_slot(stream)];
  return (uintptr_t)stream <= 2 || atomic_load_explicit(slot, memory_order_relaxed) == stream;
}

/* Counts bytes as live before they are allocated, if the limit allows it: a failed allocation never counts against the
 * limit; one in progress does. */
bool framework_count_within(struct framework_device *device, size_t bytes, size_t limit);

/* Counts the bytes of a block as live. */
static inline void framework_count(struct framework_device *device, size_t bytes)
{
  size_t live = atomic_fetch_add_explicit(&device->live, bytes, memory_order_relaxed) + bytes;
  size_t peak = atomic_load_explicit(&device->peak, memory_order_relaxed);
  while (__builtin_expect(live > peak, 0) &&
         !atomic_compare_exchange_weak_explicit(&device->peak, &peak, live, memory_order_relaxed, memory_order_relaxed))
    continue;
}

static inline void framework_uncount(struct framework_device *device, size_t bytes)
{
  atomic_fetch_sub_explicit(&device->live, bytes, memory_order_relaxed);
}

/* The resource of a block, for blocks that were allocated after the program made another resource current than the first one
 * of the device. Frameworks free with the address alone. The table of devices keeps every resource that was current, so the
 * records need no references. NULL without a record. */
extern atomic_size_t framework_owners_count; /* records: usually 0 */
struct hipmm_resource *framework_owners_find(const void *ptr);

/* Allocates from `resource`, which is not the device's first one, and records that. */
enum hipmm_status framework_allocate_from(struct hipmm_resource *resource, size_t bytes, hipmm_stream_t stream,
                                          void **ptr_out);

/* Allocates from the current resource. */
static inline enum hipmm_status framework_allocate(const struct framework_device *device, size_t bytes,
                                                   hipmm_stream_t stream, void **ptr_out)
{
  struct hipmm_resource *resource = device_table_resource_if_built(device->device);
  if (__builtin_expect(resource != device->resource, 0))
    return framework_allocate_from(resource, bytes, stream, ptr_out);
  return reclaim_allocate(resource, bytes, HIPMM_ALIGNMENT, stream, ptr_out);
}

/* The resource that allocated a block. */
static inline struct hipmm_resource *framework_owner(const struct framework_device *device, const void *ptr)
{
  bool has_records = atomic_load_explicit(&framework_owners_count, memory_order_relaxed) != 0;
  struct hipmm_resource *owner = __builtin_expect(has_records, 0) ? framework_owners_find(ptr) : NULL;
  return owner ? owner : device->resource;
}

/* Frees a block in the resource that allocated it. `bytes` 0: unknown. */
enum hipmm_status framework_deallocate(const struct framework_device *device, void *ptr, size_t bytes,
                                       hipmm_stream_t stream);

/* Frees a block and uncounts it, or logs why it is refused. */
void framework_free(struct framework_device *device, void *ptr, size_t bytes, hipmm_stream_t stream);

/* Logs the thread's last error, except that hipmm cannot be initialised, which framework_initialise() has logged. */
void framework_log_failure(const char *framework, const char *what);

/* The same for an allocation, which is counted. */
void framework_fail_allocation(const char *framework);

#endif
