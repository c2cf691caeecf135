/* SPDX-License-Identifier: MIT */
/* access.c: which devices can use the memory of others; see operations.h. A call that enables or disables peer access goes
 * to the runtime unless hipmm itself has enabled the access; then only the program's own state changes. */
#include "operations.h"

#include "../../core/runtime/hip.h"
#include "../../core/runtime/peer_access.h"
#include "contexts.h"
#include "devices.h"
#include "failure.h"
#include "init.h"
#include "next_symbol.h"
#include "pools.h"

#include <stdatomic.h>

/* ---- Access to a peer ---- */

/* The access that the program has enabled: by device, a bit for each peer. */
static atomic_uint_fast64_t enabled[DEVICES_MOST];

static uint64_t access_bit(int peer)
{
  return peer >= 0 && peer < DEVICES_MOST ? UINT64_C(1) << peer : 0;
}

static bool access_add(int device, int peer)
{
  return atomic_fetch_or(&enabled[device], access_bit(peer)) & access_bit(peer);
}

static bool access_remove(int device, int peer)
{
  return atomic_fetch_and(&enabled[device], ~access_bit(peer)) & access_bit(peer);
}

/* The current device, whose state changes; -1 if the call is only passed on. */
static int access_enter(enum hook hook)
{
  bool is_outermost = init_enter();
  int device = is_outermost && !init_is_forked() ? contexts_current_device(hook_family(hook)) : -1;
  return device < DEVICES_MOST ? device : -1;
}

/* A peer: a device, and for the driver its context. Access of a context that is not the device's primary one is passed
 * on. */
struct peer {
  int device;
  void *context;
};

static int access_pass_on(enum hook hook, struct peer peer, unsigned flags, bool is_enabling)
{
  next_function next = next_function_of(hook);
  if (hook_family(hook) != FAMILY_DRIVER)
    return is_enabling ? next_int_flags(hook, peer.device, flags) : next_int(hook, peer.device);
  return is_enabling ? ((int (*)(void *, unsigned))next)(peer.context, flags) : next_pointer(hook, peer.context);
}

/* Where hipmm has enabled the access, the runtime would refuse even the program's first call. */
static int access_enable(enum hook hook, struct peer peer, unsigned flags)
{
  int device = access_enter(hook), code = HIPMM_HIP_SUCCESS;
  bool is_known = device >= 0 && peer.device >= 0;
  bool is_done = is_known && !flags && peer_access_is_recorded(device, peer.device) && !access_add(device, peer.device);
  if (!is_done) code = access_pass_on(hook, peer, flags, true);
  if (!is_done && !code && is_known) access_add(device, peer.device);
  reentry_leave();
  return code;
}

static int access_disable(enum hook hook, struct peer peer)
{
  int device = access_enter(hook), code = HIPMM_HIP_SUCCESS;
  bool is_known = device >= 0 && peer.device >= 0, was_enabled = is_known && access_remove(device, peer.device);
  if (!is_known || !peer_access_is_recorded(device, peer.device))
    code = access_pass_on(hook, peer, 0, false);
  else if (!was_enabled)
    code = failure_set(hook_family(hook), HIPMM_HIP_ERROR_PEER_ACCESS_NOT_ENABLED);
  reentry_leave();
  return code;
}

int access_enable_peer(enum hook hook, int peer, unsigned flags)
{
  return access_enable(hook, (struct peer){.device = peer}, flags);
}

int access_disable_peer(enum hook hook, int peer)
{
  return access_disable(hook, (struct peer){.device = peer});
}

int access_enable_context(enum hook hook, void *peer, unsigned flags)
{
  return access_enable(hook, (struct peer){contexts_device_of(peer), peer}, flags);
}

int access_disable_context(enum hook hook, void *peer)
{
  return access_disable(hook, (struct peer){contexts_device_of(peer), peer});
}

void access_reset(enum family family, int device, bool is_real)
{
  static const enum hook hooks[] = {HOOK_hipDeviceDisablePeerAccess, HOOK_cudaDeviceDisablePeerAccess,
                                    HOOK_cuCtxDisablePeerAccess};
  if (device < 0 || device >= DEVICES_MOST) return;
  uint64_t peers = atomic_exchange(&enabled[device], 0);
  for (int other = 0; other < DEVICES_MOST; other++) {
    if (is_real)
      access_remove(other, device);
    else if (peers & access_bit(other) && !peer_access_is_recorded(device, other))
      access_pass_on(hooks[family], (struct peer){other, family == FAMILY_DRIVER ? contexts_primary(other) : NULL}, 0,
                     false);
  }
  if (is_real) peer_access_forget(device);
}

/* ---- Access to pools ---- */

/* hipMemAccessDesc and cudaMemAccessDesc, in every release. */
struct access {
  int location_type, location;
  int flags;
};

enum { LOCATION_DEVICE = 1 };

/* Every device can use mapped memory; other memory needs peer access between the two devices. */
static void access_grant(int device, int owner)
{
  const struct hipmm_hip *hip = hip_table();
  int previous = hip_enter_device(device);
  if (hip->DeviceEnablePeerAccess && hip->DeviceEnablePeerAccess(owner, 0)) hip->GetLastError(); /* enabled before */
  hip_leave_device(device, previous);
}

int access_set(enum hook hook, hipmm_hip_mempool_t pool, const void *given, size_t count)
{
  int owner = 0;
  const struct access *access = given;
  bool is_outermost = init_enter();
  int code = ((int (*)(hipmm_hip_mempool_t, const void *, size_t))next_function_of(hook))(pool, given, count);
  bool is_ours = !code && is_outermost && init_ready(hook_family(hook));
  struct pool_account *account = is_ours ? pools_find_any(pool, &owner) : NULL;
  for (size_t i = 0; account && i < count; i++)
    if (access[i].location_type == LOCATION_DEVICE && access[i].location != owner && access[i].flags)
      access_grant(access[i].location, owner);
  pools_release(account);
  reentry_leave();
  return code;
}
