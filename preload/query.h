/* SPDX-License-Identifier: MIT */
/* query.h: questions about memory, answered for what hipmm serves as for what the runtime gave. */
#ifndef HIPMM_PRELOAD_QUERY_H
#define HIPMM_PRELOAD_QUERY_H

#include "hooks.h"
#include <stddef.h>

int query_memory_info(enum hook hook, size_t *free_bytes, size_t *total_bytes);
int query_address_range(enum hook hook, void **base, size_t *bytes, void *ptr);
int query_size(enum hook hook, void *ptr, size_t *bytes);
int query_attribute(enum hook hook, void *data, int attribute, void *ptr);
int answer_host_flags(enum hook hook, unsigned *flags, void *ptr);

/* A handle of memory for other processes, which always stands for a whole allocation of the runtime: refused for a
 * block that is only a part of one. `handle` is whatever the real function takes first. */
int query_share(enum hook hook, void *handle, void *ptr);

#endif
