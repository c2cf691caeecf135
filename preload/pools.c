/* SPDX-License-Identifier: MIT */
/* pools.c: which pools of the driver the program has, and which of them hipmm serves; see pools.h. */
#include "pools.h"

#include "devices.h"
#include "handle_set.h"
#include "init.h"
#include "next_symbol.h"

#include <stdlib.h>

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

static struct pool_account *pools_new_account(void)
{
  struct pool_account *account = calloc(1, sizeof *account);
  if (account) atomic_store(&account->references, 1);
  return account;
}

void pools_count(struct pool_account *account, int64_t bytes)
{
  if (!account) return;
  int64_t now = atomic_fetch_add_explicit(&account->bytes, bytes, memory_order_relaxed) + bytes;
  usage_raise(&account->used_peak_bytes, now);
  usage_raise(&account->reserved_peak_bytes, now);
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
  struct handle handle;
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

int pools_set_current(enum hook hook, int device, hipmm_hip_mempool_t pool)
{
  int owner;
  bool is_outermost = init_enter();
  int code = ((int (*)(int, hipmm_hip_mempool_t))next_function_of(hook))(device, pool);
  if (!code && is_outermost && pools_has_account(device)) {
    pthread_mutex_lock(&lock);
    pools_set_current_locked(device, true, pools_find_locked(pool, &owner));
    pthread_mutex_unlock(&lock);
  }
  reentry_leave();
  return code;
}

/* ---- Pools come and go ---- */

int pools_create(enum hook hook, hipmm_hip_mempool_t *pool, const void *given)
{
  const struct props *props = given;
  bool is_outermost = init_enter();
  int code = next_two_pointers(hook, pool, given);
  if (!code && is_outermost && pool && props) {
    bool is_plain = props->allocation_type == ALLOCATION_PINNED && props->location_type == LOCATION_DEVICE &&
                    !props->handle_types && !props->maximum_bytes && !props->usage;
    handle_set_add(
        &known,
        (struct handle){.handle = *pool, .device = props->location, .account = is_plain ? pools_new_account() : NULL});
  }
  return reentry_finish(hook, OUTCOME_PASSED, code);
}

/* If the pool was current, the default pool is current again. */
static void pools_remove(const struct handle *handle)
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
  struct handle handle;
  bool is_outermost = reentry_enter(), was_known = is_outermost && handle_set_remove(&known, pool, &handle);
  int code = next_pointer(hook, pool);
  if (was_known && code) handle_set_add(&known, handle);
  if (was_known && !code) pools_remove(&handle);
  return reentry_finish(hook, OUTCOME_PASSED, code);
}

/* A pool that the program neither created nor set is the default pool. */
int pools_of_device(enum hook hook, hipmm_hip_mempool_t *pool, int device)
{
  struct handle handle;
  bool is_outermost = init_enter();
  int code = ((int (*)(hipmm_hip_mempool_t *, int))next_function_of(hook))(pool, device);
  bool is_own = hook == HOOK_hipDeviceGetDefaultMemPool || hook == HOOK_cudaDeviceGetDefaultMemPool;
  if (!code && is_outermost && pool && pools_has_account(device) && !handle_set_find(&known, *pool, &handle)) {
    pthread_mutex_lock(&lock);
    is_own |= !current[device].is_set;
    pthread_mutex_unlock(&lock);
    if (is_own)
      handle_set_add(&known, (struct handle){.handle = *pool, .device = device, .account = &defaults[device]});
  }
  reentry_leave();
  return code;
}
