/* SPDX-License-Identifier: MIT */
/* api.h: what initialisation shares with the hipmm command and the preload object. */
#ifndef HIPMM_CORE_API_H
#define HIPMM_CORE_API_H

/* The resources that are looked up by name, for managed and for pinned memory, in this order; ended by NULL. A graph may
 * have them although no device uses them. */
extern const char *const api_named_resources[];

#endif
