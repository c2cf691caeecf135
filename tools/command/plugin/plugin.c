/* SPDX-License-Identifier: MIT */
/* plugin.c: `hipmm plugin`: what authors of plugins need. new.c begins a plugin, test.c tests one. */
#include "plugin.h"

#include "../../../core/base/text.h"
#include <string.h>

enum { PLUGIN_TIMEOUT_S = 60, PLUGIN_MOST_TIMEOUT_S = 3600, PLUGIN_MOST_SECONDS = 86400 };

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
  struct plugin_words words = {.timeout_s = PLUGIN_TIMEOUT_S, .seconds = 1};
  int status;
  const struct argument rows[] = {
      {"role", "ROLE",
       "new: adaptor (the default), which depends on another resource and forwards; sub-allocator, which divides "
       "blocks of another resource; or source",
       .value = &words.role},
      {"over", "TYPE", "test: the type of the resource below the plugin; device by default", .value = &words.over},
      {"options", "JSON",
       "test: the options of the resource, as an object in a graph; required options get a value if you give none",
       .value = &words.options},
      {"only", "CHECK", "test: run only this check", .value = &words.only},
      {"seconds", "TIME",
       "test: how many seconds each check with random calls or threads goes on; 1 by default, 0 for the shortest run",
       .number = &words.seconds, .most = PLUGIN_MOST_SECONDS},
      {"timeout", "TIME", "test: the most seconds that a check may take, besides --seconds; 60 by default",
       .number = &words.timeout_s, .least = 1, .most = PLUGIN_MOST_TIMEOUT_S},
      {"json", NULL, "test: print one JSON object", .flag = &words.json},
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
    "each check: the rule, and if the check fails, what happened instead and how to fix it. Each check runs in a "
    "process of its own, so that a crash or a hang is a finding too. Checks with random calls or threads go on for "
    "--seconds each; more find what is rare. The plugin depends on a resource of the type "
    "that --over names, and that resource depends on `device`.\n"
    "\n"
    "Exit status 1 if a check failed.",
    plugin_run};
