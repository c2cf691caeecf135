/* SPDX-License-Identifier: MIT */
/* hip_table.h: the table of HIP functions; hip.c's business, others see it through hip_table(). */
#ifndef HIPMM_CORE_RUNTIME_HIP_TABLE_H
#define HIPMM_CORE_RUNTIME_HIP_TABLE_H

#include <hipmm/plugin.h>

/* Filled by find; constant once a runtime is in use. */
extern struct hipmm_hip hip_table_functions;

/* Takes every function from the library; the name of the first that hipmm needs and that is not there, or NULL. */
const char *hip_table_find(void *library);

/* Asks the runtime for its release, which decides on structs, and returns HIP's code; and what it said. */
int hip_table_know_version(void);
int hip_table_version(void);

#endif
