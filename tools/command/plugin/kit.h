/* SPDX-License-Identifier: MIT */
/* kit.h: what the parts of the conformance kit share (`hipmm plugin test`). A check is a function that runs in a process
 * of its own (child.c): it returns if all is well, and ends the process with a finding otherwise. So it cleans up
 * nothing on the way out, and a crash or a hang is a finding too. */
#ifndef HIPMM_TOOLS_COMMAND_PLUGIN_KIT_H
#define HIPMM_TOOLS_COMMAND_PLUGIN_KIT_H

#include "../../../core/plugin/plugin.h"
#include "../cmd.h"

#include <stdatomic.h>

/* What is tested. The same in each child. */
struct kit {
  const char *file;   /* TYPE.so, with its folder */
  char type[64];      /* its stem */
  const char *over;   /* the type of the resource below it */
  json_t *options;    /* of the resource, as they stand in a graph; NULL: none are given */
  unsigned timeout_s; /* of each check */
  unsigned seconds;   /* how long each random check goes on; 0: as short as it can be */
};

/* In the child: what is tested. */
extern const struct kit *kit;

/* ---- Checks ---------------------------------------------------------------------------------------------------- */

struct kit_check {
  const char *name;
  const char *expected; /* the rule, as a sentence about a good plugin, without its full stop */
  const char *mend;     /* how to keep it */
  void (*run)(void);
};

/* checks_file.c and so on: tables ended by a row without a name. */
extern const struct kit_check kit_checks_file[], kit_checks_memory[], kit_checks_stack[], kit_checks_streams[],
    kit_checks_failures[];

/* End the check. fail: the plugin breaks the rule, and the text says what it did; fail_with_mend: the check's own advice does
 * not help with it, and this does. skip: the rule does not apply to the plugin, and the text says why. Any thread may call
 * them. */
_Noreturn void kit_fail(const char *format, ...) HIPMM_PRINTF(1, 2);
_Noreturn void kit_fail_with_mend(const char *mend, const char *format, ...) HIPMM_PRINTF(2, 3);
_Noreturn void kit_skip(const char *format, ...) HIPMM_PRINTF(1, 2);

/* ---- child.c --------------------------------------------------------------------------------------------------- */

enum kit_verdict { KIT_PASSED, KIT_FAILED, KIT_SKIPPED };

struct kit_finding {
  enum kit_verdict verdict;
  char text[1000]; /* what came, or why the check was skipped */
  char mend[600];  /* of a failure: how to keep the rule */
};

/* Runs a check in a child. */
struct kit_finding kit_run(const struct kit *what, const struct kit_check *check);

/* ---- stack.c: the stack on which the plugin is tested ---------------------------------------------------------- */

/* Loads the plugin; ends the check if it is refused. For a check of the ops: ends the check if it has none. */
const struct hipmm_plugin *kit_plugin(void);
const struct hipmm_plugin *kit_resource_plugin(void);

/* The resources of the stack as JSON text for model.h; the tested one is called "tested". The caller frees it. */
char *kit_resources(void);

/* Whether only the host can be relied on to use the memory in turn: see model.h. */
bool kit_is_host_memory(void);

/* kit_start() initialises hipmm on the software device; kit_build() builds the stack. */
void kit_start(const char *scheduler);
enum hipmm_status kit_build(void);

/* Does both; ends the check if one fails. */
void kit_open(const char *scheduler);

/* Takes the stack down. Ends the check if something was not given back: to the upstream, except for `left` blocks, to the
 * device, or to services->host_free. kit_close() waits for the device before, kit_close_busy() does not. */
void kit_close(size_t left);
void kit_close_busy(size_t left);

/* For checks in which calls of HIP fail: kit_close() counts no events. */
extern bool kit_ignores_events;

/* The tested resource, while the stack is up. */
extern struct hipmm_resource *kit_resource;

/* Calls of services->host_allocate by the plugin so far; and the call that returns NULL, counted from 1, 0 for none. */
extern uint64_t kit_host_calls, kit_host_fails_at;

/* ---- probe.c: the resource directly below ---------------------------------------------------------------------- */

/* A call of the probe that succeeded. */
struct kit_probe_call {
  void *ptr;
  size_t bytes, alignment;
  hipmm_stream_t stream;
};

/* The last calls of the probe by this process; and how many there were. For checks that use one thread. */
extern struct kit_probe_call kit_probe_allocated, kit_probe_freed;
extern uint64_t kit_probe_allocations, kit_probe_frees;

/* The allocation that fails, counted from 1 like kit_probe_tries; 0: none. */
extern uint64_t kit_probe_tries, kit_probe_fails_at;
extern size_t kit_probe_alignment; /* that the last try asked for */

/* A request to the upstream that broke the contract, such as an alignment that is no power of two. NULL: there was none. */
extern const char *kit_probe_breach;

/* Blocks that are live in the probe, and their bytes. */
size_t kit_probe_live(void);
uint64_t kit_probe_live_bytes(void);

/* Memory that work on a stream uses. The probe ends the check if it gets the memory back, and its stream comes to that free
 * before the work is over. `ptr` NULL: none. For checks that use one thread. */
struct kit_probe_use {
  const void *ptr;
  atomic_bool is_over;
};

extern struct kit_probe_use kit_probe_use;

extern const struct hipmm_plugin kit_probe;

/* ---- calls.c --------------------------------------------------------------------------------------------------- */

/* Allocates from the tested resource and checks the pointer. NULL: it is out of memory, and said so. */
void *kit_allocate(size_t bytes, size_t alignment, hipmm_stream_t stream);

/* Frees; ends the check if that is refused. */
void kit_free(void *ptr, size_t bytes, hipmm_stream_t stream);

/* Ends the check unless the call failed with `wanted` (HIPMM_OK: any failure will do) and gave a reason. */
void kit_expect_refusal(enum hipmm_status status, enum hipmm_status wanted, const char *what);

/* Ends the check unless the call succeeded. */
void kit_expect_ok(enum hipmm_status status, const char *what);

/* kit_stream() creates a stream of the runtime. kit_expect_hip() ends the check unless a call of HIP, made by the kit
 * itself, succeeded. */
hipmm_stream_t kit_stream(void);
void kit_expect_hip(int code, const char *call);

#endif
