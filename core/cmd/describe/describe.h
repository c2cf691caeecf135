/* SPDX-License-Identifier: MIT */
/* describe.h: a plugin's descriptor as a page for people, as JSON, and as part of a manual page. */
#ifndef HIPMM_CORE_CMD_DESCRIBE_DESCRIBE_H
#define HIPMM_CORE_CMD_DESCRIBE_DESCRIBE_H

#include "../../plugin/plugin.h"
#include <jansson.h>

enum { DESCRIBE_CELL_BYTES = 160 };

/* What an option may be, beyond its type: "1 to 64", "at least initial_size, or unlimited"; "" for anything. */
void describe_allowed(const struct hipmm_option *row, char *cell);

/* "1 upstream", "2 or more upstreams", without a newline. */
void describe_print_upstreams(const struct hipmm_plugin *descriptor);

void describe_print_plugin(const struct plugin *plugin);

/* A new reference. */
json_t *describe_json_plugin(const struct plugin *plugin);

/* A subsection in the man macros, in ASCII. */
void describe_man_plugin(const struct plugin *plugin);

#endif
