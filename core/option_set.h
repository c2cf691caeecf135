/* SPDX-License-Identifier: MIT */
/* option_set.h: the options that a live resource was created with, and those set since. */
#ifndef HIPMM_CORE_OPTION_SET_H
#define HIPMM_CORE_OPTION_SET_H

#include "option.h"
#include "stack.h"

/* Options in force at some time. All that were ever in force live as long as their resource: its plugin, and ops under
 * way, may still look into them. */
struct option_set {
  json_t *object;           /* as a user would write it; strings of `options` point into it */
  void *options;            /* the plugin's option struct */
  struct option_set *older; /* in force before */
};

/* Options from `object`, which is kept, for an instance that knows its upstreams. False once mistakes have been reported,
 * at `path` and below. */
bool option_set_new(struct instance *instance, json_t *object, const char *path, struct report *report,
                    struct option_set **set_out);

/* Frees a set and all older ones; NULL is allowed. */
void option_set_free_all(const struct hipmm_plugin *plugin, struct option_set *set);

#endif
