/* SPDX-License-Identifier: MIT */
/* schema.h: graph files and option tables as JSON Schema (draft 2020-12), for `hipmm schema`. */
#ifndef HIPMM_TOOLS_COMMAND_SCHEMA_SCHEMA_H
#define HIPMM_TOOLS_COMMAND_SCHEMA_SCHEMA_H

#include "../../../core/graph/graph.h"
#include <hipmm/plugin.h>
#include <jansson.h>

/* The schema of a graph file, from the option tables of all plugins found on `path`. A new reference. */
json_t *graph_schema(const struct plugin_path *path);

/* Valid values of an option, as an array; at least one, if the option's row tells any. A new reference. */
json_t *option_examples(const struct hipmm_option *row);

/* The schema of one option. A new reference. */
json_t *option_schema(const struct hipmm_option *row);

#endif
