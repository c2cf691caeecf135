/* SPDX-License-Identifier: MIT */
/* services.h: what the core does for every plugin, runtime or resource. */
#ifndef HIPMM_CORE_PLUGIN_SERVICES_H
#define HIPMM_CORE_PLUGIN_SERVICES_H

#include <hipmm/plugin.h>

/* A table for who has no device, no HIP below it and no block_map: fail, refuse, log and host memory only. */
struct hipmm_services services_plain(const char *name);

#endif
