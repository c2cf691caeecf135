/* SPDX-License-Identifier: MIT */
/* instance_options.h: the options that a live resource was created with, and those set since. */
#ifndef HIPMM_CORE_STACK_INSTANCE_OPTIONS_H
#define HIPMM_CORE_STACK_INSTANCE_OPTIONS_H

#include "../option/option.h"
#include "instance.h"

/* Options in force at some time. All that were ever in force live as long as their resource: its plugin, and ops under
 * way, may still look into them. */
struct instance_options {
  json_t *object;                 /* as a user would write it; strings of `options` point into it */
  void *options;                  /* the plugin's option struct */
  char *text;                     /* `object` in one way of writing it: equal for equal objects */
  struct instance_options *older; /* of the instance, in the order they were made */
};

/* Options from `object`, of which a copy is kept, for an instance that knows its upstreams. False once mistakes have
 * been reported, at `path` and below. */
bool instance_options_new(struct instance *instance, const json_t *object, const char *path, struct diagnostics *report,
                          struct instance_options **set_out);

/* The options in force with one changed: `text` as of option_set_text, NULL for its default. `is_known_out`: such a set
 * is kept already, maybe in force. Otherwise it is new, and to be kept or freed. */
bool instance_options_changed(struct instance *instance, const struct hipmm_option *row, const char *text,
                              struct diagnostics *report, struct instance_options **set_out, bool *is_known_out);

/* Keeps a set until the instance is destroyed. The caller serialises. */
void instance_options_add(struct instance *instance, struct instance_options *set);

/* Frees a set that is not kept. */
void instance_options_free(const struct hipmm_plugin *plugin, struct instance_options *set);

/* Frees all sets that the instance keeps. */
void instance_options_free_all(struct instance *instance);

#endif
