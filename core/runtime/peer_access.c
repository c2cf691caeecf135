/* SPDX-License-Identifier: MIT */
/* peer_access.c: a bit per pair of devices. Called by hip_table.c, and by tools/preload/access.c, which reads it. */
#include "peer_access.h"

#include <stdatomic.h>
#include <stdint.h>

enum { MOST_DEVICES = 64 };

static atomic_uint_fast64_t recorded[MOST_DEVICES]; /* a bit for each peer, by device */

static bool peer_access_is_in_range(int device)
{
  return device >= 0 && device < MOST_DEVICES;
}

void peer_access_record(int device, int peer)
{
  if (peer_access_is_in_range(device) && peer_access_is_in_range(peer))
    atomic_fetch_or(&recorded[device], UINT64_C(1) << peer);
}

bool peer_access_is_recorded(int device, int peer)
{
  return peer_access_is_in_range(device) && peer_access_is_in_range(peer) && atomic_load(&recorded[device]) >> peer & 1;
}

void peer_access_forget(int device)
{
  if (!peer_access_is_in_range(device)) return;
  atomic_store(&recorded[device], 0);
  for (int other = 0; other < MOST_DEVICES; other++) atomic_fetch_and(&recorded[other], ~(UINT64_C(1) << device));
}
