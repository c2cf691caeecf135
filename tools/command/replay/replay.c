/* SPDX-License-Identifier: MIT */
/* replay.c: `hipmm replay`: plays a program's allocation log through a stack. trace.c reads the log, player.c plays it,
 * print.c prints the result; with --fit, fit.c plays it many times. */
#include "replay.h"

#include "../inputs.h"
#include "../play/play.h"
#include "../play/streams.h"
#include "../trace/logs.h"
#include <stdlib.h>
#include <string.h>

enum { REPLAY_MOST_PASSES = 1000000, REPLAY_MOST_DEVICES = 1023 };

static void replay_show_progress(void *closure, uint64_t done, uint64_t total)
{
  progress_show(closure, done, total);
}

/* ---- Playing --------------------------------------------------------------------------------------------------- */

static int replay_fail(void)
{
  say("%s", hipmm_last_error_message());
  return CMD_BAD;
}

static void replay_passes(const struct replay *replay, struct player *player, struct replay_result *result)
{
  struct progress progress;
  char label[64];
  for (long pass = 1; pass <= replay->passes; pass++) {
    snprintf(label, sizeof label, "pass %ld of %ld", pass, replay->passes);
    progress_start(&progress, label);
    player->watcher = (struct trace_watcher){replay_show_progress, &progress};
    double ns = player_play(player);
    progress_end(&progress);
    if (pass == 1) {
      result->first_ns = ns;
      player_tally(player, &result->peak_requested_bytes, &result->live_at_end);
    } else if (result->warm_ns <= 0 || ns < result->warm_ns) {
      result->warm_ns = ns;
    }
  }
  result->failures = player->failures;
  result->failure_line = player->failure_line;
  result->failure_reason = player->failure_reason;
}

static int replay_report(const struct replay *replay, struct player *player)
{
  struct replay_result result = {0};
  size_t held_now;
  replay_passes(replay, player, &result);
  if (hipmm_device_held_bytes((int)replay->device, &held_now, &result.peak_reserved_bytes) != HIPMM_OK)
    return replay_fail();
  int status = result.failures ? CMD_BAD : CMD_GOOD;
  return replay_print(replay, &result, status);
}

static int replay_through(const struct replay *replay, struct hipmm_resource *resource)
{
  const struct trace *trace = &replay->trace;
  hipmm_stream_t *streams;
  struct player player;
  int status = CMD_BAD;
  if (!streams_make(trace->streams, trace->n_streams, (int)replay->device, &streams)) return CMD_BAD;
  if (player_start(&player, trace, resource, streams)) {
    status = replay_report(replay, &player);
    player_end(&player);
  } else {
    say("replay: out of memory");
  }
  streams_destroy(trace->streams, trace->n_streams, (int)replay->device, streams);
  return status;
}

static int replay_play(const struct replay *replay)
{
  struct hipmm_resource *resource;
  if (source_initialise(&replay->source) != HIPMM_OK) return replay_fail();
  int status = CMD_BAD;
  if (hipmm_resource_get_for_device((int)replay->device, &resource) == HIPMM_OK) {
    status = replay_through(replay, resource);
    hipmm_resource_release(resource);
  } else {
    replay_fail();
  }
  hipmm_finalize();
  return status;
}

/* The software device has as many devices as the log. */
static void replay_have_device(long device)
{
  char count[24];
  snprintf(count, sizeof count, "%ld", device + 1);
  if (device) play_set_software("devices", count);
}

static int replay_run(int argc, char **argv)
{
  struct replay replay = {.passes = 1};
  struct trace_choice choice = {.command = "replay", .is_of_stack = true};
  const char *config = NULL;
  bool fit = false;
  int status;
  const struct argument rows[] = {
      CONFIG_ARGUMENT(&config),
      TRACE_CHOICE_ARGUMENTS(choice, "; the stack is that of the device with this number, of device 0 by default",
                             TRACE_CHOICE_OF_EACH),
      {"repeat", "N", "play it N times on the same stack; the later passes find it warm", .number = &replay.passes,
       .least = 1, .most = REPLAY_MOST_PASSES},
      {"fit", NULL,
       "find the least memory that the program needs with this stack: the smallest maximum_size of its pools with "
       "which the whole log runs",
       .flag = &fit},
      {"card", "SIZE",
       "with --fit: the memory of the card that it should fit on, such as 16GiB; by default the smallest card that "
       "there is",
       .bytes = &replay.card_bytes, .least = 1, .most = INT64_MAX},
      {"json", NULL, "print one JSON object", .flag = &replay.json},
  };
  struct arguments arguments = {&replay_command, rows, sizeof rows / sizeof *rows, 1, 1, NULL, 0};
  if (!arguments_read(&arguments, argc, argv, &status)) return status;
  if (replay.card_bytes && !fit) {
    say("replay: --card is the card of --fit, which is not given");
    return CMD_USAGE;
  }
  if (!trace_choice_read(&choice)) return CMD_USAGE;
  if (choice.device > REPLAY_MOST_DEVICES) {
    say("replay: --device %d: there are no more than %d devices", (int)choice.device, REPLAY_MOST_DEVICES + 1);
    return CMD_USAGE;
  }
  replay.device = choice.device;
  replay.trace_file = arguments_operand(&arguments, 0);
  source_choose(&replay.source, config);
  const struct inputs inputs = {"replay", arguments.operands, 1};
  if (!inputs_check_graph(&inputs, &replay.source, (int)replay.device)) return CMD_BAD;
  if (!trace_load(replay.trace_file, &choice, &replay.trace)) return CMD_BAD;
  if (replay.trace.is_of_several) replay_have_device(replay.device);
  status = fit ? fit_run(&replay) : replay_play(&replay);
  trace_clear(&replay.trace);
  return status;
}

const struct command replay_command = {
    "replay", "play a program's allocation log through a stack", "LOG",
    "Plays an allocation log, in any format that `hipmm convert` reads, through the stack of a device: every "
    "allocation and free in the order of the log, in one thread, on new streams. Prints the memory requested, the "
    "memory that the stack took from the runtime, and the time of an operation. It needs no GPU: see the runtime "
    "`software`.\n"
    "\n"
    "LOG: `-` reads standard input, as in `xz -dc log.csv.xz | hipmm replay -`. Of a log with the memory of several "
    "processes or devices, one is played: choose it with --process and --device. Managed memory and memory of the host "
    "are left out unless --device chooses them.\n"
    "\n"
    "With --fit, plays the log many times, each time on a new stack, and prints the least memory with which all of "
    "it runs. It finds the smallest `maximum_size` of the resources that have one (pool, arena), by bisection to one "
    "part in 2048, and prints what the whole stack then holds from the runtime. It ignores the graph's own maximum, "
    "and memory that a pool takes at its start. Memory of the driver and of the program's code is not included. The "
    "software device has 1 TiB for it, unless the graph or HIPMM_SOFTWARE says otherwise. Exit status 1 if the log "
    "does not run, or does not fit on the card.\n"
    "\n"
    "Frees of pointers that the log does not allocate, and rows `allocate failure` and `free failure`, are counted "
    "and skipped. A free whose allocation failed here is skipped too. Exit status 1 if an event failed or the log is "
    "malformed.",
    replay_run};
