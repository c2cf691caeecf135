/* SPDX-License-Identifier: MIT */
/* describe.h: a plugin's descriptor as a page for people, and as part of a manual page. */
#ifndef HIPMM_TOOLS_COMMAND_DESCRIBE_DESCRIBE_H
#define HIPMM_TOOLS_COMMAND_DESCRIBE_DESCRIBE_H

#include "../../../core/plugin/plugin.h"

enum { DESCRIBE_CELL_BYTES = 160 };

/* Writes the values that an option may have to `cell`, of DESCRIBE_CELL_BYTES: "1 to 64", "at least initial_size, or
 * unlimited"; "" if its type is the only limit. */
void describe_allowed(const struct hipmm_option *row, char *cell);

/* The default of an option; NULL: none. One with control characters is quoted and escaped in `cell`, of DESCRIBE_CELL_BYTES. */
const char *describe_default(const struct hipmm_option *row, char *cell);

/* Prints "1 upstream" or "2 or more upstreams", without a newline. */
void describe_print_upstreams(const struct hipmm_plugin *descriptor);

/* Prints the page. */
void describe_print_plugin(const struct plugin *plugin);

/* Prints a subsection in the man macros, in ASCII. */
void describe_man_plugin(const struct plugin *plugin);

#endif
