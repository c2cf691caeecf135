/* SPDX-License-Identifier: MIT */
/* sweep.c: see sweep.h. */
#include "sweep.h"
#include "../../core/runtime/hip.h"
#include "../support/support.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NAMES = 256, MOST_CALLS = 200, MOST_OUT_BYTES = 256 };

static const char *const kind_names[SWEEP_KINDS] = {"HIP", "memory", "full", "filled", "interrupted", "short"};
static const int file_codes[SWEEP_KINDS] = {[SWEEP_MEMORY] = ENOMEM,
                                            [SWEEP_FULL] = ENOSPC,
                                            [SWEEP_FILLED] = INTERPOSE_FILLED,
                                            [SWEEP_INTERRUPTED] = EINTR,
                                            [SWEEP_SHORT] = INTERPOSE_SHORT};

/* The run that is under way. */
static struct {
  enum sweep_kind kind;
  const char *hip_call; /* that is to fail; NULL: none */
  uint64_t nth;         /* 0: nothing fails */
  const char *reason;   /* as in the scenario */
  char failure[1000];   /* the first thing that must not be; empty if none */
} run;

static const char *names[MOST_NAMES]; /* functions that were called */
static size_t n_names;
static uint64_t n_scenarios, n_steps[SWEEP_KINDS];
static unsigned failures; /* steps of this scenario that went wrong */

/* ---- Calls ---- */

void sweep_note(const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  if (!run.failure[0]) vsnprintf(run.failure, sizeof run.failure, format, arguments);
  va_end(arguments);
}

void sweep_begin_alone(void)
{
  software();
  memset(&run, 0, sizeof run);
}

const char *sweep_failure(void)
{
  return run.failure;
}

bool sweep_has_called(const char *function)
{
  for (size_t i = 0; i < n_names; i++)
    if (!strcmp(names[i], function)) return true;
  return false;
}

void sweep_mark(const char *function)
{
  if (!sweep_has_called(function) && n_names < MOST_NAMES) names[n_names++] = function;
}

bool sweep_may_fail(void)
{
  return run.nth && (run.kind == SWEEP_HIP || interpose_has_failed());
}

/* Whether a failure of this kind may come out as this status. */
static bool sweep_fits(enum hipmm_status status)
{
  switch (run.kind) {
  case SWEEP_HIP: return status == HIPMM_E_HIP || status == HIPMM_E_OUT_OF_MEMORY || status == HIPMM_E_NOT_SUPPORTED;
  case SWEEP_MEMORY: return status == HIPMM_E_OUT_OF_MEMORY;
  case SWEEP_FULL:
  case SWEEP_FILLED: return status == HIPMM_E_IO;
  default: return false;
  }
}

/* Whether a failure of this call means that the runtime cannot do something, which the message then says. */
static bool sweep_asks_what_there_is(const char *call)
{
  return !strcmp(call, "hipDeviceGetAttribute");
}

static bool sweep_names_the_place(const char *message)
{
  if (run.reason && strstr(message, run.reason)) return true;
  switch (run.kind) {
  case SWEEP_HIP: return run.hip_call && (strstr(message, run.hip_call) || sweep_asks_what_there_is(run.hip_call));
  case SWEEP_MEMORY: return strstr(message, "host memory");
  default: return strstr(message, strerror(ENOSPC));
  }
}

bool sweep_has_failed(const char *function, enum hipmm_status status)
{
  if (!status) return false;
  const char *message = hipmm_last_error_message();
  if (!sweep_may_fail())
    sweep_note("%s fails where no step did: %s: %s", function, hipmm_status_string(status), message);
  else if (!sweep_fits(status))
    sweep_note("%s: the wrong status: %s: %s", function, hipmm_status_string(status), message);
  else if (!sweep_names_the_place(message))
    sweep_note("%s: the message does not tell of the step: %s", function, message);
  return true;
}

enum hipmm_status sweep_again(const char *function, enum hipmm_status status)
{
  if (status) sweep_note("%s, tried again: %s: %s", function, hipmm_status_string(status), hipmm_last_error_message());
  return status;
}

static struct {
  const void *out;
  size_t bytes;
  char before[MOST_OUT_BYTES];
} kept;

void sweep_keep(const void *out, size_t bytes)
{
  kept.out = out;
  kept.bytes = bytes < MOST_OUT_BYTES ? bytes : MOST_OUT_BYTES;
  memcpy(kept.before, out, kept.bytes);
}

void sweep_compare(const char *function)
{
  if (memcmp(kept.out, kept.before, kept.bytes)) sweep_note("%s fails and writes its output", function);
}

/* ---- A run ---- */

static void sweep_arm(void)
{
  software()->fail_none();
  if (run.kind != SWEEP_HIP)
    interpose_begin(run.kind == SWEEP_MEMORY ? INTERPOSE_MEMORY : INTERPOSE_FILES, run.nth, file_codes[run.kind]);
  else if (run.nth && !software()->schedule(run.hip_call, run.nth, 0))
    sweep_note("there is no call %s", run.hip_call);
}

static uint64_t sweep_disarm(void)
{
  software()->fail_none();
  return run.kind == SWEEP_HIP ? 0 : interpose_end();
}

/* What must hold of the device once hipmm is finalized. */
static void sweep_check_device(void)
{
  enum { GLOBAL = 0 };
  int current = -1, mode = GLOBAL;
  int (*exchange)(int *mode);
  void *address = hip_symbol("hipThreadExchangeStreamCaptureMode");
  if (!address) return; /* the runtime was never opened */
  memcpy(&exchange, &address, sizeof exchange);
  uint64_t lost = live_on_all_devices(), faults = faults_on_all_devices();
  if (hip_table()->GetDevice(&current) || current) sweep_note("device %d was left current", current);
  if (exchange(&mode) || mode != GLOBAL) sweep_note("the thread was left in capture mode %d", mode);
  if (lost) sweep_note("%llu blocks or handles of devices were not given back", (unsigned long long)lost);
  if (faults) sweep_note("%llu times work ran on memory that was gone", (unsigned long long)faults);
}

/* ---- Runs ---- */

/* Returns the number of steps. */
static uint64_t sweep_run(const struct sweep_scenario *scenario)
{
  run.failure[0] = '\0';
  if (scenario->begin) scenario->begin(scenario->argument);
  software()->reset_calls();
  sweep_arm();
  scenario->run(scenario->argument);
  uint64_t steps = sweep_disarm();
  if (scenario->end) scenario->end(scenario->argument);
  sweep_check_device();
  software()->reset();
  return steps;
}

/* ---- What is left behind ---- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { HAS_BALANCE = false }; /* their own functions call no malloc of ours */
#else
enum { HAS_BALANCE = true };
#endif

static bool sweep_grew(const struct interpose_balance *before, const struct interpose_balance *after)
{
  return HAS_BALANCE &&
         (after->blocks > before->blocks || after->mapped_bytes > before->mapped_bytes || after->files > before->files);
}

/* Memory that stays for the process may come once; memory that is lost grows with every run. */
static void sweep_run_balanced(const struct sweep_scenario *scenario, struct interpose_balance *usual)
{
  enum { TRIES = 4 };
  struct interpose_balance before = *usual, after;
  for (int i = 0; i < TRIES; i++) {
    sweep_run(scenario);
    after = interpose_balance();
    if (run.failure[0]) return;
    if (!sweep_grew(&before, &after)) {
      *usual = before;
      return;
    }
    if (i < TRIES - 1) before = after;
  }
  sweep_note("after %s each time %lld blocks of host memory, %lld mapped bytes, %d files are left",
             interpose_failed_call(), (long long)(after.blocks - before.blocks),
             (long long)(after.mapped_bytes - before.mapped_bytes), after.files - before.files);
}

/* ---- Sweeps ---- */

static uint64_t sweep_seed(void)
{
  return number_from_environment("HIPMM_TEST_SEED", 0);
}

static bool sweep_is_wanted(const char *step)
{
  const char *only = getenv("HIPMM_TEST_ONLY");
  size_t length = only ? strlen(only) : 0;
  return !only || (!strncmp(step, only, length) && (!step[length] || step[length] == '/'));
}

/* `count` steps of one kind, or calls of one function. */
static void sweep_steps(const struct sweep_scenario *scenario, uint64_t count, struct interpose_balance *usual)
{
  uint64_t most = number_from_environment("HIPMM_TEST_FAULTS", run.kind == SWEEP_HIP ? 25 : 60);
  uint64_t stride = most ? (count + most - 1) / most : 1;
  char step[200];
  if (!count) return;
  for (run.nth = 1 + sweep_seed() % stride; run.nth <= count; run.nth += stride) {
    snprintf(step, sizeof step, "%s/%s%s%s/%llu", scenario->name, kind_names[run.kind], run.hip_call ? "/" : "",
             run.hip_call ? run.hip_call : "", (unsigned long long)run.nth);
    if (!sweep_is_wanted(step)) continue;
    sweep_run_balanced(scenario, usual);
    n_steps[run.kind]++;
    if (!run.failure[0]) continue;
    print_error("%s (%s): %s\n", step, interpose_failed_call(), run.failure);
    if (getenv("HIPMM_TEST_PLACE")) interpose_print_place();
    failures++;
  }
  run.nth = 0;
}

static bool sweep_is_own(const struct sweep_scenario *scenario, const char *call)
{
  for (const char *const *own = scenario->own_calls; own && *own; own++)
    if (!strcmp(*own, call)) return true;
  return !strcmp(call, "hipGetErrorName");
}

/* Each function of HIP that the scenario calls is swept on its own. */
static void sweep_hip(const struct sweep_scenario *scenario, struct interpose_balance *usual)
{
  struct {
    const char *name;
    uint64_t count;
  } calls[MOST_CALLS];
  size_t n = 0;
  run.failure[0] = '\0';
  if (scenario->begin) scenario->begin(scenario->argument);
  software()->reset_calls();
  scenario->run(scenario->argument);
  for (size_t i = 0; n < MOST_CALLS && (calls[n].name = software()->call(i, &calls[n].count)); i++)
    n += calls[n].count > 0 && !sweep_is_own(scenario, calls[n].name);
  if (scenario->end) scenario->end(scenario->argument);
  software()->reset();
  for (size_t i = 0; i < n; i++) {
    run.hip_call = calls[i].name;
    sweep_steps(scenario, calls[i].count, usual);
  }
  run.hip_call = NULL;
}

void sweep_over(const struct sweep_scenario *scenario)
{
  struct interpose_balance usual;
  run.reason = scenario->reason;
  n_scenarios++;
  failures = 0;
  software();
  interpose_prepare();
  for (run.kind = 0; run.kind < SWEEP_KINDS; run.kind++) {
    if (scenario->left_out & 1u << run.kind) continue;
    uint64_t count = 0;
    for (int i = 0; i < 2; i++) count = sweep_run(scenario);
    if (run.failure[0]) fail_msg("%s: %s", scenario->name, run.failure);
    usual = interpose_balance();
    if (run.kind == SWEEP_HIP)
      sweep_hip(scenario, &usual);
    else
      sweep_steps(scenario, count, &usual);
  }
  if (failures) fail_msg("%s: %u steps went wrong", scenario->name, failures);
}

void sweep_print_sums(void)
{
  printf("# HIPMM_TEST_SEED=%llu: %llu scenarios", (unsigned long long)sweep_seed(), (unsigned long long)n_scenarios);
  for (int i = 0; i < SWEEP_KINDS; i++) printf(", %s %llu", kind_names[i], (unsigned long long)n_steps[i]);
  printf("\n");
}
