/* SPDX-License-Identifier: MIT */
/* pools.c: see pools.h. */
#include "pools.h"

#include "../core/runtime/hip.h"
#include "devices.h"
#include "failure.h"
#include "handle_set.h"
#include "init.h"
#include "next_symbol.h"
#include "streams.h"

#include <stdlib.h>
#include <string.h>

static struct handle_set known = HANDLES_EMPTY;

/* Of the pool that each device has from the start; never freed. */
static struct served_pool defaults[DEVICES_MOST];

/* The pool that the program has set for hipMallocAsync(); the device's own if it has set none. */
static struct {
  bool is_set;
  struct served_pool *served_pool; /* a reference; NULL for a pool that stays with the runtime */
} current[DEVICES_MOST];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* How the props begin, in every release of HIP and CUDA. What a release does not know yet is 0. */
struct props {
  int allocation_type, handle_types;
  int location_type, location;
  void *security; /* Windows alone */
  size_t most_bytes;
  unsigned short usage; /* for other units of the device */
};

enum { ALLOCATION_PINNED = 1, LOCATION_DEVICE = 1 };

/* Attributes: the same numbers in HIP and CUDA. */
enum { REUSE_FIRST = 1, REUSE_LAST = 3, RESERVED_CURRENT = 5, RESERVED_HIGH, USED_CURRENT, USED_HIGH };

/* ---- What is served_pool ---- */

static bool pools_is_default(const struct served_pool *served_pool)
{
  return served_pool >= defaults && served_pool < defaults + DEVICES_MOST;
}

struct served_pool *pools_retain(struct served_pool *served_pool)
{
  if (served_pool && !pools_is_default(served_pool)) atomic_fetch_add(&served_pool->references, 1);
  return served_pool;
}

void pools_release(struct served_pool *served_pool)
{
  if (served_pool && !pools_is_default(served_pool) && atomic_fetch_sub(&served_pool->references, 1) == 1)
    free(served_pool);
}

static struct served_pool *pools_new_served(void)
{
  struct served_pool *served_pool = calloc(1, sizeof *served_pool);
  if (served_pool) atomic_store(&served_pool->references, 1);
  return served_pool;
}

void pools_count(struct served_pool *served_pool, int64_t bytes)
{
  if (!served_pool) return;
  int64_t now = atomic_fetch_add_explicit(&served_pool->bytes, bytes, memory_order_relaxed) + bytes;
  usage_raise(&served_pool->used_peak_bytes, now);
  usage_raise(&served_pool->reserved_peak_bytes, now);
}

/* ---- The current pool ---- */

static bool pools_is_counted(int device)
{
  return device >= 0 && device < DEVICES_MOST;
}

static void pools_set_current_locked(int device, bool is_set, struct served_pool *served_pool)
{
  pools_release(current[device].served_pool);
  current[device].is_set = is_set;
  current[device].served_pool = served_pool;
}

/* The reference if it is of a pool that hipmm serves now; otherwise it is released. */
static struct served_pool *pools_if_served(struct served_pool *served_pool)
{
  if (!served_pool || !atomic_load_explicit(&served_pool->forbidden, memory_order_relaxed)) return served_pool;
  pools_release(served_pool);
  return NULL;
}

struct served_pool *pools_find_current(int device)
{
  if (!pools_is_counted(device)) return NULL;
  pthread_mutex_lock(&lock);
  struct served_pool *served_pool =
      current[device].is_set ? pools_retain(current[device].served_pool) : &defaults[device];
  pthread_mutex_unlock(&lock);
  return pools_if_served(served_pool);
}

void pools_reset(int device)
{
  if (!pools_is_counted(device)) return;
  pthread_mutex_lock(&lock);
  pools_set_current_locked(device, false, NULL);
  atomic_store(&defaults[device].forbidden, 0);
  pthread_mutex_unlock(&lock);
}

/* Under the lock: another thread may destroy the pool. */
static struct served_pool *pools_find_locked(hipMemPool_t pool, int *device_out)
{
  struct handle handle;
  if (!handle_set_find(&known, pool, &handle) || !handle.served_pool) return NULL;
  *device_out = handle.device;
  return pools_retain(handle.served_pool);
}

/* Also for a pool that is not served now, but was. */
static struct served_pool *pools_find_any(hipMemPool_t pool, int *device_out)
{
  pthread_mutex_lock(&lock);
  struct served_pool *served_pool = pools_find_locked(pool, device_out);
  pthread_mutex_unlock(&lock);
  return served_pool;
}

struct served_pool *pools_find(hipMemPool_t pool, int *device_out)
{
  return pools_if_served(pools_find_any(pool, device_out));
}

int pools_set_current(enum hook hook, int device, hipMemPool_t pool)
{
  int owner;
  bool is_outermost = init_enter();
  int code = ((int (*)(int, hipMemPool_t))next_function_of(hook))(device, pool);
  if (!code && is_outermost && pools_is_counted(device)) {
    pthread_mutex_lock(&lock);
    pools_set_current_locked(device, true, pools_find_locked(pool, &owner));
    pthread_mutex_unlock(&lock);
  }
  reentry_leave();
  return code;
}

/* ---- Pools come and go ---- */

int pools_create(enum hook hook, hipMemPool_t *pool, const void *given)
{
  const struct props *props = given;
  bool is_outermost = init_enter();
  int code = next_two_pointers(hook, pool, given);
  if (!code && is_outermost && pool && props) {
    bool is_plain = props->allocation_type == ALLOCATION_PINNED && props->location_type == LOCATION_DEVICE &&
                    !props->handle_types && !props->most_bytes && !props->usage;
    handle_set_add(&known, (struct handle){.handle = *pool,
                                           .device = props->location,
                                           .served_pool = is_plain ? pools_new_served() : NULL});
  }
  return reentry_finish(hook, OUTCOME_PASSED, code);
}

/* A device whose current pool is destroyed goes back to its own. */
static void pools_forget(const struct handle *handle)
{
  pthread_mutex_lock(&lock);
  for (int device = 0; device < DEVICES_MOST; device++)
    if (handle->served_pool && current[device].served_pool == handle->served_pool)
      pools_set_current_locked(device, false, NULL);
  pools_release(handle->served_pool);
  pthread_mutex_unlock(&lock);
}

/* Forgotten first: once it is destroyed another thread may be given its handle for a new one. */
int pools_destroy(enum hook hook, hipMemPool_t pool)
{
  struct handle handle;
  bool is_outermost = reentry_enter(), was_known = is_outermost && handle_set_remove(&known, pool, &handle);
  int code = next_pointer(hook, pool);
  if (was_known && code) handle_set_add(&known, handle);
  if (was_known && !code) pools_forget(&handle);
  return reentry_finish(hook, OUTCOME_PASSED, code);
}

/* A pool that the program neither made nor has set is the device's own. */
int pools_of_device(enum hook hook, hipMemPool_t *pool, int device)
{
  struct handle handle;
  bool is_outermost = init_enter();
  int code = ((int (*)(hipMemPool_t *, int))next_function_of(hook))(pool, device);
  bool is_own = hook == HOOK_hipDeviceGetDefaultMemPool || hook == HOOK_cudaDeviceGetDefaultMemPool;
  if (!code && is_outermost && pool && pools_is_counted(device) && !handle_set_find(&known, *pool, &handle)) {
    pthread_mutex_lock(&lock);
    is_own |= !current[device].is_set;
    pthread_mutex_unlock(&lock);
    if (is_own)
      handle_set_add(&known, (struct handle){.handle = *pool, .device = device, .served_pool = &defaults[device]});
  }
  reentry_leave();
  return code;
}

/* ---- Attributes ---- */

typedef int attribute_function(hipMemPool_t pool, int attribute, void *value);

static atomic_int_fast64_t *pools_find_counter(struct served_pool *served_pool, int attribute)
{
  switch (attribute) {
  case RESERVED_HIGH: return &served_pool->reserved_peak_bytes;
  case USED_HIGH: return &served_pool->used_peak_bytes;
  default: return &served_pool->bytes;
  }
}

static uint64_t pools_count_of(struct served_pool *served_pool, int device, int attribute)
{
  const struct served_device *served = devices_if_served(device);
  int64_t reserved = atomic_load(&served_pool->bytes) + (served ? devices_idle_bytes(served) : 0);
  usage_raise(&served_pool->reserved_peak_bytes, reserved);
  return (uint64_t)(attribute == RESERVED_CURRENT ? reserved : atomic_load(pools_find_counter(served_pool, attribute)));
}

int pools_get_attribute(enum hook hook, hipMemPool_t pool, int attribute, void *value)
{
  int device;
  uint64_t bytes;
  bool is_outermost = init_enter();
  int code = ((attribute_function *)next_function_of(hook))(pool, attribute, value);
  bool is_usage = attribute >= RESERVED_CURRENT && attribute <= USED_HIGH;
  struct served_pool *served_pool = !code && is_outermost && is_usage ? pools_find_any(pool, &device) : NULL;
  if (served_pool) {
    memcpy(&bytes, value, sizeof bytes);
    bytes += pools_count_of(served_pool, device, attribute);
    memcpy(value, &bytes, sizeof bytes);
    pools_release(served_pool);
  }
  reentry_leave();
  return code;
}

/* hipmm reuses memory in each way that the attributes name. */
static void pools_note_reuse(struct served_pool *served_pool, int attribute, const void *value)
{
  int is_allowed;
  memcpy(&is_allowed, value, sizeof is_allowed);
  if (is_allowed)
    atomic_fetch_and(&served_pool->forbidden, ~(1U << attribute));
  else
    atomic_fetch_or(&served_pool->forbidden, 1U << attribute);
}

/* A peak can only be set to 0, and is then measured anew. */
int pools_set_attribute(enum hook hook, hipMemPool_t pool, int attribute, void *value)
{
  int device;
  bool is_outermost = init_enter();
  int code = ((attribute_function *)next_function_of(hook))(pool, attribute, value);
  bool is_peak = attribute == RESERVED_HIGH || attribute == USED_HIGH;
  bool is_reuse = attribute >= REUSE_FIRST && attribute <= REUSE_LAST;
  struct served_pool *served_pool =
      !code && is_outermost && (is_peak || is_reuse) ? pools_find_any(pool, &device) : NULL;
  if (served_pool && is_reuse) pools_note_reuse(served_pool, attribute, value);
  if (served_pool && is_peak)
    atomic_store(pools_find_counter(served_pool, attribute), atomic_load(&served_pool->bytes));
  pools_release(served_pool);
  reentry_leave();
  return code;
}

/* ---- Trimming ---- */

/* The stack has the program's other blocks too, which count as kept. */
static int pools_trim_stack(enum hook hook, const struct served_pool *served_pool, const struct served_device *served,
                            size_t keep)
{
  int64_t others = atomic_load(&served->usage[KIND_DEVICE].bytes) - atomic_load(&served_pool->bytes);
  size_t kept = others > 0 && keep < SIZE_MAX - (size_t)others ? keep + (size_t)others : keep;
  if (!streams_are_idle(served->device)) return 0;
  return hipmm_resource_trim(served->kinds[KIND_DEVICE].resource, kept) ? failure_of_hipmm(hook, 0) : 0;
}

int pools_trim(enum hook hook, hipMemPool_t pool, size_t keep_bytes)
{
  int device = 0;
  bool is_outermost = init_enter();
  int code = ((int (*)(hipMemPool_t, size_t))next_function_of(hook))(pool, keep_bytes);
  bool is_ours = !code && is_outermost && init_was_ready() && !init_is_forked();
  struct served_pool *served_pool = is_ours ? pools_find_any(pool, &device) : NULL;
  const struct served_device *served = served_pool ? devices_if_served(device) : NULL;
  if (served) code = pools_trim_stack(hook, served_pool, served, keep_bytes);
  pools_release(served_pool);
  reentry_leave();
  return code;
}

/* ---- Access ---- */

/* A description of access, in every release of HIP and CUDA. */
struct access {
  int location_type, location;
  int flags;
};

/* Mapped memory can be used by every device; other memory only where the driver was told. */
static void pools_enable_access(int device, int owner)
{
  const struct hipmm_hip *hip = hip_table();
  int previous = hip_enter_device(device);
  if (hip->DeviceEnablePeerAccess && hip->DeviceEnablePeerAccess(owner, 0)) hip->GetLastError(); /* enabled before */
  hip_leave_device(device, previous);
}

int pools_set_access(enum hook hook, hipMemPool_t pool, const void *given, size_t count)
{
  int owner = 0;
  const struct access *access = given;
  bool is_outermost = init_enter();
  int code = ((int (*)(hipMemPool_t, const void *, size_t))next_function_of(hook))(pool, given, count);
  bool is_ours = !code && is_outermost && init_ready(hook_family(hook));
  struct served_pool *served_pool = is_ours ? pools_find(pool, &owner) : NULL;
  for (size_t i = 0; served_pool && i < count; i++)
    if (access[i].location_type == LOCATION_DEVICE && access[i].location != owner && access[i].flags)
      pools_enable_access(access[i].location, owner);
  pools_release(served_pool);
  reentry_leave();
  return code;
}
