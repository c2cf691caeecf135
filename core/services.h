/* SPDX-License-Identifier: MIT */
/* services.h: what the core does for plugins: fills the services table of an instance. */
#ifndef HIPMM_CORE_SERVICES_H
#define HIPMM_CORE_SERVICES_H

#include <hipmm/plugin.h>

/* For a resource. The table must be the `services` member of a struct instance (stack.h). */
void services_fill(struct hipmm_services *services, const char *name, int device, const struct hipmm_hip *hip);

/* For a runtime, which has no device, no HIP below it and no ledger: fail, refuse, log and host memory only. */
struct hipmm_services services_of_runtime(const char *name);

#endif
