/* SPDX-License-Identifier: MIT */
/* pool_attributes.c: what the program asks of a pool of the driver besides memory: its attributes, to trim it, and access
 * to it. The runtime is called first; hipmm then does its part for the blocks that it gave out in the pool's place. */
#include "pools.h"

#include "../core/runtime/hip.h"
#include "devices.h"
#include "failure.h"
#include "init.h"
#include "next_symbol.h"
#include "streams.h"

#include <string.h>

/* ---- Attributes ---- */

/* The same numbers in HIP and CUDA. */
enum { REUSE_FIRST = 1, REUSE_LAST = 3, RESERVED_CURRENT = 5, RESERVED_HIGH, USED_CURRENT, USED_HIGH };

typedef int attribute_function(hipmm_hip_mempool_t pool, int attribute, void *value);

static atomic_int_fast64_t *pool_attributes_find_counter(struct pool_account *account, int attribute)
{
  switch (attribute) {
  case RESERVED_HIGH: return &account->reserved_peak_bytes;
  case USED_HIGH: return &account->used_peak_bytes;
  default: return &account->bytes;
  }
}

static uint64_t pool_attributes_bytes_of(struct pool_account *account, int device, int attribute)
{
  const struct served_device *served = devices_if_served(device);
  int64_t reserved = atomic_load(&account->bytes) + (served ? devices_idle_bytes(served) : 0);
  usage_raise(&account->reserved_peak_bytes, reserved);
  return (uint64_t)(attribute == RESERVED_CURRENT ? reserved
                                                  : atomic_load(pool_attributes_find_counter(account, attribute)));
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
    memcpy(&bytes, value, sizeof bytes);
    bytes += pool_attributes_bytes_of(account, device, attribute);
    memcpy(value, &bytes, sizeof bytes);
    pools_release(account);
  }
  reentry_leave();
  return code;
}

/* hipmm reuses memory in all of the ways that these attributes name. */
static void pool_attributes_set_reuse(struct pool_account *account, int attribute, const void *value)
{
  int is_allowed;
  memcpy(&is_allowed, value, sizeof is_allowed);
  if (is_allowed)
    atomic_fetch_and(&account->forbidden, ~(1U << attribute));
  else
    atomic_fetch_or(&account->forbidden, 1U << attribute);
}

/* A peak can only be set to 0, which makes it what is in use now. */
int pools_set_attribute(enum hook hook, hipmm_hip_mempool_t pool, int attribute, void *value)
{
  int device;
  bool is_outermost = init_enter();
  int code = ((attribute_function *)next_function_of(hook))(pool, attribute, value);
  bool is_peak = attribute == RESERVED_HIGH || attribute == USED_HIGH;
  bool is_reuse = attribute >= REUSE_FIRST && attribute <= REUSE_LAST;
  struct pool_account *account = !code && is_outermost && (is_peak || is_reuse) ? pools_find_any(pool, &device) : NULL;
  if (account && is_reuse) pool_attributes_set_reuse(account, attribute, value);
  if (account && is_peak) atomic_store(pool_attributes_find_counter(account, attribute), atomic_load(&account->bytes));
  pools_release(account);
  reentry_leave();
  return code;
}

/* ---- Trimming ---- */

/* HIP keeps so many bytes in the pool. The stack holds the program's other blocks too, which are kept besides. */
static int pool_attributes_trim_stack(enum hook hook, const struct pool_account *account,
                                      const struct served_device *served, size_t keep)
{
  int64_t others = atomic_load(&served->usage[KIND_DEVICE].bytes) - atomic_load(&account->bytes);
  size_t kept = others > 0 && keep < SIZE_MAX - (size_t)others ? keep + (size_t)others : keep;
  if (!streams_are_idle(served->device)) return 0;
  return hipmm_resource_trim(served->kinds[KIND_DEVICE].resource, kept) ? failure_of_hipmm(hook, 0) : 0;
}

int pools_trim(enum hook hook, hipmm_hip_mempool_t pool, size_t keep_bytes)
{
  int device = 0;
  bool is_outermost = init_enter();
  int code = ((int (*)(hipmm_hip_mempool_t, size_t))next_function_of(hook))(pool, keep_bytes);
  bool is_ours = !code && is_outermost && init_was_ready() && !init_is_forked();
  struct pool_account *account = is_ours ? pools_find_any(pool, &device) : NULL;
  const struct served_device *served = account ? devices_if_served(device) : NULL;
  if (served) code = pool_attributes_trim_stack(hook, account, served, keep_bytes);
  pools_release(account);
  reentry_leave();
  return code;
}

/* ---- Access ---- */

/* hipMemAccessDesc and cudaMemAccessDesc, in every release. */
struct access {
  int location_type, location;
  int flags;
};

enum { LOCATION_DEVICE = 1 };

/* Every device can use mapped memory; other memory needs peer access between the two devices. */
static void pool_attributes_enable_access(int device, int owner)
{
  const struct hipmm_hip *hip = hip_table();
  int previous = hip_enter_device(device);
  if (hip->DeviceEnablePeerAccess && hip->DeviceEnablePeerAccess(owner, 0)) hip->GetLastError(); /* enabled before */
  hip_leave_device(device, previous);
}

int pools_set_access(enum hook hook, hipmm_hip_mempool_t pool, const void *given, size_t count)
{
  int owner = 0;
  const struct access *access = given;
  bool is_outermost = init_enter();
  int code = ((int (*)(hipmm_hip_mempool_t, const void *, size_t))next_function_of(hook))(pool, given, count);
  bool is_ours = !code && is_outermost && init_ready(hook_family(hook));
  struct pool_account *account = is_ours ? pools_find_any(pool, &owner) : NULL;
  for (size_t i = 0; account && i < count; i++)
    if (access[i].location_type == LOCATION_DEVICE && access[i].location != owner && access[i].flags)
      pool_attributes_enable_access(access[i].location, owner);
  pools_release(account);
  reentry_leave();
  return code;
}
