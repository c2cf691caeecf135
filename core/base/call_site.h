/* SPDX-License-Identifier: MIT */
/* call_site.h: who allocates, for resources that keep call stacks: which allocations are chosen, and the frames of Python.
 *
 * Python is found at run time, by the public functions of its C API. Its frames are read only by a thread that runs Python
 * now. The GIL is never taken: its owner may wait for a lock that this thread holds. No code of Python runs meanwhile: there
 * is no collection of garbage, and no object loses its last reference. So a resource may ask under its locks. */
#ifndef HIPMM_CORE_BASE_CALL_SITE_H
#define HIPMM_CORE_BASE_CALL_SITE_H

#include <hipmm/plugin.h>

#include <stdbool.h>

enum { CALL_SITE_MOST_FRAMES = 64 };

/* services->call_site. */
int64_t call_site_take(const struct hipmm_services *services, size_t bytes, uint64_t sample, char *text,
                       size_t text_bytes);

/* A graph was loaded, or a stack is built: only then it is known what resources want. Before, the frames of each call are
 * taken, since the first call builds the stack. */
void call_site_settle(bool is_built);

#endif
