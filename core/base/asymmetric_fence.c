/* SPDX-License-Identifier: MIT */
/* asymmetric_fence.c: membarrier(2), and the pause of a thread that waits. */
#include "asymmetric_fence.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { YIELDS = 1000, NAP_NS = 50000 };

atomic_bool asymmetric_fence_is_light;

static void asymmetric_fence_register(void)
{
  bool light = !syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
  atomic_store(&asymmetric_fence_is_light, light);
}

void asymmetric_fence_prepare(void)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, asymmetric_fence_register);
}

void asymmetric_fence_heavy(void)
{
  /* After registration it does not fail. */
  if (atomic_load(&asymmetric_fence_is_light)) syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

void asymmetric_fence_pause(unsigned turn)
{
  const struct timespec nap = {.tv_nsec = NAP_NS};
  if (turn < YIELDS)
    sched_yield();
  else
    nanosleep(&nap, NULL);
}
