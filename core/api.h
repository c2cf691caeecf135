/* SPDX-License-Identifier: MIT */
/* api.h: what initialisation shares with the hipmm command. */
#ifndef HIPMM_CORE_API_H
#define HIPMM_CORE_API_H

/* The resources that `hipmm run` looks up by name, for a program's managed and pinned memory; ended by NULL. A graph
 * may have them although no device uses them. */
extern const char *const api_named_resources[];

#endif
