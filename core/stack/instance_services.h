/* SPDX-License-Identifier: MIT */
/* instance_services.h: what the core does for resources. */
#ifndef HIPMM_CORE_STACK_INSTANCE_SERVICES_H
#define HIPMM_CORE_STACK_INSTANCE_SERVICES_H

#include "instance.h"

/* Fills the instance's table of services; its node and stack are known, and the runtime is open. */
void instance_services_fill(struct instance *instance);

#endif
