/* SPDX-License-Identifier: MIT */
/* framework_device.c: devices as the hooks of frameworks see them; the fast path is in the header. Called by torch.c,
 * torch_pools.c and cupy.c only. */
#include "framework_device.h"
#include "../base/error.h"
#include "../base/key_map.h"
#include "../base/log.h"
#include "../stream/stream.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

_Static_assert(FRAMEWORK_STREAMS == 1 << (64 - 55), "framework_stream_slot() takes 9 bits");

struct framework_device framework_devices[STACK_MOST_DEVICES];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static enum hipmm_status refusal; /* status of the hipmm_init() that failed here; HIPMM_OK: none did */
static char reason[2048];

void framework_log_failure(const char *framework, const char *what)
{
  if (atomic_load(&lifecycle_now) != LIFECYCLE_BEFORE)
    log_line(HIPMM_LOG_ERROR, framework, "%s: %s", what, hipmm_last_error_message());
}

void framework_fail_allocation(const char *framework)
{
  error_count_allocation();
  framework_log_failure(framework, "cannot allocate");
}

/* ---- Streams ---- */

enum { PROBES = 16 };

#define FORGOTTEN ((hipmm_stream_t)1) /* a slot that is free again; others may be behind it */

void framework_retain_stream(struct framework_device *device, hipmm_stream_t stream)
{
  size_t home = framework_stream_slot(stream);
  for (size_t i = 0; i < PROBES; i++) {
    hipmm_stream_t _Atomic *slot = &device->streams[(home + i) % FRAMEWORK_STREAMS];
    hipmm_stream_t there = atomic_load_explicit(slot, memory_order_relaxed);
    if ((uintptr_t)there <= (uintptr_t)FORGOTTEN && atomic_compare_exchange_strong(slot, &there, stream))
      break; /* this thread added it, so this thread retains the stream; a second time does no harm */
    if (there == stream) return;
    if (i + 1 == PROBES) return; /* the table is full here; the stream works without it */
  }
  if (hipmm_stream_retain(device->device, stream)) framework_log_failure("torch", "a stream cannot be retained");
}

/* The stream ends, and a later one may have its handle: it will be retained anew. */
static void framework_forget_stream(int device, hipmm_stream_t stream)
{
  size_t home = framework_stream_slot(stream);
  for (size_t i = 0; i < PROBES; i++) {
    hipmm_stream_t there = stream;
    atomic_compare_exchange_strong(&framework_devices[device].streams[(home + i) % FRAMEWORK_STREAMS], &there,
                                   FORGOTTEN);
  }
}

/* ---- Opening ---- */

enum hipmm_status framework_initialise(void)
{
  if (lifecycle_is_forked()) return lifecycle_check();
  lifecycle_begin_opening();
  pthread_mutex_lock(&lock);
  enum hipmm_status status = HIPMM_OK;
  if (atomic_load(&lifecycle_now) != LIFECYCLE_BEFORE) {
    status = lifecycle_check();
  } else if (refusal) {
    status = error_set(refusal, "%s", reason);
  } else if (!(status = hipmm_init_if_needed())) {
    lifecycle_drop_surplus(); /* another thread of the program may have initialised hipmm meanwhile */
  } else {
    refusal = status;
    snprintf(reason, sizeof reason, "%s", hipmm_last_error_message());
    log_line(HIPMM_LOG_ERROR, NULL, "cannot be initialised, so no memory can be allocated: %s", reason);
  }
  pthread_mutex_unlock(&lock);
  lifecycle_end_opening();
  return status;
}

/* Within a call: the table of devices stays open. */
static void framework_set_resource(struct framework_device *device, int number, struct hipmm_resource *resource)
{
  unsigned generation = atomic_load(&device_table_generation);
  device_table_keep(resource);
  stream_watch_ends(framework_forget_stream);
  pthread_mutex_lock(&lock);
  unsigned before = atomic_load(&device->generation);
  if (!before) atomic_store(&device->limit, SIZE_MAX);
  if (before != generation) {
    device->device = number;
    device->resource = resource;
    memset(device->streams, 0, sizeof device->streams);
    atomic_store(&device->n_apart, 0);
    atomic_store(&device->live, 0);
    atomic_store(&device->peak, 0);
    atomic_store_explicit(&device->generation, generation, memory_order_release);
  }
  pthread_mutex_unlock(&lock);
}

static atomic_bool torch_is_begun;

void framework_begin_torch(void)
{
  atomic_store(&torch_is_begun, true);
}

enum stack_user framework_user_of_process(void)
{
  return atomic_load(&torch_is_begun) ? STACK_FOR_PYTORCH_WITH_INIT : STACK_FOR_ANY;
}

static enum stack_user framework_user(enum framework framework)
{
  if (framework != FRAMEWORK_TORCH) return STACK_FOR_ANY;
  enum stack_user user = framework_user_of_process();
  return user == STACK_FOR_ANY ? STACK_FOR_PYTORCH : user;
}

/* The lock is not held while the stack is built, which may call functions of the program. */
static struct framework_device *framework_open(int number, enum framework framework)
{
  struct hipmm_resource *resource;
  if (framework_initialise() || lifecycle_enter()) return NULL;
  enum hipmm_status status = device_table_resource_for(number, framework_user(framework), &resource);
  if (!status) framework_set_resource(&framework_devices[number], number, resource);
  lifecycle_leave();
  return status ? NULL : &framework_devices[number];
}

struct framework_call framework_enter_slow_path(int number, enum framework framework)
{
  struct framework_call call = {NULL, NULL};
  if (framework_initialise()) return call;
  call.thread = lifecycle_enter_thread();
  if (call.thread) call.device = framework_find(number);
  if (call.thread && !call.device) call.device = framework_open(number, framework);
  if (call.thread && !call.device) framework_leave(call);
  return call;
}

/* ---- Owners of blocks ---- */

atomic_size_t framework_owners_count;

static pthread_mutex_t owners_lock = PTHREAD_MUTEX_INITIALIZER;
static struct key_map owners;      /* block to resource */
static unsigned owners_generation; /* of the table of devices that the records are about */

/* Records of stacks that are gone are dropped at the first call after that. */
static void framework_owners_lock(void)
{
  pthread_mutex_lock(&owners_lock);
  unsigned now = atomic_load(&device_table_generation);
  if (owners_generation == now) return;
  key_map_clear(&owners);
  atomic_store(&framework_owners_count, 0);
  owners_generation = now;
}

/* Records the resource of a block. Replaces a stale record: the program freed that block in another way. False without host
 * memory. */
static bool framework_owners_add(const void *ptr, struct hipmm_resource *resource)
{
  framework_owners_lock();
  bool is_added = key_map_put(&owners, (uintptr_t)ptr, (uintptr_t)resource);
  atomic_store(&framework_owners_count, owners.count);
  pthread_mutex_unlock(&owners_lock);
  return is_added;
}

struct hipmm_resource *framework_owners_find(const void *ptr)
{
  framework_owners_lock();
  uint64_t resource = key_map_get(&owners, (uintptr_t)ptr);
  pthread_mutex_unlock(&owners_lock);
  return (struct hipmm_resource *)(uintptr_t)resource;
}

/* The same as framework_owners_find(), and removes the record. */
static struct hipmm_resource *framework_owners_extract(const void *ptr)
{
  framework_owners_lock();
  uint64_t resource = key_map_extract(&owners, (uintptr_t)ptr);
  atomic_store(&framework_owners_count, owners.count);
  pthread_mutex_unlock(&owners_lock);
  return (struct hipmm_resource *)(uintptr_t)resource;
}

/* ---- Memory ---- */

enum hipmm_status framework_allocate_from(struct hipmm_resource *resource, size_t bytes, hipmm_stream_t stream,
                                          void **ptr_out)
{
  void *ptr = NULL;
  enum hipmm_status status = reclaim_allocate(resource, bytes, HIPMM_ALIGNMENT, stream, &ptr);
  if (status) return status;
  device_table_keep(resource); /* a framework frees its blocks whichever resource is current then */
  if (ptr && !framework_owners_add(ptr, resource)) {
    resource->ops->deallocate(resource->self, ptr, bytes, HIPMM_ALIGNMENT, stream);
    return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  }
  *ptr_out = ptr;
  return HIPMM_OK;
}

/* The record goes first: once the block is free, another thread may get its address. */
enum hipmm_status framework_deallocate(const struct framework_device *device, void *ptr, size_t bytes,
                                       hipmm_stream_t stream)
{
  bool has_records = atomic_load_explicit(&framework_owners_count, memory_order_relaxed) != 0;
  struct hipmm_resource *owner = __builtin_expect(has_records, 0) ? framework_owners_extract(ptr) : NULL;
  struct hipmm_resource *resource = owner ? owner : device->resource;
  enum hipmm_status status = instance_deallocate(resource, ptr, bytes, HIPMM_ALIGNMENT, stream);
  if (status && owner) framework_owners_add(ptr, owner); /* it is still allocated */
  return status;
}

void framework_free(struct framework_device *device, void *ptr, size_t bytes, hipmm_stream_t stream)
{
  if (__builtin_expect(!framework_deallocate(device, ptr, bytes, stream), 1))
    framework_uncount(device, bytes);
  else
    framework_log_failure("torch", "a block is not freed");
}

bool framework_count_within(struct framework_device *device, size_t bytes, size_t limit)
{
  size_t live = atomic_load_explicit(&device->live, memory_order_relaxed);
  do {
    if (bytes > limit || live > limit - bytes) {
      error_refuse(HIPMM_E_LIMIT, NULL, "{0:bytes} on top of {1:bytes} are more than the memory fraction, {2:bytes}",
                   bytes, live, limit);
      return false;
    }
  } while (!atomic_compare_exchange_weak_explicit(&device->live, &live, live + bytes, memory_order_relaxed,
                                                  memory_order_relaxed));
  return true;
}
