/* SPDX-License-Identifier: MIT */
/* report.c: the report of `hipmm run --report`, written when the process exits: HIPMM_RUN_REPORT is a file, or "-" for
 * standard error. A process that called no hook writes no report, unless it is the one that `hipmm run` started. A report
 * is one write(), so that the reports of several processes do not mix. */
#include "../core/base/environment.h"
#include "../core/base/output_file.h"
#include "../core/base/text.h"
#include "../core/base/units.h"
#include "../core/runtime/hip.h"
#include "devices.h"
#include "failure.h"
#include "init.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- The text ---- */

static void report_print_bytes(FILE *out, const char *label, int64_t bytes, const char *more)
{
  char words[40], exact[40] = "";
  if (bytes >= 1024) snprintf(exact, sizeof exact, " (%lld bytes)", (long long)bytes);
  fprintf(out, "    %-16s %s%s%s\n", label, units_format_bytes((uint64_t)bytes, words, sizeof words), exact, more);
}

static bool report_print_calls(FILE *out)
{
  bool any = false;
  for (int hook = 0; hook < HOOK_COUNT; hook++) {
    struct hook_counts counts = hook_counts((enum hook)hook);
    if (!counts.calls || !hook_is_reported((enum hook)hook)) continue;
    if (!any) fprintf(out, "  %-28s %12s %12s %12s\n", "function", "calls", "passed on", "failed");
    fprintf(out, "  %-28s %12llu %12llu %12llu\n", hook_name((enum hook)hook), (unsigned long long)counts.calls,
            (unsigned long long)counts.passed, (unsigned long long)counts.failed);
    any = true;
  }
  return any;
}

/* Returns whether a line is marked with a star. */
static bool report_print_kind(FILE *out, struct served_device *served, enum kind kind)
{
  struct usage *usage = &served->usage[kind];
  int64_t reserved, count = atomic_load(&usage->count);
  char more[64];
  if (!atomic_load(&usage->peak_bytes)) return false;
  fprintf(out, "  device %d, %s memory\n", served->device, kind_name(kind));
  report_print_bytes(out, "peak requested", atomic_load(&usage->peak_bytes), "");
  if (devices_peak_reserved(served, kind, &reserved))
    report_print_bytes(out, "peak reserved", reserved, "");
  else if (kind != KIND_DEVICE && served->kinds[kind].stack)
    fprintf(out, "    %-16s counted with device memory\n", "peak reserved");
  if (kind == KIND_DEVICE) report_print_bytes(out, "driver alone", atomic_load(&usage->driver_peak_bytes), " *");
  snprintf(more, sizeof more, " in %lld block%s", (long long)count, count == 1 ? "" : "s");
  report_print_bytes(out, "left at exit", atomic_load(&usage->bytes), count ? more : "");
  return kind == KIND_DEVICE;
}

static void report_print(FILE *out, bool any)
{
  bool has_star = false;
  char program[256], runtime[PATH_MAX];
  snprintf(program, sizeof program, "%s", program_invocation_short_name);
  snprintf(runtime, sizeof runtime, "%s", init_was_ready() ? hip_name() : "none");
  text_make_plain(program);
  text_make_plain(runtime);
  fprintf(out, "hipmm: report of %s, process %ld, runtime %s\n", program, (long)getpid(), runtime);
  if (!any || !report_print_calls(out))
    fprintf(out,
            "  no call came through hipmm: the program makes none, or its runtime is linked into it (nvcc's default; "
            "-cudart shared), or it looks functions up by itself (dlsym)\n");
  for (int device = 0; device < DEVICES_MOST && !init_is_forked(); device++)
    for (int kind = 0; kind < KIND_COUNT && devices_if_served(device); kind++)
      has_star |= report_print_kind(out, devices_if_served(device), (enum kind)kind);
  if (failure_first()) fprintf(out, "  first failure: %s\n", failure_first());
  if (has_star)
    fprintf(out,
            "  * an estimate: the most that the driver would have taken for the same blocks, if one of 1 MiB or more "
            "takes\n"
            "    units of 2 MiB of its own, and smaller ones multiples of 512 bytes out of units that they share\n");
}

/* ---- The file ---- */

static void report_write_all(int file, const char *text, size_t length)
{
  while (length) {
    ssize_t written = write(file, text, length);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text += written;
    length -= (size_t)written;
  }
}

static void report_write(const char *where, bool any)
{
  char *text = NULL;
  size_t length = 0;
  FILE *out = open_memstream(&text, &length);
  if (!out) return;
  report_print(out, any);
  if (fclose(out)) return;
  bool is_file = strcmp(where, "-") != 0;
  int file = is_file ? output_file_open(where, OUTPUT_FILE_APPEND) : STDERR_FILENO;
  if (file < 0)
    message_write("the report cannot be written: %s: %s", where, output_file_reason(errno));
  else
    report_write_all(file, text, length);
  if (is_file && file >= 0) close(file);
  free(text);
}

static bool report_is_started_process(void)
{
  const char *pid = environment_get("HIPMM_RUN_PID");
  return pid && strtol(pid, NULL, 10) == (long)getpid();
}

__attribute__((destructor)) static void report_at_exit(void)
{
  const char *where = environment_get("HIPMM_RUN_REPORT");
  bool any = false;
  for (int hook = 0; hook < HOOK_COUNT; hook++)
    any = any || (hook_is_reported((enum hook)hook) && hook_counts((enum hook)hook).calls);
  if (where && *where && (any || report_is_started_process())) report_write(where, any);
}
