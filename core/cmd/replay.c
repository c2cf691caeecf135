/* SPDX-License-Identifier: MIT */
/* replay.c: `hipmm replay`: plays a program's allocation log through a stack and prints the result. trace.c reads the
 * log, player.c plays it. */
#include "cmd.h"

#include "../base/text.h"
#include "../base/units.h"
#include "streams.h"
#include "trace/player.h"
#include <stdlib.h>
#include <string.h>

enum { REPLAY_MOST_PASSES = 1000000, REPLAY_MOST_DEVICES = 1023, REPLAY_MESSAGE = PATH_MAX + 512 };

struct replay {
  const char *trace_file;
  struct source source;
  long device, passes;
  bool json;
  struct trace trace;
};

struct replay_result {
  uint64_t failures, live_at_end, peak_requested_bytes;
  size_t peak_reserved_bytes;
  double first_ns, warm_ns; /* 0: not measured */
  uint32_t failure_line;
  const char *failure_reason;
};

static void replay_show_progress(void *closure, uint64_t done, uint64_t total)
{
  progress_show(closure, done, total);
}

/* ---- Printing -------------------------------------------------------------------------------------------------- */

static double replay_overhead(const struct replay_result *result)
{
  return result->peak_requested_bytes ? (double)result->peak_reserved_bytes / (double)result->peak_requested_bytes : 0;
}

static json_t *replay_json_real(double value)
{
  return value > 0 ? json_real(value) : json_null();
}

static json_t *replay_json_failure(const struct replay_result *result)
{
  if (!result->failure_reason) return json_null();
  return json_pack("{s:I, s:o}", "line", (json_int_t)result->failure_line, "reason",
                   output_json_string(result->failure_reason));
}

static int replay_print_json(const struct replay *replay, const struct replay_result *result, int status)
{
  const struct trace *trace = &replay->trace;
  json_t *object =
      json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "events", (json_int_t)trace->rows,
                "allocations", (json_int_t)trace->allocations, "frees", (json_int_t)trace->frees, "failures",
                (json_int_t)result->failures, "unmatched_frees", (json_int_t)trace->unmatched_frees, "live_at_end",
                (json_int_t)result->live_at_end, "peak_requested_bytes", (json_int_t)result->peak_requested_bytes,
                "peak_reserved_bytes", (json_int_t)result->peak_reserved_bytes, "overhead",
                replay_json_real(replay_overhead(result)), "ns_per_op", replay_json_real(result->first_ns),
                "ns_per_op_warm", replay_json_real(result->warm_ns), "first_failure", replay_json_failure(result),
                "runtime", output_json_string(hipmm_runtime()));
  return output_json(object, status);
}

static void replay_print_label(const char *label)
{
  printf("  ");
  print_padded(STYLE_OFF, label, 18);
}

/* 1234567 as 1,234,567. */
static const char *replay_number(uint64_t number, char *buffer, size_t bytes)
{
  char digits[24];
  int n = snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
  size_t at = 0;
  for (int i = 0; i < n && at + 2 < bytes; i++) {
    if (i > 0 && (n - i) % 3 == 0) buffer[at++] = ',';
    buffer[at++] = digits[i];
  }
  buffer[at] = '\0';
  return buffer;
}

static void replay_print_count(const char *label, uint64_t count, const char *remark)
{
  char number[32];
  replay_print_label(label);
  printf("%s%15s%s%s%s\n", style(STYLE_NAME), replay_number(count, number, sizeof number), style(STYLE_OFF),
         *remark ? "  " : "", remark);
}

static void replay_print_bytes(const char *label, uint64_t bytes)
{
  char words[64], number[32];
  replay_print_label(label);
  printf("%s%15s%s  %s bytes\n", style(STYLE_NAME), units_format_bytes(bytes, words, sizeof words), style(STYLE_OFF),
         replay_number(bytes, number, sizeof number));
}

static void replay_print_time(const char *label, double ns, const char *remark)
{
  if (ns <= 0) return;
  replay_print_label(label);
  printf("%s%12.1f ns%s  %s\n", style(STYLE_NAME), ns, style(STYLE_OFF), remark);
}

/* Counts of rows that a complete log does not have. */
static void replay_print_oddities(const struct trace *trace)
{
  if (trace->unmatched_frees)
    replay_print_count("unmatched frees", trace->unmatched_frees, "of unknown pointers: skipped");
  if (trace->failed_rows)
    replay_print_count("failed in the log", trace->failed_rows,
                       "rows \"allocate failure\" and \"free failure\": skipped");
  if (trace->overlaid) replay_print_count("address used twice", trace->overlaid, "the older block stays live");
  if (trace->other_sizes) replay_print_count("freed, other size", trace->other_sizes, "the allocation's size is used");
}

static void replay_print_failures(const struct replay_result *result)
{
  replay_print_label("failures");
  printf("%s%15llu%s\n", style(result->failures ? STYLE_BAD : STYLE_GOOD), (unsigned long long)result->failures,
         style(STYLE_OFF));
  if (!result->failure_reason) return;
  printf("\nFirst failure, line %u of the log: ", result->failure_line);
  output_text(stdout, result->failure_reason);
  putchar('\n');
}

static void replay_print_head(const struct replay *replay)
{
  const struct trace *trace = &replay->trace;
  char number[32];
  print_padded(STYLE_NAME, strcmp(replay->trace_file, "-") == 0 ? "standard input" : replay->trace_file, 0);
  printf(": %s events on %zu stream%s\n", replay_number(trace->rows, number, sizeof number), trace->n_streams,
         text_plural(trace->n_streams));
  printf("through ");
  print_padded(STYLE_NAME,
               replay->source.file ? replay->source.file : "a plain `device` resource (no graph file found)", 0);
  printf(" on device %ld of the runtime ", replay->device);
  output_text(stdout, hipmm_runtime());
  printf("\n\n");
}

static int replay_print(const struct replay *replay, const struct replay_result *result, int status)
{
  const struct trace *trace = &replay->trace;
  replay_print_head(replay);
  replay_print_count("allocations", trace->allocations, "");
  replay_print_count("frees", trace->frees, "");
  replay_print_count("live at end", result->live_at_end, "");
  replay_print_oddities(trace);
  replay_print_bytes("peak requested", result->peak_requested_bytes);
  replay_print_bytes("peak reserved", result->peak_reserved_bytes);
  if (result->peak_requested_bytes) {
    replay_print_label("overhead");
    printf("%s%15.3f%s  reserved over requested\n", style(STYLE_NAME), replay_overhead(result), style(STYLE_OFF));
  }
  replay_print_time("first pass", result->first_ns, "an operation");
  replay_print_time("best later pass", result->warm_ns, "an operation");
  replay_print_failures(result);
  return output_finish(status);
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
  return replay->json ? replay_print_json(replay, &result, status) : replay_print(replay, &result, status);
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

static bool replay_read(struct replay *replay)
{
  char message[REPLAY_MESSAGE];
  struct progress progress;
  progress_start(&progress, "reading");
  const struct trace_watcher watcher = {replay_show_progress, &progress};
  bool good = trace_read(replay->trace_file, &watcher, &replay->trace, message, sizeof message);
  progress_end(&progress);
  if (!good) say("%s", message);
  return good;
}

static int replay_run(int argc, char **argv)
{
  struct replay replay = {.passes = 1};
  const char *config = NULL, *device = "0", *repeat = "1";
  int status;
  const struct argument rows[] = {
      CONFIG_ARGUMENT(&config),
      {.name = "device", .value_name = "N", .doc = "the device whose stack is used; 0 by default", .value = &device},
      {.name = "repeat",
       .value_name = "N",
       .doc = "play it N times on the same stack; the later passes find it warm",
       .value = &repeat},
      {.name = "json", .doc = "print one JSON object", .flag = &replay.json},
  };
  struct arguments arguments = {&replay_command, rows, sizeof rows / sizeof *rows, 1, 1, NULL, 0};
  if (!arguments_read(&arguments, argc, argv, &status)) return status;
  if (!arguments_number(&arguments, "device", device, 0, REPLAY_MOST_DEVICES, &replay.device)) return CMD_USAGE;
  if (!arguments_number(&arguments, "repeat", repeat, 1, REPLAY_MOST_PASSES, &replay.passes)) return CMD_USAGE;

  replay.trace_file = arguments_operand(&arguments, 0);
  source_choose(&replay.source, config);
  if (!replay_read(&replay)) return CMD_BAD;
  status = replay_play(&replay);
  trace_clear(&replay.trace);
  return status;
}

const struct command replay_command = {
    "replay", "play a program's allocation log through a stack", "TRACE.csv",
    "Plays an allocation log, as RMM's and hipmm's `logging` resources write it, through the stack of a device: every "
    "allocation and free in the order of the file, in one thread, on new streams. Prints the memory requested, the "
    "memory that the stack took from the runtime, and the time of an operation. No GPU is needed: see the runtime "
    "`software`.\n"
    "\n"
    "TRACE.csv: the log; `-` reads standard input, as in `xz -dc log.csv.xz | hipmm replay -`.\n"
    "\n"
    "Frees of pointers that the log does not allocate, and rows `allocate failure` and `free failure`, are counted and "
    "skipped. A free "
    "whose allocation failed here is skipped too. Exit status 1 if an event failed or the log is malformed.",
    replay_run};
