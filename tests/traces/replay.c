/* SPDX-License-Identifier: MIT */
/* replay.c: `hipmm replay` as a program has it that registers the objects which a graph may name: the command itself
 * cannot play through a failure_callback or hooks. Run by adaptors.sh. */
#include "../../tools/command/cmd.h"

/* Memory is never short in these replays; if it is, this gives up. */
static int give_up(void *arg, size_t bytes)
{
  (void)arg;
  fprintf(stderr, "replay: short of memory for %zu bytes\n", bytes);
  return 0;
}

static void ignore(void *arg, const struct hipmm_event *event)
{
  (void)arg, (void)event;
}

int main(int argc, char **argv)
{
  const struct hipmm_hooks hooks = {.struct_size = sizeof hooks, .callback = ignore};
  const struct hipmm_failure_handler failure = {.struct_size = sizeof failure, .callback = give_up};
  if (hipmm_failure_handler_register("give_up", &failure) || hipmm_hooks_register("ignore", &hooks)) {
    say("%s", hipmm_last_error_message());
    return CMD_BAD;
  }
  return replay_command.run(argc, argv);
}
