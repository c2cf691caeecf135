/* SPDX-License-Identifier: MIT */
/* peers.c: see peers.h. A call goes to the runtime unless hipmm itself has enabled the access; then nothing is to be done
 * but to note what the program has asked for. */
#include "peers.h"

#include "../core/runtime/peer_access.h"
#include "devices.h"
#include "failure.h"
#include "init.h"
#include "next_symbol.h"
#include "reentry.h"

#include <stdatomic.h>

/* What the program has enabled: a bit for each peer, by device. */
static atomic_uint_fast64_t enabled[DEVICES_MOST];

static uint64_t peers_bit_of(int peer)
{
  return peer >= 0 && peer < DEVICES_MOST ? UINT64_C(1) << peer : 0;
}

static bool peers_note(int device, int peer)
{
  return atomic_fetch_or(&enabled[device], peers_bit_of(peer)) & peers_bit_of(peer);
}

static bool peers_strike(int device, int peer)
{
  return atomic_fetch_and(&enabled[device], ~peers_bit_of(peer)) & peers_bit_of(peer);
}

/* The second call of the program is the runtime's to refuse, which knows no other answer. */
static int peers_enable_one(enum hook hook, int device, int peer, unsigned flags)
{
  bool is_free = !flags && peer_access_is_recorded(device, peer) && !peers_note(device, peer);
  if (is_free) return HIPMM_HIP_SUCCESS;
  int code = next_number_flags(hook, peer, flags);
  if (!code) peers_note(device, peer);
  return code;
}

static int peers_disable_one(enum hook hook, int device, int peer)
{
  bool was_enabled = peers_strike(device, peer);
  if (!peer_access_is_recorded(device, peer)) return next_number(hook, peer);
  return was_enabled ? HIPMM_HIP_SUCCESS : failure_keep(hook_family(hook), HIPMM_HIP_ERROR_PEER_ACCESS_NOT_ENABLED);
}

/* The device whose state it is; -1 if the call is none of the program's. */
static int peers_enter(enum hook hook)
{
  bool is_outermost = init_enter();
  int device = is_outermost && !init_is_forked() ? next_current_device(hook_family(hook)) : -1;
  return device < DEVICES_MOST ? device : -1;
}

int peers_enable(enum hook hook, int peer, unsigned flags)
{
  int device = peers_enter(hook);
  int code = device < 0 ? next_number_flags(hook, peer, flags) : peers_enable_one(hook, device, peer, flags);
  reentry_leave();
  return code;
}

int peers_disable(enum hook hook, int peer)
{
  int device = peers_enter(hook);
  int code = device < 0 ? next_number(hook, peer) : peers_disable_one(hook, device, peer);
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
      peers_strike(other, device);
    else if (peers & peers_bit_of(other) && !peer_access_is_recorded(device, other))
      next_number(hook, other);
  }
  if (is_real) peer_access_forget(device);
}
