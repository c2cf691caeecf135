/* SPDX-License-Identifier: MIT */
/* hip_table.h: the table of HIP functions. Included by hip.c only; other files use hip_table(). */
#ifndef HIPMM_CORE_RUNTIME_HIP_TABLE_H
#define HIPMM_CORE_RUNTIME_HIP_TABLE_H

#include <hipmm/plugin.h>

#include <stdbool.h>

/* Filled by hip_table_find(); constant once a runtime is in use. */
extern struct hipmm_hip hip_table_functions;

/* Fills the table from the library. Returns the name of the first required function that is missing, NULL if none
 * is. */
const char *hip_table_find(void *library);

/* See hip_guard_waits(). */
void hip_table_guard_waits(bool (*function)(int device));

/* Asks the runtime for its version, which decides on the layout of structs; returns HIP's code. And that version. */
int hip_table_read_version(void);
int hip_table_version(void);

#endif
