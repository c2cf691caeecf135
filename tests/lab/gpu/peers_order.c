/* SPDX-License-Identifier: MIT */
/* peers_order.c: whether a copy on one device's default stream waits for the default stream of the device whose memory
 * it reads. That stream is delayed by a kernel, and then writes to the memory. */
#include "peers.h"

#ifdef PEERS_HIP

void peers_try_order(const char *state, const struct peers_blocks *blocks[DEVICES])
{
  (void)state, (void)blocks;
}

#else

#include <string.h>

enum how { PLAIN, ASYNC, TO_HOST, PEER, HOWS };
static const char *const how_names[HOWS] = {"Memcpy", "MemcpyAsync", "Memcpy to the host", "MemcpyPeer"};

static unsigned char old_bytes[LARGE], new_bytes[LARGE], found[LARGE];

static cudaError_t copy(enum how how, int owner, void *source, int current, void *target)
{
  switch (how) {
  case PLAIN: return cudaMemcpy(target, source, LARGE, cudaMemcpyDeviceToDevice);
  case ASYNC: return cudaMemcpyAsync(target, source, LARGE, cudaMemcpyDeviceToDevice, NULL);
  case TO_HOST: return cudaMemcpy(found, source, LARGE, cudaMemcpyDeviceToHost);
  default: return cudaMemcpyPeer(target, current, source, owner, LARGE);
  }
}

/* Copies from source[1] of the owner, which target[1] of the owner is being copied to. */
static const char *try_one(enum how how, int owner, int current, const struct peers_blocks *blocks[DEVICES])
{
  static unsigned seed;
  void *source = blocks[owner]->source[1], *input = blocks[owner]->target[1];
  void *target = owner == current ? blocks[1 - owner]->target[1] : blocks[current]->target[1];
  int target_device = owner == current ? 1 - owner : current;
  peers_pattern(old_bytes, LARGE, ++seed);
  peers_pattern(new_bytes, LARGE, ++seed);
  memset(found, 0, LARGE);
  peers_write(owner, source, old_bytes, LARGE);
  peers_write(owner, input, new_bytes, LARGE);
  peers_write(target_device, target, found, LARGE);
  PREPARE(cudaSetDevice(owner));
  peers_delay(owner);
  PREPARE(cudaMemcpyAsync(source, input, LARGE, cudaMemcpyDeviceToDevice, NULL));
  PREPARE(cudaSetDevice(current));
  const char *wrong = peers_error(copy(how, owner, source, target_device, target));
  peers_wait();
  if (wrong) return wrong;
  if (how != TO_HOST) peers_read(target_device, found, target, LARGE);
  if (!memcmp(found, new_bytes, LARGE)) return NULL;
  return memcmp(found, old_bytes, LARGE) ? "part of the data is old" : "all of the data is old";
}

void peers_try_order(const char *state, const struct peers_blocks *blocks[DEVICES])
{
  for (int owner = 0; owner < DEVICES; owner++)
    for (int current = 0; current < DEVICES; current++)
      for (int how = 0; how < HOWS; how++) {
        struct peers_tally tally = {0};
        const char *order = owner == current ? "order on one device"
                            : how == PEER    ? "order of MemcpyPeer"
                                             : "order between devices";
        peers_count(&tally, try_one((enum how)how, owner, current, blocks), "%s", how_names[how]);
        peers_tell(&tally, "%s: %s: %s from device %d, device %d current", order, state, how_names[how], owner,
                   current);
      }
}

#endif
