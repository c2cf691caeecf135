/* SPDX-License-Identifier: MIT */
/* support.h: what tests of the core and of the plugins share: assertions that say what hipmm said, the software
 * runtime's steering functions, temporary folders, and runs of the test program itself as another process. */
#ifndef HIPMM_TESTS_SUPPORT_SUPPORT_H
#define HIPMM_TESTS_SUPPORT_SUPPORT_H

#include "../../tools/command/plugin/software.h"
#include <hipmm/plugin.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

#define MIB ((size_t)1 << 20)

/* The call came to this status; otherwise the test fails with what hipmm_last_error_message() says. */
#define assert_status(call, wanted) support_assert_status(call, wanted, #call, __FILE__, __LINE__)
#define assert_ok(call)             assert_status(call, HIPMM_OK)
void support_assert_status(enum hipmm_status status, enum hipmm_status wanted, const char *call, const char *file,
                           int line);

/* The thread's last message, or `text`, contains `part`. */
#define assert_message(part)        assert_contains(hipmm_last_error_message(), part)
#define assert_contains(text, part) support_assert_contains(text, part, __FILE__, __LINE__)
void support_assert_contains(const char *text, const char *part, const char *file, int line);

/* A value of the resource; asserts that it has it. */
int64_t resource_value(struct hipmm_resource *resource, const char *name);

/* ---- The runtime ---- */

/* Whether tests run on the software device as they set it up: HIPMM_RUNTIME names nothing else, and HIPMM_SOFTWARE does
 * not close its memory to them, as that of a GPU is. `make check` unsets it; the proof on a GPU (tests/lab/gpu) sets it. */
bool on_software(void);

/* End the test as skipped where it is another runtime, for tests of what only the software device can, and of its size;
 * and where there are fewer devices. Never so under `make check`, whose driver takes a skipped test for a failure. */
void needs_software(void);
void needs_devices(int count);

/* ---- The software runtime ---- */

/* The path of a plugin's shared object, for copies and dlopen(). Valid until the process ends. */
const char *plugin_file(const char *type);

/* Blocks and handles that nobody has given back to the device, or to all of them (the first 8). */
uint64_t live_on(int device);
uint64_t live_on_all_devices(void);

/* Faults: work that ran on memory which was gone. */
uint64_t faults_on_all_devices(void);

/* For main(): puts the plugins that exist for tests (tests/bad, tests/model) before ours on the path, and sends the log
 * from `level` up to a file, since it is set up once per process. */
void use_test_plugins(void);
void log_to_file(const char *level);

/* What was logged since this was last called; for as long as it is not called again. */
const char *logged(void);

/* ---- How much ---- */

/* What the environment says of a test's seed, or of how often something is done; `usual` where it says nothing. */
uint64_t number_from_environment(const char *name, uint64_t usual);

/* The least processor time of this thread, in nanoseconds, that one of `n` calls of `run` took: what a disturbance of
 * the machine prolongs does not count. */
uint64_t least_time(unsigned n, void (*run)(void));

/* ---- Files ---- */

/* A new folder under $TMPDIR, removed with all that is in it by remove_folder. To be freed. */
char *new_folder(void);
void remove_folder(char *folder);

/* "folder/name", to be freed. */
char *path_in(const char *folder, const char *name);

bool write_file(const char *file, const void *data, size_t bytes);
bool copy_file(const char *from, const char *to);

/* The whole file as text, to be freed; NULL when it cannot be read. */
char *read_file(const char *file, size_t *bytes_out);

/* The file in which this process publishes its counters, or that file's draft; to be freed. */
char *published_file(bool is_draft);

/* Closes the descriptor that the process has of the file, which hipmm opened, and opens a new file `own` in its place, as a
 * program may that closes all files. The descriptor; -1 after a failure. */
int take_place_of_file(const char *file, const char *own);

/* ---- Processes ---- */

/* How a process ended: its exit status, or -1 after a signal or when it took too long; and what it wrote. */
struct outcome {
  int status;
  char out[8192], error[8192];
};

/* Runs `run(argument)` in a fork; what it returns is the exit status. It must not assert. */
struct outcome run_forked(int (*run)(const void *argument), const void *argument);

/* Runs this program again with `arguments` (NULL-terminated, without the program's name) and with the variables
 * "NAME=value" (or "NAME" alone, to unset it) of `environment` (NULL-terminated). */
struct outcome run_again(const char *const *arguments, const char *const *environment);

#endif
