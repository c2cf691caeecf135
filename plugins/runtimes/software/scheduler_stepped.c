/* SPDX-License-Identifier: MIT */
/* scheduler_stepped.c: a scheduler without threads. No operation runs until a thread waits. Then one operation runs at a
 * time, of a stream drawn at random among those that can go on, until the wait is over. So streams run as late and as
 * mixed as HIP allows, and the same seed repeats the same order. Called by submit.c, and by queries of streams and
 * events. One thread looks after programs that wait without a call. */
#include "../../../core/base/thread.h"
#include "internal.h"

#include <time.h>

#define POLL_STEPS 3 /* a query runs fewer operations than this */

/* SplitMix64. */
uint64_t software_stepped_draw(uint64_t limit)
{
  if (software.choose) return limit > 1 ? software.choose(software.choose_arg, limit) : 0;
  uint64_t mixed = software.random += 0x9e3779b97f4a7c15U;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9U;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebU;
  return (mixed ^ (mixed >> 31)) % limit;
}

bool software_stepped_step(void)
{
  uint64_t count = 0;
  for (struct software_queue *queue = NULL; (queue = software_ready_next(queue));) count++;
  if (count == 0) return false;
  uint64_t chosen = software_stepped_draw(count);
  struct software_queue *queue = software_ready_next(NULL);
  while (chosen-- > 0) queue = software_ready_next(queue);
  software_queue_run(queue);
  return true;
}

void software_stepped_poll(void)
{
  if (software.config.scheduler != SOFTWARE_STEPPED) return;
  for (uint64_t left = software_stepped_draw(POLL_STEPS); left > 0 && software_stepped_step();) left--;
}

/* ---- A program that waits without a call ----
 *
 * It reads a flag that a host function sets. A device would get there. As long as the program makes calls of the device, the
 * order stays that of the seed. */

enum { WATCH_MS = 20, PATIENCE = 40 /* looks */ };

static void *stepped_watch_run(void *unused)
{
  const struct timespec pause = {.tv_nsec = WATCH_MS * 1000000L};
  uint64_t sequence = 0;
  unsigned quiet = 0;
  for (;;) {
    nanosleep(&pause, NULL);
    pthread_mutex_lock(&software.lock);
    bool is_quiet = software.config.scheduler == SOFTWARE_STEPPED && !software.choose && software.pending &&
                    !software.running && software.sequence == sequence;
    quiet = is_quiet ? quiet + 1 : 0;
    sequence = software.sequence;
    struct software_queue *next = quiet > PATIENCE ? software_ready_next(NULL) : NULL;
    if (next) software_queue_run(next); /* without a draw: the seed's order is that of the program's calls */
    pthread_mutex_unlock(&software.lock);
  }
  return unused;
}

void software_stepped_watch(void)
{
  static bool is_watched; /* under the lock */
  pthread_attr_t attributes;
  pthread_t thread;
  if (is_watched || software.choose || pthread_attr_init(&attributes)) return;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  is_watched = !thread_start(&thread, &attributes, stepped_watch_run, NULL);
  pthread_attr_destroy(&attributes);
}

uint64_t hipmm_software_step(uint64_t limit)
{
  uint64_t done = 0;
  pthread_mutex_lock(&software.lock);
  if (software.config.scheduler == SOFTWARE_STEPPED)
    while (done < limit && software_stepped_step()) done++;
  pthread_mutex_unlock(&software.lock);
  return done;
}

void hipmm_software_choose(uint64_t (*choose)(void *arg, uint64_t limit), void *arg)
{
  pthread_mutex_lock(&software.lock);
  software.choose = choose;
  software.choose_arg = arg;
  pthread_mutex_unlock(&software.lock);
}

uint64_t hipmm_software_pending(void)
{
  pthread_mutex_lock(&software.lock);
  uint64_t pending = software.pending;
  pthread_mutex_unlock(&software.lock);
  return pending;
}
