/* SPDX-License-Identifier: MIT */
/* plugin.h: what the parts of `hipmm plugin` share. */
#ifndef HIPMM_TOOLS_COMMAND_PLUGIN_PLUGIN_H
#define HIPMM_TOOLS_COMMAND_PLUGIN_PLUGIN_H

#include "../cmd.h"

/* The command line. NULL: not given. */
struct plugin_words {
  const char *over, *options, *only, *role;
  long timeout_s, seconds;
  bool json;
};

/* `hipmm plugin new` and `hipmm plugin test`; the operands begin with that word. Each returns the exit status. */
int plugin_new(const struct arguments *arguments, const struct plugin_words *words);
int plugin_test(const struct arguments *arguments, const struct plugin_words *words);

#endif
