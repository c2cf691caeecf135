/* SPDX-License-Identifier: MIT */
/* locked_ops.h: one thread at a time for a resource whose plugin says that it is not thread-safe. */
#ifndef HIPMM_CORE_STACK_LOCKED_OPS_H
#define HIPMM_CORE_STACK_LOCKED_OPS_H

#include "instance.h"

/* Makes a lock that tells the thread that has it with EDEADLK. */
void locked_ops_init_lock(pthread_mutex_t *lock);

/* Ops whose self is the instance; they call the plugin's ops under the instance's lock. A thread that has the lock is
 * refused with HIPMM_E_STATE. */
extern const struct hipmm_ops locked_ops;

#endif
