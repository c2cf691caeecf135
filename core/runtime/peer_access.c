/* SPDX-License-Identifier: MIT */
/* peer_access.c: see peer_access.h. Noted by hip_table_functions.c, asked by preload/peers.c. */
#include "peer_access.h"

#include <stdatomic.h>
#include <stdint.h>

enum { MOST = 64 };

static atomic_uint_fast64_t noted[MOST]; /* a bit for each peer, by device */

static bool peer_access_is_number(int device)
{
  return device >= 0 && device < MOST;
}

void peer_access_note(int device, int peer)
{
  if (peer_access_is_number(device) && peer_access_is_number(peer))
    atomic_fetch_or(&noted[device], UINT64_C(1) << peer);
}

bool peer_access_is_noted(int device, int peer)
{
  return peer_access_is_number(device) && peer_access_is_number(peer) && atomic_load(&noted[device]) >> peer & 1;
}

void peer_access_forget(int device)
{
  if (!peer_access_is_number(device)) return;
  atomic_store(&noted[device], 0);
  for (int other = 0; other < MOST; other++) atomic_fetch_and(&noted[other], ~(UINT64_C(1) << device));
}
