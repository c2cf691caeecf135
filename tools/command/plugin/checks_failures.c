/* SPDX-License-Identifier: MIT */
/* checks_failures.c: everything that the plugin calls fails once, each call in turn, during the same short program: what
 * failed can be tried again, the failure has a status and a reason, and nothing is lost. */
#include "../../../core/runtime/hip.h"
#include "kit.h"
#include "software.h"

#include <stdlib.h>
#include <string.h>

/* ---- The program ----------------------------------------------------------------------------------------------- */

enum { FAILURES_BLOCKS = 8, FAILURES_MOST_ROUNDS = 400 };

static const char *failures_what; /* what failed in this round, for findings */

/* Only one call fails, so the second try must succeed. */
static void failures_try(enum hipmm_status first, enum hipmm_status (*again)(void *closure), void *closure,
                         const char *what)
{
  char text[300];
  if (!first) return;
  snprintf(text, sizeof text, "%s, as %s fails", what, failures_what);
  kit_expect_refusal(first, HIPMM_OK, text);
  snprintf(text, sizeof text, "%s, tried again after %s failed", what, failures_what);
  if (again) kit_expect_ok(again(closure), text);
}

struct failures_block {
  void *ptr;
  size_t bytes;
  hipmm_stream_t stream;
};

static enum hipmm_status failures_allocate(void *closure)
{
  struct failures_block *block = closure;
  return hipmm_allocate(kit_resource, block->bytes, block->stream, &block->ptr);
}

static enum hipmm_status failures_free(void *closure)
{
  const struct failures_block *block = closure;
  return hipmm_deallocate(kit_resource, block->ptr, block->bytes, block->stream);
}

static enum hipmm_status failures_trim(void *closure)
{
  (void)closure;
  return hipmm_resource_trim(kit_resource, 0);
}

static enum hipmm_status failures_build(void *closure)
{
  (void)closure;
  return kit_build();
}

/* Allocates, frees on one stream and allocates on another, trims, and frees everything. */
static void failures_run(hipmm_stream_t stream)
{
  struct failures_block blocks[FAILURES_BLOCKS];
  failures_try(kit_build(), failures_build, NULL, "create");
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < FAILURES_BLOCKS; i++) {
      blocks[i] = (struct failures_block){NULL, (size_t)(i * i * 3000 + 1), (i + round) % 2 ? stream : NULL};
      failures_try(failures_allocate(&blocks[i]), failures_allocate, &blocks[i], "allocate");
    }
    for (int i = 0; i < FAILURES_BLOCKS; i++)
      failures_try(failures_free(&blocks[i]), failures_free, &blocks[i], "deallocate");
    failures_try(failures_trim(NULL), failures_trim, NULL, "trim");
  }
}

/* Runs the program with what was armed between kit_start() and now. */
static void failures_round(void (*arm)(uint64_t nth, const char *name), uint64_t nth, const char *name)
{
  kit_start("threads");
  hipmm_stream_t stream = kit_stream();
  hip_table()->DeviceSynchronize();
  arm(nth, name);
  failures_run(stream);
  arm(0, name);
  kit_expect_ok(hipmm_stream_retire(0, stream), "stream_retire");
  kit_expect_hip(hip_table()->StreamDestroy(stream), "hipStreamDestroy");
  kit_close(0);
}

/* A type that allocates nothing here has nothing to fail. */
static void failures_check_that_it_allocates(void)
{
  kit_open("threads");
  void *ptr = kit_allocate(1, HIPMM_ALIGNMENT, NULL);
  if (!ptr) kit_skip("it allocates nothing here: %s", hipmm_last_error_message());
  kit_free(ptr, 1, NULL);
  kit_close(0);
}

/* ---- What fails ------------------------------------------------------------------------------------------------ */

static void failures_arm_host(uint64_t nth, const char *name)
{
  (void)name;
  if (nth) kit_host_calls = 0;
  kit_host_fails_at = nth;
}

static void checks_failures_host(void)
{
  failures_check_that_it_allocates();
  failures_what = "services->host_allocate()";
  for (uint64_t nth = 1; nth <= FAILURES_MOST_ROUNDS; nth++) {
    failures_round(failures_arm_host, nth, NULL);
    if (kit_host_calls < nth) break; /* all have failed once */
  }
}

static void failures_arm_upstream(uint64_t nth, const char *name)
{
  (void)name;
  if (nth) kit_probe_tries = 0;
  kit_probe_fails_at = nth;
}

static void checks_failures_upstream(void)
{
  if (!kit_resource_plugin()->max_upstreams) kit_skip("a source has no upstream");
  failures_check_that_it_allocates();
  failures_what = "the upstream's allocate";
  for (uint64_t nth = 1; nth <= FAILURES_MOST_ROUNDS; nth++) {
    failures_round(failures_arm_upstream, nth, NULL);
    if (kit_probe_tries < nth) break; /* all have failed once */
  }
}

/* The calls of the kit itself, which would fail in the plugin's place. */
static bool failures_is_ours(const char *name)
{
  static const char *const names[] = {"hipStreamCreateWithFlags", "hipStreamDestroy", "hipGetErrorName", NULL};
  for (size_t i = 0; names[i]; i++)
    if (!strcmp(name, names[i])) return true;
  return false;
}

static void failures_arm_hip(uint64_t nth, const char *name)
{
  if (nth)
    software()->schedule(name, nth, 0);
  else
    software()->fail_none();
}

static void checks_failures_hip(void)
{
  enum { MOST_NAMES = 256, MOST_OF_ONE = 6 };
  static uint64_t counts[MOST_NAMES];
  const char *name;
  size_t n = 0;
  char what[100];
  failures_check_that_it_allocates();
  failures_what = "nothing";
  kit_ignores_events = true;
  kit_start("threads");
  hipmm_stream_t stream = kit_stream();
  software()->reset_calls();
  failures_run(stream);
  for (; n < MOST_NAMES && (name = software()->call(n, &counts[n])); n++) continue;
  kit_expect_ok(hipmm_stream_retire(0, stream), "stream_retire");
  kit_expect_hip(hip_table()->StreamDestroy(stream), "hipStreamDestroy");
  kit_close(0);
  for (size_t i = 0; i < n && (name = software()->call(i, NULL)); i++) {
    if (failures_is_ours(name)) continue;
    for (uint64_t nth = 1; nth <= counts[i]; nth += counts[i] / MOST_OF_ONE + 1) {
      snprintf(what, sizeof what, "call %llu of %s", (unsigned long long)nth, name);
      failures_what = what;
      failures_round(failures_arm_hip, nth, name);
    }
  }
}

const struct kit_check kit_checks_failures[] = {
    {"upstream failures", "a failure of the upstream is passed on, and nothing is lost by it",
     "return the upstream's status; undo what was done for the request, and free what was obtained for it",
     checks_failures_upstream},
    {"host memory", "services->host_allocate() may return NULL, and nothing is lost by it",
     "test each result, report HIPMM_E_OUT_OF_MEMORY, and undo what was done", checks_failures_host},
    {"HIP failures", "a HIP call may fail, and nothing is lost by it",
     "test each result, report it with services->refuse_hip, and undo what was done", checks_failures_hip},
    {.name = NULL},
};
