/* SPDX-License-Identifier: MIT */
/* info.h: what the files of `hipmm info` share. */
#ifndef HIPMM_TOOLS_COMMAND_INFO_INFO_H
#define HIPMM_TOOLS_COMMAND_INFO_INFO_H

#include "../cmd.h"

/* ---- probe.c --------------------------------------------------------------------------------------------------- */

/* What a process finds that uses the runtime. A child process asks, since a process can use one runtime only:
 * "reason" (null: it can be used), "library", "version", "driver_version" and "devices". `source`: the graph, whose options
 * for the runtime apply; NULL: none. A runtime that takes longer than `timeout_s` cannot be used. A new object; NULL when
 * there is no memory. `runtime` NULL: what Python says of its PyTorch: "version", "allocator" and "detail"; only "reason" where
 * there is none. */
json_t *info_probe(const struct source *source, const char *runtime, unsigned timeout_s);

/* ---- print.c --------------------------------------------------------------------------------------------------- */

/* Prints what info.c found, for people. */
void info_print(const json_t *info);

#endif
