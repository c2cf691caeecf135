/* SPDX-License-Identifier: MIT */
/* device.h: what the tests of the software device share: a device in its initial state with either scheduler, and the
 * check that nothing is lost at the end. Never used outside tests/runtimes/software. */
#ifndef HIPMM_TESTS_RUNTIMES_SOFTWARE_DEVICE_H
#define HIPMM_TESTS_RUNTIMES_SOFTWARE_DEVICE_H

#include "../../../plugins/runtimes/software/internal.h"
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* HIP deprecates different names for pinned memory in different versions; all are tested. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define MIB ((size_t)1 << 20)

/* `call` returned `error`. */
#define assert_hip(call, error) assert_error(call, error, #call, __FILE__, __LINE__)
#define assert_ok(call)         assert_hip(call, hipSuccess)
void assert_error(hipError_t error, hipError_t wanted, const char *call, const char *file, int line);

/* Setups of tests: two devices of 64 MiB, with the defaults otherwise. Stepped draws its seed from HIPMM_TEST_SEED. */
int start_threads(void **state);
int start_stepped(void **state);
/* Configures the device again, in a test that is set up. */
void restart(const struct software_config *config);
struct software_config small_config(enum software_scheduler scheduler);

/* Teardown: fails if memory is live on a device, or if a fault happened that the test did not clear. */
int finish(void **state);
/* Teardown of tests that make faults or leave memory behind on purpose. */
int finish_untidy(void **state);

/* Memory of `bytes` on the current device; and by a stream, from the device's pool. */
char *allocate(size_t bytes);
void *allocate_on(hipStream_t stream, size_t bytes);

/* What the current device has free. */
size_t free_bytes(void);

/* A non-blocking stream. */
hipStream_t create_stream(void);

/* The default pool of device 0; and attributes of pools that are numbers of bytes. */
hipMemPool_t default_pool(void);
uint64_t pool_amount(hipMemPool_t pool, hipMemPoolAttr attribute);
void set_pool_amount(hipMemPool_t pool, hipMemPoolAttr attribute, uint64_t value);

/* Whether all bytes are `value`. */
bool is_filled(const char *memory, int value, size_t bytes);

/* The field that HIP 6 renamed. */
int memory_type(const hipPointerAttribute_t *attributes);

/* A host function that counts in the int it is given, and one that waits until that int is not 0. */
void count_up(void *counter);
void wait_until_set(void *flag);

#endif
