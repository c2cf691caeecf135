/* SPDX-License-Identifier: MIT */
/* fixture.h: what the tests of plugins share: a stack over the software runtime, started afresh for each test, and taken
 * down with a look at whether anything was lost. Everything is on device 0 unless it says otherwise. */
#ifndef HIPMM_TESTS_SUPPORT_FIXTURE_H
#define HIPMM_TESTS_SUPPORT_FIXTURE_H

#include "support.h"

#include <stdatomic.h>

/* Starts hipmm from a graph, written without its braces and with ' for ": `'stack': ['pool', 'device']`. Two software
 * devices of 256 MiB each. fixture_start_with adds options of the runtime: `'scheduler': 'stepped'`. */
void fixture_start(const char *graph);
void fixture_start_with(const char *runtime_options, const char *graph);

/* The same without an assertion, for graphs that are refused: what hipmm said to hipmm_init_from_string, or else to the
 * building of the stack. */
enum hipmm_status fixture_try(const char *runtime_options, const char *graph);

/* Options that a type over device memory refuses: the error names their place, and its text contains `message`. */
struct fixture_refusal {
  const char *options, *message;
};
void fixture_refuses(const char *type, const struct fixture_refusal *refusals, size_t n_refusals);

/* HIPMM_RUNTIME may name another runtime: then the order of work is as it comes, and a test that asks for other options
 * of the software device, or for calls that fail, is skipped. See needs_software(). */

/* Setup and teardown. The teardown finalizes, and fails if a device still has blocks or has seen a fault. */
int fixture_setup(void **state);
int fixture_teardown(void **state);

/* The same with a folder of the test's own, which the teardown removes. */
extern char *fixture_folder;
int fixture_setup_folder(void **state);
int fixture_teardown_folder(void **state);

/* The runtime's functions. */
const struct hipmm_hip *fixture_hip(void);

/* The table of them, which is the process's own, lent to a test, which may put others in their places until it is taken
 * back, at the latest by the teardown; and the functions as they were before. */
struct hipmm_hip *fixture_lend_hip(void);
const struct hipmm_hip *fixture_usual_hip(void);
void fixture_take_hip_back(void);

/* The resource called `name`; good until the stack is taken down. NULL: the top. */
struct hipmm_resource *fixture_resource(const char *name);

int64_t fixture_value(const char *resource, const char *value);
size_t fixture_held_bytes(void);
size_t fixture_peak_held_bytes(void);

/* Through the top of the stack; asserts success. */
void *fixture_allocate(size_t bytes, hipmm_stream_t stream);
void fixture_free(void *ptr, size_t bytes, hipmm_stream_t stream);

/* Fills a block on the device's default stream; whether it is full of that, once the device has done its work. For
 * memory that the host may not be able to look into. */
void fixture_fill(void *ptr, unsigned char value, size_t bytes);
bool fixture_holds(const void *ptr, unsigned char value, size_t bytes);

/* Has the stream look, in its turn, whether the block is full of `value`, and count it if not. Returns HIP's code. */
int fixture_look(const void *ptr, unsigned char value, size_t bytes, hipmm_stream_t stream, atomic_uint *wrong);

hipmm_stream_t fixture_stream(void);
void fixture_drop_stream(hipmm_stream_t stream);

/* ---- Threads ---- */

/* Starts threads that count what fails in their `failures`; and waits for them all: nothing may have failed. One group
 * of them at a time. The threads must not assert. */
void fixture_start_threads(int count, void (*run)(int *failures));
void fixture_join_threads(void);
void fixture_run_threads(int count, void (*run)(int *failures));

/* Threads free all of the blocks at once, with `bytes` or, if 0, without: each of them is taken back once. */
void fixture_free_in_rivalry(void *const *blocks, int n_blocks, size_t bytes);

/* ---- Calls of HIP ---- */

/* How many there were since software()->reset_calls(). */
uint64_t fixture_all_calls(void);

/* Of them those in which the host waits. */
uint64_t fixture_calls_that_wait(void);

/* In place of hipStreamIsCapturing: every stream is captured. */
int fixture_says_captured(hipmm_stream_t stream, int *status);

/* Makes the `nth` call of a HIP function from now on fail (plugins/runtimes/software/software.h). */
void fixture_fail_call(const char *name, uint64_t nth, int code);

/* Runs `body` over the graph again and again, each time with one of the HIP calls that it makes failing, until each
 * has failed once. Nothing may be lost, whatever the failure. `body` must not assert: calls may fail in it. Returns
 * how many calls failed. */
unsigned fixture_fail_each_call(const char *runtime_options, const char *graph, void (*body)(void));

/* The descriptor of a file without a name, which the process has open in its current folder. */
int fixture_unlinked_file(void);

#endif
