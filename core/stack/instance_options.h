/* SPDX-License-Identifier: MIT */
/* instance_options.h: the options that a live resource was created with, and those that were set since. */
#ifndef HIPMM_CORE_STACK_INSTANCE_OPTIONS_H
#define HIPMM_CORE_STACK_INSTANCE_OPTIONS_H

#include "../base/key_tree.h"
#include "../option/option.h"
#include "instance.h"

/* Options that are or were current. They live as long as their resource: its plugin, and ops under way, may still use
 * them. */
struct instance_options {
  json_t *object; /* as a user would write it; strings of `options` point into it */
  void *options;  /* the plugin's option struct */
  char *text;     /* `object` in canonical form: equal for equal objects */
  struct key_tree_text by_text;
  struct instance_options *older; /* the set added before this one */
};

/* Options from a copy of `object`, for an instance that knows its upstreams. NULL after the errors, at `path` and below,
 * were reported. */
struct instance_options *instance_options_new(struct instance *instance, const json_t *object, const char *path,
                                              struct diagnostics *report);

/* The current options with one option changed: `text` as of option_set_text(), NULL for the default. `is_known_out`: the
 * instance has this set already, perhaps as the current one. Otherwise the caller adds or frees it. */
bool instance_options_changed(struct instance *instance, const struct hipmm_option *row, const char *text,
                              struct diagnostics *report, struct instance_options **set_out, bool *is_known_out);

/* Makes the resources that a new set names dependencies of the instance, as far as they are not. On failure, and after a
 * failure of what comes next, the caller takes those away again (dependencies_truncate()). */
enum hipmm_status instance_options_link(struct instance *instance, const struct instance_options *set);

/* Adds a set, which the instance then owns. The caller serialises. */
void instance_options_add(struct instance *instance, struct instance_options *set);

/* Frees a set that was not added. */
void instance_options_free(const struct hipmm_plugin *plugin, struct instance_options *set);

/* Forgets the objects that a program gave to a resource made in code, which these options name. */
void instance_options_forget_objects(const struct hipmm_plugin *plugin, const json_t *object);

/* Frees all sets of the instance, after forgetting such objects. If the stack was never built, its creator forgets them: it
 * may build the stack again. */
void instance_options_free_all(struct instance *instance);

#endif
