/* SPDX-License-Identifier: MIT */
/* instance_services.h: what the core does for resources. */
#ifndef HIPMM_CORE_STACK_INSTANCE_SERVICES_H
#define HIPMM_CORE_STACK_INSTANCE_SERVICES_H

#include "stack.h"

/* Fills the instance's table of services; its node and stack are known, and the runtime is open. */
void instance_services_fill(struct instance *instance);

/* Whether the program orders its copies between devices itself: for instances that the calling thread makes until the
 * next call. At first it does not. */
void instance_services_set_order(bool copies_are_ordered);

#endif
