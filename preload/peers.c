/* SPDX-License-Identifier: MIT */
/* peers.c: peer access that the program enables and disables; see operations.h. A call goes to the runtime unless hipmm
 * itself has enabled the access; then only the program's own state changes. */
#include "operations.h"

#include "../core/runtime/peer_access.h"
#include "devices.h"
#include "failure.h"
#include "init.h"
#include "next_symbol.h"

#include <stdatomic.h>

/* The access that the program has enabled: by device, a bit for each peer. */
static atomic_uint_fast64_t enabled[DEVICES_MOST];

static uint64_t peers_bit(int peer)
{
  return peer >= 0 && peer < DEVICES_MOST ? UINT64_C(1) << peer : 0;
}

static bool peers_add(int device, int peer)
{
  return atomic_fetch_or(&enabled[device], peers_bit(peer)) & peers_bit(peer);
}

static bool peers_remove(int device, int peer)
{
  return atomic_fetch_and(&enabled[device], ~peers_bit(peer)) & peers_bit(peer);
}

/* The runtime refuses a second call of the program, since hipmm has enabled the access there. */
static int peers_enable_one(enum hook hook, int device, int peer, unsigned flags)
{
  if (!flags && peer_access_is_noted(device, peer) && !peers_add(device, peer)) return HIPMM_HIP_SUCCESS;
  int code = next_int_flags(hook, peer, flags);
  if (!code) peers_add(device, peer);
  return code;
}

static int peers_disable_one(enum hook hook, int device, int peer)
{
  bool was_enabled = peers_remove(device, peer);
  if (!peer_access_is_noted(device, peer)) return next_int(hook, peer);
  return was_enabled ? HIPMM_HIP_SUCCESS : failure_set(hook_family(hook), HIPMM_HIP_ERROR_PEER_ACCESS_NOT_ENABLED);
}

/* The current device, whose state changes; -1 if the call is only passed on. */
static int peers_enter(enum hook hook)
{
  bool is_outermost = init_enter();
  int device = is_outermost && !init_is_forked() ? next_current_device(hook_family(hook)) : -1;
  return device < DEVICES_MOST ? device : -1;
}

int peers_enable(enum hook hook, int peer, unsigned flags)
{
  int device = peers_enter(hook);
  int code = device < 0 ? next_int_flags(hook, peer, flags) : peers_enable_one(hook, device, peer, flags);
  reentry_leave();
  return code;
}

int peers_disable(enum hook hook, int peer)
{
  int device = peers_enter(hook);
  int code = device < 0 ? next_int(hook, peer) : peers_disable_one(hook, device, peer);
  reentry_leave();
  return code;
}

void peers_reset(enum family family, int device, bool is_real)
{
  enum hook hook = family == FAMILY_HIP ? HOOK_hipDeviceDisablePeerAccess : HOOK_cudaDeviceDisablePeerAccess;
  if (device < 0 || device >= DEVICES_MOST) return;
  uint64_t peers = atomic_exchange(&enabled[device], 0);
  for (int other = 0; other < DEVICES_MOST; other++) {
    if (is_real)
      peers_remove(other, device);
    else if (peers & peers_bit(other) && !peer_access_is_noted(device, other))
      next_int(hook, other);
  }
  if (is_real) peer_access_forget(device);
}
