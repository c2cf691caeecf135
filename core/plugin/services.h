/* SPDX-License-Identifier: MIT */
/* services.h: the services that every plugin gets, runtime or resource. */
#ifndef HIPMM_CORE_PLUGIN_SERVICES_H
#define HIPMM_CORE_PLUGIN_SERVICES_H

#include <hipmm/plugin.h>
#include <stdbool.h>

/* A table without device, HIP and block map: fail, refuse, log and host memory only. `name` must outlive the table. */
struct hipmm_services services_plain(const char *name);

/* While it is set, fail() appends the thread's record to its message, as the reason: for `create`, at whose start there is
 * no record. Returns what it was. */
bool services_keep_reason(bool keeps);

#endif
