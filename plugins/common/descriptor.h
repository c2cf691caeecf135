/* SPDX-License-Identifier: MIT */
/* descriptor.h: the parts of a descriptor (struct hipmm_plugin) that are the same in many plugins. */
#ifndef HIPMM_PLUGINS_COMMON_DESCRIPTOR_H
#define HIPMM_PLUGINS_COMMON_DESCRIPTOR_H

#include <hipmm/plugin.h>

#define PLUGIN_ADAPTOR .role = HIPMM_ROLE_ADAPTOR, .min_upstreams = 1, .max_upstreams = 1

/* Each takes the name of the table, which is an array; `type` is the struct that the offsets of the options are of. */
#define PLUGIN_OPTIONS(table, type) \
  .options = table, .n_options = sizeof table / sizeof *table, .options_bytes = sizeof(type)
#define PLUGIN_VALUES(table)  .values = table, .n_values = sizeof table / sizeof *table
#define PLUGIN_ACTIONS(table) .actions = table, .n_actions = sizeof table / sizeof *table

#endif
