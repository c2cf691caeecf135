/* SPDX-License-Identifier: MIT */
/* runtime_library.h: finds and opens the shared library of a runtime, and configures it if it is one of ours. */
#ifndef HIPMM_CORE_RUNTIME_RUNTIME_LIBRARY_H
#define HIPMM_CORE_RUNTIME_RUNTIME_LIBRARY_H

#include "../graph/graph.h"

/* Whether there is anything that can be loaded for the runtime, be it good or bad: for "amd" a library of ROCm's, for
 * another name a plugin. */
bool runtime_library_exists(const struct graph *graph, const char *name);

/* `name`: "amd", a plugin with the role of a runtime ("software", "nvidia"), or a library's path. The library stays
 * open for the process's life. */
enum hipmm_status runtime_library_load(const struct graph *graph, const char *name, void **library_out);

#endif
