/* SPDX-License-Identifier: MIT */
/* pools.c: the driver's pools of the program: which of them hipmm serves, and the program's calls on them besides
 * memory; see pools.h. The runtime is called first; hipmm then does its part for the blocks that it gave out in the
 * pool's place. */
#include "pools.h"

#include "../../core/base/peak.h"
#include "contexts.h"
#include "devices.h"
#include "failure.h"
#include "init.h"
#include "next_symbol.h"
#include "shortage.h"
#include "streams.h"

#include <stdlib.h>
#include <string.h>

static struct handle_set known = HANDLES_EMPTY;

/* Of the default pool of each device; never freed. */
static struct pool_account defaults[DEVICES_MOST];

/* The pool that the program has set for hipMallocAsync(); the default pool if it has set none. */
static struct {
  bool is_set;
  struct pool_account *account; /* a reference; NULL for a pool that stays with the runtime */
} current[DEVICES_MOST];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The first members of hipMemPoolProps and cudaMemPoolProps. A member that a release does not have yet is 0 there. */
struct props {
  int allocation_type, handle_types;
  int location_type, location;
  void *security;       /* Windows alone */
  size_t maximum_bytes; /* 0: no limit */
  unsigned short usage; /* by units of the device other than its processors */
};

enum { ALLOCATION_PINNED = 1, LOCATION_DEVICE = 1 };

/* ---- Accounts ---- */

static bool pools_is_default(const struct pool_account *account)
{
  return account >= defaults && account < defaults + DEVICES_MOST;
}

struct pool_account *pools_retain(struct pool_account *account)
{
  if (account && !pools_is_default(account)) atomic_fetch_add(&account->references, 1);
  return account;
}

void pools_release(struct pool_account *account)
{
  if (account && !pools_is_default(account) && atomic_fetch_sub(&account->references, 1) == 1) free(account);
}

void pools_count(struct pool_account *account, int64_t bytes)
{
  if (!account) return;
  int64_t now = peak_add(&account->bytes, &account->used_peak_bytes, bytes);
  peak_raise(&account->reserved_peak_bytes, now);
  int_fast64_t freed = atomic_load_explicit(&account->freed_bytes, memory_order_relaxed), after;
  do after = freed > bytes ? freed - bytes : 0;
  while (!atomic_compare_exchange_weak_explicit(&account->freed_bytes, &freed, after, memory_order_relaxed,
                                                memory_order_relaxed));
}

/* ---- The current pool ---- */

static bool pools_has_account(int device)
{
  return device >= 0 && device < DEVICES_MOST;
}

static void pools_set_current_locked(int device, bool is_set, struct pool_account *account)
{
  pools_release(current[device].account);
  current[device].is_set = is_set;
  current[device].account = account;
}

/* Returns the reference if hipmm serves the pool now; otherwise releases it and returns NULL. */
static struct pool_account *pools_if_served(struct pool_account *account)
{
  if (!account || !atomic_load_explicit(&account->forbidden, memory_order_relaxed)) return account;
  pools_release(account);
  return NULL;
}

struct pool_account *pools_find_current(int device)
{
  if (!pools_has_account(device)) return NULL;
  pthread_mutex_lock(&lock);
  struct pool_account *account = current[device].is_set ? pools_retain(current[device].account) : &defaults[device];
  pthread_mutex_unlock(&lock);
  return pools_if_served(account);
}

void pools_reset(int device)
{
  if (!pools_has_account(device)) return;
  pthread_mutex_lock(&lock);
  pools_set_current_locked(device, false, NULL);
  atomic_store(&defaults[device].forbidden, 0);
  pthread_mutex_unlock(&lock);
}

/* Under the lock: another thread may destroy the pool. */
static struct pool_account *pools_find_locked(hipmm_hip_mempool_t pool, int *device_out)
{
  struct program_handle handle;
  if (!handle_set_find(&known, pool, &handle) || !handle.account) return NULL;
  *device_out = handle.device;
  return pools_retain(handle.account);
}

struct pool_account *pools_find_any(hipmm_hip_mempool_t pool, int *device_out)
{
  pthread_mutex_lock(&lock);
  struct pool_account *account = pools_find_locked(pool, device_out);
  pthread_mutex_unlock(&lock);
  return account;
}

struct pool_account *pools_find(hipmm_hip_mempool_t pool, int *device_out)
{
  return pools_if_served(pools_find_any(pool, device_out));
}

/* The program has made the pool current. */
static void pools_note_current(int device, hipmm_hip_mempool_t pool)
{
  int owner;
  if (!pools_has_account(device)) return;
  pthread_mutex_lock(&lock);
  pools_set_current_locked(device, true, pools_find_locked(pool, &owner));
  pthread_mutex_unlock(&lock);
}

int pools_set_current(enum hook hook, int device, hipmm_hip_mempool_t pool)
{
  bool is_outermost = init_enter();
  int code = ((int (*)(int, hipmm_hip_mempool_t))next_function_of(hook))(device, pool);
  if (!code && is_outermost) pools_note_current(device, pool);
  reentry_leave();
  return code;
}

/* The device of a location and of allocations that a device's pools make; -1 for another. */
static int pools_device_of(const void *location, int type)
{
  int parts[2] = {0, -1};
  if (location) memcpy(parts, location, sizeof parts);
  return parts[0] == LOCATION_DEVICE && type == ALLOCATION_PINNED ? parts[1] : -1;
}

int pools_set_for_location(enum hook hook, const void *location, int type, hipmm_hip_mempool_t pool)
{
  bool is_outermost = init_enter();
  int code = ((int (*)(const void *, int, hipmm_hip_mempool_t))next_function_of(hook))(location, type, pool);
  if (!code && is_outermost) pools_note_current(pools_device_of(location, type), pool);
  reentry_leave();
  return code;
}

/* ---- Pools come and go ---- */

int pools_create(enum hook hook, hipmm_hip_mempool_t *pool, const void *given)
{
  const struct props *props = given;
  int code;
  bool is_outermost = init_enter();
  SHORTAGE_REPEAT(hook, is_outermost, code, next_two_pointers(hook, pool, given));
  if (!code && is_outermost && pool && props) {
    bool is_plain = props->allocation_type == ALLOCATION_PINNED && props->location_type == LOCATION_DEVICE &&
                    !props->handle_types && !props->maximum_bytes && !props->usage;
    struct pool_account *account = is_plain ? calloc(1, sizeof *account) : NULL;
    if (account) atomic_store(&account->references, 1);
    handle_set_add(&known, (struct program_handle){.handle = *pool, .device = props->location, .account = account});
  }
  return reentry_finish(hook, OUTCOME_PASSED, code);
}

/* If the pool was current, the default pool is current again. */
static void pools_remove(const struct program_handle *handle)
{
  pthread_mutex_lock(&lock);
  for (int device = 0; device < DEVICES_MOST; device++)
    if (handle->account && current[device].account == handle->account) pools_set_current_locked(device, false, NULL);
  pools_release(handle->account);
  pthread_mutex_unlock(&lock);
}

/* Removed first: once the pool is destroyed, the runtime may give its handle to a new pool of another thread. */
int pools_destroy(enum hook hook, hipmm_hip_mempool_t pool)
{
  struct program_handle handle;
  bool is_outermost = reentry_enter(), was_known = is_outermost && handle_set_remove(&known, pool, &handle);
  int code = next_pointer(hook, pool);
  if (was_known && code) handle_set_add(&known, handle);
  if (was_known && !code) pools_remove(&handle);
  return reentry_finish(hook, OUTCOME_PASSED, code);
}

/* The program was given a pool of the device. One that it neither created nor set is the default pool. */
static void pools_note_given(enum hook hook, int device, hipmm_hip_mempool_t pool)
{
  static const enum hook defaulting[] = {HOOK_hipDeviceGetDefaultMemPool,  HOOK_hipMemGetDefaultMemPool,
                                         HOOK_cudaDeviceGetDefaultMemPool, HOOK_cudaMemGetDefaultMemPool,
                                         HOOK_cuDeviceGetDefaultMemPool,   HOOK_cuMemGetDefaultMemPool};
  struct program_handle handle;
  bool is_own = false;
  if (!pools_has_account(device) || handle_set_find(&known, pool, &handle)) return;
  for (size_t i = 0; i < sizeof defaulting / sizeof *defaulting; i++) is_own |= hook == defaulting[i];
  pthread_mutex_lock(&lock);
  is_own |= !current[device].is_set;
  pthread_mutex_unlock(&lock);
  if (is_own)
    handle_set_add(&known, (struct program_handle){.handle = pool, .device = device, .account = &defaults[device]});
}

int pools_of_device(enum hook hook, hipmm_hip_mempool_t *pool, int device)
{
  bool is_outermost = init_enter();
  int code = ((int (*)(hipmm_hip_mempool_t *, int))next_function_of(hook))(pool, device);
  if (!code && is_outermost && pool) pools_note_given(hook, device, *pool);
  reentry_leave();
  return code;
}

int pools_of_location(enum hook hook, hipmm_hip_mempool_t *pool, const void *location, int type)
{
  bool is_outermost = init_enter();
  int code = ((int (*)(hipmm_hip_mempool_t *, const void *, int))next_function_of(hook))(pool, location, type);
  if (!code && is_outermost && pool) pools_note_given(hook, pools_device_of(location, type), *pool);
  reentry_leave();
  return code;
}

/* ---- Attributes ---- */

/* The same numbers in HIP and CUDA. */
enum { REUSE_FIRST = 1, REUSE_LAST = 3, RELEASE_THRESHOLD, RESERVED_CURRENT, RESERVED_HIGH, USED_CURRENT, USED_HIGH };

typedef int attribute_function(hipmm_hip_mempool_t pool, int attribute, void *value);

/* Of what the program freed, at most so many bytes are reserved from now on. */
static void pools_keep_freed(struct pool_account *account, int64_t bytes)
{
  int_fast64_t freed = atomic_load(&account->freed_bytes);
  while (freed > bytes && !atomic_compare_exchange_weak(&account->freed_bytes, &freed, bytes)) continue;
}

/* Memory that the program freed stays reserved up to the release threshold, which the runtime has stored, as long as the
 * stack holds it. Memory that the program had by other functions, such as hipMalloc(), is not the pool's. */
static int64_t pools_reserved_bytes(enum family family, hipmm_hip_mempool_t pool, struct pool_account *account,
                                    int device)
{
  static const enum hook gets[] = {HOOK_hipMemPoolGetAttribute, HOOK_cudaMemPoolGetAttribute,
                                   HOOK_cuMemPoolGetAttribute};
  const struct served_device *served = devices_if_served(device);
  uint64_t threshold = 0;
  int64_t used = atomic_load(&account->bytes), idle = served ? devices_idle_bytes(served) : 0;
  int64_t freed = atomic_load(&account->freed_bytes);
  if (((attribute_function *)next_function_of(gets[family]))(pool, RELEASE_THRESHOLD, &threshold)) threshold = 0;
  uint64_t kept = threshold > (uint64_t)used ? threshold - (uint64_t)used : 0;
  if (idle > freed) idle = freed;
  if ((uint64_t)idle > kept) idle = (int64_t)kept;
  peak_raise(&account->reserved_peak_bytes, used + idle);
  return used + idle;
}

int pools_get_attribute(enum hook hook, hipmm_hip_mempool_t pool, int attribute, void *value)
{
  int device;
  uint64_t bytes;
  bool is_outermost = init_enter();
  int code = ((attribute_function *)next_function_of(hook))(pool, attribute, value);
  bool is_usage = attribute >= RESERVED_CURRENT && attribute <= USED_HIGH;
  struct pool_account *account = !code && is_outermost && is_usage ? pools_find_any(pool, &device) : NULL;
  if (account) {
    int64_t reserved = pools_reserved_bytes(hook_family(hook), pool, account, device);
    const int64_t ours[] = {reserved, atomic_load(&account->reserved_peak_bytes), atomic_load(&account->bytes),
                            atomic_load(&account->used_peak_bytes)};
    memcpy(&bytes, value, sizeof bytes);
    bytes += (uint64_t)ours[attribute - RESERVED_CURRENT];
    memcpy(value, &bytes, sizeof bytes);
    pools_release(account);
  }
  reentry_leave();
  return code;
}

/* hipmm reuses memory in all of the ways that these attributes name. */
static void pools_set_reuse(struct pool_account *account, int attribute, const void *value)
{
  int is_allowed;
  memcpy(&is_allowed, value, sizeof is_allowed);
  if (is_allowed)
    atomic_fetch_and(&account->forbidden, ~(1U << attribute));
  else
    atomic_fetch_or(&account->forbidden, 1U << attribute);
}

/* A peak can only be set to 0, which makes it what is in use now. A higher threshold brings nothing back that the lower one
 * has let go. */
int pools_set_attribute(enum hook hook, hipmm_hip_mempool_t pool, int attribute, void *value)
{
  int device;
  bool is_outermost = init_enter();
  bool is_reuse = attribute >= REUSE_FIRST && attribute <= REUSE_LAST;
  bool is_known = is_reuse || attribute == RELEASE_THRESHOLD || attribute == RESERVED_HIGH || attribute == USED_HIGH;
  struct pool_account *account = is_outermost && is_known ? pools_find_any(pool, &device) : NULL;
  int64_t reserved = account ? pools_reserved_bytes(hook_family(hook), pool, account, device) : 0;
  int code = ((attribute_function *)next_function_of(hook))(pool, attribute, value);
  if (!code && account && is_reuse) pools_set_reuse(account, attribute, value);
  if (!code && account && attribute == USED_HIGH) atomic_store(&account->used_peak_bytes, atomic_load(&account->bytes));
  if (!code && account && attribute == RESERVED_HIGH) atomic_store(&account->reserved_peak_bytes, reserved);
  if (!code && account && attribute == RELEASE_THRESHOLD)
    pools_keep_freed(account, reserved - atomic_load(&account->bytes));
  pools_release(account);
  reentry_leave();
  return code;
}

/* ---- Trimming ---- */

/* HIP keeps so many bytes in the pool. The stack holds the program's other blocks too, which are kept besides. */
static int pools_trim_stack(enum hook hook, struct pool_account *account, const struct served_device *served,
                            size_t keep)
{
  int64_t used = atomic_load(&account->bytes), others = atomic_load(&served->usage[KIND_DEVICE].bytes) - used;
  size_t kept = others > 0 && keep < SIZE_MAX - (size_t)others ? keep + (size_t)others : keep;
  if (!streams_are_idle(served->device)) return 0;
  if (hipmm_resource_trim(served->resources[KIND_DEVICE], kept)) return failure_of_hipmm(hook, 0);
  int64_t left = keep > (size_t)used ? (int64_t)(keep - (size_t)used) : 0;
  if (left >= 0) pools_keep_freed(account, left);
  return 0;
}

int pools_trim(enum hook hook, hipmm_hip_mempool_t pool, size_t keep_bytes)
{
  int device = 0;
  bool is_outermost = init_enter();
  int code = ((int (*)(hipmm_hip_mempool_t, size_t))next_function_of(hook))(pool, keep_bytes);
  bool is_ours = !code && is_outermost && init_was_ready() && !init_is_forked();
  struct pool_account *account = is_ours ? pools_find_any(pool, &device) : NULL;
  const struct served_device *served = account ? devices_if_served(device) : NULL;
  if (served) {
    struct context_switch before = contexts_enter(hook_family(hook), device);
    code = pools_trim_stack(hook, account, served, keep_bytes);
    contexts_leave(before);
  }
  pools_release(account);
  reentry_leave();
  return code;
}
