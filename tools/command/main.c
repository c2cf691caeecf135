/* SPDX-License-Identifier: MIT */
/* main.c: the `hipmm` command: finds the sub-command and runs it. Knows nothing of what a sub-command does. */
#include "cmd.h"

#include "../../core/base/text.h"
#include "../../core/inspect/report.h"
#include "trace/rows.h"

#include <stdlib.h>
#include <string.h>

static const struct command *const main_commands[] = {&check_command,  &show_command,       &plugins_command,
                                                      &plugin_command, &describe_command,   &schema_command,
                                                      &replay_command, &plan_command,       &tune_command,
                                                      &report_command, &top_command,        &ctl_command,
                                                      &serve_command,  &export_command,     &convert_command,
                                                      &bench_command,  &run_command,        &doctor_command,
                                                      &info_command,   &completion_command, NULL};

enum { MAIN_COUNT = sizeof main_commands / sizeof *main_commands - 1 };

static const char *const main_options[] = {"--help", "--version", "--quiet"};

static int main_help(void)
{
  printf("Usage: hipmm COMMAND [OPTION]… [FILE]\n\n"
         "Memory resources for CUDA and HIP programs, composed in hipmm.json.\n\n");
  for (size_t i = 0; i < MAIN_COUNT; i++)
    printf("  %s%-10s%s %s\n", style(STYLE_NAME), main_commands[i]->name, style(STYLE_OFF), main_commands[i]->summary);
  printf("\n`hipmm COMMAND --help` explains one; `hipmm --version` (-V) prints the version.\n"
         "--quiet (-q), before or after COMMAND: no progress, notes or warnings.\n"
         "Exit status: 0 success, 1 a check or an operation failed, 2 wrong usage.\n");
  return output_finish(CMD_GOOD);
}

static int main_version(void)
{
  printf("hipmm %s\n", hipmm_version());
  return output_finish(CMD_GOOD);
}

static const struct command *main_find(const char *name)
{
  for (size_t i = 0; i < MAIN_COUNT; i++)
    if (strcmp(main_commands[i]->name, name) == 0) return main_commands[i];
  return NULL;
}

static int main_unknown(const char *kind, const char *word, const char *near)
{
  if (near)
    say("unknown %s \"%s\"; did you mean \"%s\"?", kind, word, near);
  else
    say("unknown %s \"%s\"; `hipmm --help` lists them", kind, word);
  return CMD_USAGE;
}

static int main_unknown_option(const char *word)
{
  return main_unknown("option", word, text_nearest(word, main_options, sizeof main_options / sizeof *main_options));
}

static int main_unknown_command(const char *word)
{
  const char *names[MAIN_COUNT];
  for (size_t i = 0; i < MAIN_COUNT; i++) names[i] = main_commands[i]->name;
  return main_unknown("command", word, text_nearest(word, names, MAIN_COUNT));
}

/* `hipmm help show` is `hipmm show --help`. */
static int main_help_on(const char *name)
{
  const struct command *command = main_find(name);
  char *arguments[] = {(char *)name, "--help", NULL};
  return command ? command->run(2, arguments) : main_unknown_command(name);
}

int main(int argc, char **argv)
{
  output_open_standard_streams();
  all_commands = main_commands;
  output_ignore_closed_pipes();
  report_forbid();
  while (argc > 1 && (strcmp(argv[1], "--quiet") == 0 || strcmp(argv[1], "-q") == 0)) {
    output_be_quiet();
    argv++;
    argc--;
  }
  if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) return main_help();
  if (strcmp(argv[1], "help") == 0) return argc > 2 ? main_help_on(argv[2]) : main_help();
  if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) return main_version();
  if (argv[1][0] == '-') return main_unknown_option(argv[1]);

  const struct command *command = main_find(argv[1]);
  if (!command) return main_unknown_command(argv[1]);
  trace_rows_set_command(command->name);
  return command->run(argc - 1, argv + 1);
}
