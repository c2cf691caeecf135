/* SPDX-License-Identifier: MIT */
/* describe.h: a plugin's descriptor as a page for people and as JSON. */
#ifndef HIPMM_CMD_DESCRIBE_H
#define HIPMM_CMD_DESCRIBE_H

#include "../plugin.h"
#include <jansson.h>

void describe_print_plugin(const struct plugin *plugin);

/* A new reference. */
json_t *describe_json_plugin(const struct plugin *plugin);

#endif
