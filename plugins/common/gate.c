/* SPDX-License-Identifier: MIT */
/* gate.c: membarrier(2), and the wait for an owner that is inside. */
#include "gate.h"
#include "../../core/base/cancel.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { YIELDS = 1000, NAP_NS = 50000 };

atomic_bool gates_are_light;

static void gate_prepare(void)
{
  bool light = !syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
  atomic_store(&gates_are_light, light);
}

void gates_prepare(void)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, gate_prepare);
}

void gates_fence(void)
{
  /* After registration it does not fail. */
  if (atomic_load(&gates_are_light)) syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

/* The owner may be in a driver call, which takes long. */
void gate_await(const struct gate *gate)
{
  const struct timespec nap = {.tv_nsec = NAP_NS};
  int cancel = cancel_forbid();
  for (int turns = 0; atomic_load(&gate->inside); turns++)
    if (turns < YIELDS)
      sched_yield();
    else
      nanosleep(&nap, NULL);
  cancel_allow(cancel);
}
