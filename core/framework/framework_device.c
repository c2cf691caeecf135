/* SPDX-License-Identifier: MIT */
/* framework_device.c: devices as the hooks of frameworks see them. Called by torch.c and cupy.c only; the fast path is in the
 * header. */
#include "framework_device.h"
#include "../base/cancel.h"
#include "../base/error.h"
#include "../base/log.h"
#include "../stack/instance_services.h"
#include "torch_blocks.h"
#include "torch_pools.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

_Static_assert(FRAMEWORK_STREAMS == 1 << (64 - 55), "framework_stream_slot() takes 9 bits");

struct framework_device framework_devices[DEVICE_TABLE_MOST];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned last_opening;     /* what torch_notes and torch_pools know is about this one */
static enum hipmm_status refusal; /* what hipmm_init() said when it was called from here; HIPMM_OK: nothing */
static char reason[2048];

void framework_complain(const char *framework, const char *what)
{
  if (atomic_load(&lifecycle_now) != LIFECYCLE_BEFORE)
    log_line(HIPMM_LOG_ERROR, framework, "%s: %s", what, hipmm_last_error_message());
}

/* ---- Opening ---- */

static enum hipmm_status framework_device_initialise(void)
{
  if (atomic_load(&lifecycle_now) != LIFECYCLE_BEFORE) return lifecycle_check();
  if (refusal) return error_set(refusal, "%s", reason);
  enum hipmm_status status = hipmm_init();
  if (status && atomic_load(&lifecycle_now) == LIFECYCLE_READY) return HIPMM_OK; /* the program was faster */
  if (!status) return status;
  refusal = status;
  snprintf(reason, sizeof reason, "%s", hipmm_last_error_message());
  log_line(HIPMM_LOG_ERROR, NULL, "cannot be initialised, so no memory can be allocated: %s", reason);
  return status;
}

enum hipmm_status framework_initialise(void)
{
  if (lifecycle_is_forked()) return lifecycle_check();
  int cancel = cancel_forbid();
  pthread_mutex_lock(&lock);
  enum hipmm_status status = framework_device_initialise();
  pthread_mutex_unlock(&lock);
  cancel_allow(cancel);
  return status;
}

/* What was known is of stacks that are gone. */
static void framework_device_forget(unsigned opening)
{
  if (opening == last_opening) return;
  torch_pools_forget();
  torch_blocks_forget();
  last_opening = opening;
}

static void framework_device_open_locked(int number, struct hipmm_resource *resource)
{
  struct framework_device *device = &framework_devices[number];
  unsigned opening = atomic_load(&device_table_openings);
  if (atomic_load(&device->opening) == opening) return;
  framework_device_forget(opening);
  if (!atomic_load(&device->opening)) atomic_store(&device->limit, SIZE_MAX);
  device->device = number;
  device->resource = resource;
  memset(device->streams, 0, sizeof device->streams);
  atomic_store(&device->pool, NULL);
  atomic_store(&device->live, 0);
  atomic_store_explicit(&device->opening, opening, memory_order_release);
}

static enum hipmm_status framework_device_resource(int number, enum framework framework,
                                                   struct hipmm_resource **resource_out)
{
  instance_services_set_order(framework == FRAMEWORK_TORCH);
  enum hipmm_status status = device_table_resource(number, resource_out);
  instance_services_set_order(false);
  return status;
}

/* The lock is not held while the stack is built, which may call functions of the program. */
static enum hipmm_status framework_device_open(int number, enum framework framework)
{
  struct hipmm_resource *resource;
  enum hipmm_status status = framework_device_resource(number, framework, &resource);
  if (status) return status;
  pthread_mutex_lock(&lock);
  framework_device_open_locked(number, resource);
  pthread_mutex_unlock(&lock);
  return HIPMM_OK;
}

struct framework_device *framework_open(int device, enum framework framework)
{
  enum hipmm_status status = framework_initialise();
  if (!status) status = lifecycle_enter();
  if (status) return NULL;
  status = framework_device_open(device, framework);
  lifecycle_leave();
  return status ? NULL : &framework_devices[device];
}

struct framework_device *framework_enter_slowly(int device, enum framework framework)
{
  if (framework_initialise() || lifecycle_enter()) return NULL;
  struct framework_device *entered = framework_get(device, framework);
  if (!entered) lifecycle_leave();
  return entered;
}

/* ---- Streams ---- */

void framework_promise_stream(struct framework_device *device, hipStream_t stream)
{
  enum { PROBES = 16 };
  size_t home = framework_stream_slot(stream);
  for (size_t i = 0; i < PROBES; i++) {
    hipStream_t _Atomic *slot = &device->streams[(home + i) % FRAMEWORK_STREAMS];
    hipStream_t none = NULL;
    if (atomic_load_explicit(slot, memory_order_relaxed) == stream) return;
    if (atomic_compare_exchange_strong(slot, &none, stream)) break; /* ours, so it is ours to tell */
    if (none == stream) return;
    if (i + 1 == PROBES) return; /* it works without the promise as well */
  }
  if (hipmm_stream_retain(device->device, stream)) framework_complain("torch", "a stream cannot be promised to last");
}

/* ---- Memory ---- */

void framework_free(struct framework_device *device, void *ptr, size_t bytes, hipStream_t stream)
{
  struct hipmm_resource *resource = device->resource;
  if (__builtin_expect(!resource->ops->deallocate(resource->self, ptr, bytes, HIPMM_ALIGNMENT, stream), 1))
    framework_uncount(device, bytes);
  else
    framework_complain("torch", "a block is not freed");
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
