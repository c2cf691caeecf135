/* SPDX-License-Identifier: MIT */
/* runtime.h: what the tests of the nvidia runtime share: the runtime over the fake driver, and checks of what the
 * driver was called for. */
#ifndef HIPMM_TESTS_RUNTIMES_NVIDIA_RUNTIME_H
#define HIPMM_TESTS_RUNTIMES_NVIDIA_RUNTIME_H

/* CMocka needs these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../../plugins/runtimes/nvidia/nvidia.h"
#include "fake_cuda.h"

extern const struct hipmm_plugin nvidia_LTX_hipmm_plugin;

/* The driver in use, and the functions of fake_cuda.h that only it has. */
extern struct fake_cuda *fake;
extern void (*set_current)(CUcontext context);
extern CUcontext (*current)(void);

/* The last messages of the runtime, of an error and of the log. */
extern enum hipmm_status failed_status;
extern char failed_option[64], failed_text[1024], logged_text[1024];

/* The path of a fake driver of this build: "fake_cuda" or "fake_cuda_11". */
const char *fake_path(const char *name);

/* Opens a fake driver for the test alone. */
void open_fake(const char *name);

/* Makes the runtime with this library as its driver; HIPMM_OK if it works. */
enum hipmm_status create_runtime(const char *library);

/* Group setup: both of the above. */
int start_runtime(void **state);

/* Setup of a test: the context of device 0 is current, no function fails, and no function was called. */
int start_test(void **state);

/* The driver was called once more: this function, with these arguments. */
#define assert_called(name, ...) check_called(name, (uint64_t[FAKE_ARGUMENTS]){__VA_ARGS__}, __FILE__, __LINE__)
void check_called(const char *name, const uint64_t *arguments, const char *file, int line);

/* The driver was not called since. */
#define assert_not_called() assert_int_equal(fake->calls, 0)

#define assert_ok(call)           assert_int_equal((call), hipSuccess)
#define assert_error(call, error) assert_int_equal((call), (error))

/* A pointer or handle from a number of fake_cuda.h. */
#define POINTER(number) ((void *)(uintptr_t)(number))

#endif
