/* SPDX-License-Identifier: MIT */
/* plugin.c: `hipmm plugin`: what authors of plugins need. new.c begins a plugin, test.c tests one. */
#include "plugin.h"

#include "../../base/text.h"
#include <string.h>

static int plugin_refuse_action(const char *action)
{
  static const char *const actions[] = {"new", "test"};
  char hint[TEXT_HINT_BYTES];
  if (!action)
    say("plugin: write `hipmm plugin new NAME` or `hipmm plugin test FILE.so`");
  else
    say("plugin: unknown action \"%s\"%s", action, text_hint(text_nearest(action, actions, 2), hint, sizeof hint));
  return CMD_USAGE;
}

static int plugin_run(int argc, char **argv)
{
  struct plugin_words words = {0};
  int status;
  const struct argument rows[] = {
      {"role", "ROLE", "new: adaptor (the default), which stands on another resource, or source", NULL, &words.role},
      {"over", "TYPE", "test: the type of the resource below the plugin; device by default", NULL, &words.over},
      {"options", "JSON",
       "test: the options of the resource, as an object in a graph; those that must be given have a "
       "value by themselves",
       NULL, &words.options},
      {"only", "CHECK", "test: run this check alone", NULL, &words.only},
      {"timeout", "TIME", "test: the most seconds that a check may take; 60 by default", NULL, &words.timeout},
      {"json", NULL, "test: print one JSON object", &words.json, NULL},
  };
  struct arguments arguments = {&plugin_command, rows, sizeof rows / sizeof *rows, 0, 2, NULL, 0};
  if (!arguments_read(&arguments, argc, argv, &status)) return status;
  const char *action = arguments_operand(&arguments, 0);
  if (action && !strcmp(action, "new")) return plugin_new(&arguments, &words);
  if (action && !strcmp(action, "test")) return plugin_test(&arguments, &words);
  return plugin_refuse_action(action);
}

const struct command plugin_command = {
    "plugin", "begin a plugin of your own, or test one", "new NAME | test FILE.so",
    "new: writes a folder NAME with a plugin that works: its source, a Makefile, a test and a README.\n"
    "\n"
    "test: runs the conformance kit on a plugin, on the software device, which needs no GPU. It prints one line for "
    "each "
    "check: the rule, and for a check that fails what came instead and how to mend it. Each check runs in a process of "
    "its own, so that a crash or a hang is a finding too. The plugin stands on a resource of the type that --over "
    "names, "
    "and that on `device`.\n"
    "\n"
    "Exit status 1 if a check failed.",
    plugin_run};
