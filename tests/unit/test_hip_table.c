/* SPDX-License-Identifier: MIT */
/* Tests of core/runtime/hip_table.c and peer_access.c over a runtime that has little: this program exports what hipmm
 * needs, and of the rest the sharing of pools as ROCm had it up to 5.4: it returns success and does nothing. */
#include "../../core/runtime/hip.h"
#include "../../core/runtime/peer_access.h"
#include "../support/support.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* ---- The runtime ---- */

#define SUCCEEDS(name)         \
  HIPMM_EXPORT int name(void); \
  int name(void)               \
  {                            \
    return 0;                  \
  }
SUCCEEDS(hipGetDeviceCount)
SUCCEEDS(hipGetDevice)
SUCCEEDS(hipSetDevice)
SUCCEEDS(hipDeviceGetAttribute)
SUCCEEDS(hipDeviceGetName)
SUCCEEDS(hipDeviceSynchronize)
SUCCEEDS(hipMemGetInfo)
SUCCEEDS(hipGetLastError)
SUCCEEDS(hipGetErrorName)
SUCCEEDS(hipGetErrorString)
SUCCEEDS(hipMalloc)
SUCCEEDS(hipFree)
SUCCEEDS(hipMemcpy)
SUCCEEDS(hipMemcpyAsync)
SUCCEEDS(hipMemsetAsync)
SUCCEEDS(hipStreamCreateWithFlags)
SUCCEEDS(hipStreamDestroy)
SUCCEEDS(hipStreamSynchronize)
SUCCEEDS(hipStreamQuery)
SUCCEEDS(hipStreamWaitEvent)
SUCCEEDS(hipEventCreateWithFlags)
SUCCEEDS(hipEventDestroy)
SUCCEEDS(hipEventRecord)
SUCCEEDS(hipEventQuery)
SUCCEEDS(hipEventSynchronize)
SUCCEEDS(hipMemPoolExportToShareableHandle)

static unsigned n_imports;
static void *imported_handle;

HIPMM_EXPORT int hipMemPoolImportFromShareableHandle(void **pool, void *handle, int handle_type, unsigned flags);
int hipMemPoolImportFromShareableHandle(void **pool, void *handle, int handle_type, unsigned flags)
{
  (void)pool, (void)handle_type, (void)flags;
  n_imports++;
  imported_handle = handle;
  return 0;
}

static int version;

HIPMM_EXPORT int hipRuntimeGetVersion(int *version_out);
int hipRuntimeGetVersion(int *version_out)
{
  *version_out = version;
  return 0;
}

static int imported_fd; /* that the handle points to, or that it is */

HIPMM_EXPORT int hipMemImportFromShareableHandle(void **memory, void *shareable, int handle_type);
int hipMemImportFromShareableHandle(void **memory, void *shareable, int handle_type)
{
  (void)memory, (void)handle_type;
  n_imports++;
  imported_fd = version < 70100000 ? *(int *)shareable : (int)(intptr_t)shareable;
  return fcntl(imported_fd, F_GETFD) < 0;
}

static int find(void **state)
{
  (void)state;
  const char *missing = hip_table_find(dlopen(NULL, RTLD_NOW));
  n_imports = 0;
  if (missing) print_error("%s is missing\n", missing);
  return missing ? -1 : 0;
}

/* ---- Tests ---- */

static void names_what_a_library_lacks(void **state)
{
  (void)state;
  void *library = dlopen("libc.so.6", RTLD_NOW);
  assert_non_null(library);
  assert_string_equal(hip_table_find(library), "hipGetDeviceCount");
  dlclose(library);
}

/* Its threads have no mode of captures to relax. */
static void calls_a_runtime_without_captures(void **state)
{
  (void)state;
  void *ptr = NULL;
  assert_int_equal(hip_table_functions.Malloc(&ptr, 1000), 0);
  assert_int_equal(hip_table_functions.StreamSynchronize(NULL), 0);
  assert_int_equal(hip_table_functions.Free(ptr), 0);
  assert_null(hip_table_functions.StreamIsCapturing);
  assert_null(hip_table_functions.MallocAsync);
}

static void takes_no_success_for_a_pool(void **state)
{
  (void)state;
  int fd = 77, ends[2];
  void *const before = &fd;
  hipmm_hip_mempool_t pool = before;
  assert_int_equal(hip_table_functions.MemPoolExport(&fd, pool), HIPMM_HIP_ERROR_NOT_SUPPORTED);
  assert_int_equal(fd, 77);
  assert_int_equal(pipe(ends), 0);
  assert_int_equal(hip_table_functions.MemPoolImport(&pool, ends[0]), HIPMM_HIP_ERROR_NOT_SUPPORTED);
  assert_ptr_equal(pool, before);
  assert_int_equal(n_imports, 1);
  assert_int_equal(fcntl((int)(intptr_t)imported_handle, F_GETFD), -1); /* its copy is closed, and ours is open */
  assert_int_equal(close(ends[0]) + close(ends[1]), 0);
}

static void imports_nothing_from_a_closed_descriptor(void **state)
{
  (void)state;
  hipmm_hip_mempool_t pool = NULL;
  assert_int_equal(hip_table_functions.MemPoolImport(&pool, -1), HIPMM_HIP_ERROR_INVALID_VALUE);
  assert_int_equal(n_imports, 0);
}

/* The address of a descriptor up to HIP 7.0, and its value from 7.1 on, of which no value may be NULL. */
static void imports_memory_as_the_runtime_takes_it(void **state)
{
  (void)state;
  static const int versions[] = {50221153, 60443482, 70051831, 70100000, 70226015};
  hipmm_hip_chunk_t memory = NULL;
  for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
    version = versions[i];
    assert_int_equal(hip_table_read_version(), 0);
    assert_int_equal(hip_table_functions.MemImport(&memory, STDIN_FILENO), 0);
    if (version < 70100000)
      assert_int_equal(imported_fd, STDIN_FILENO);
    else
      assert_true(imported_fd > STDERR_FILENO && fcntl(imported_fd, F_GETFD) < 0); /* the copy is closed */
    assert_int_equal(n_imports, i + 1);
  }
  assert_int_equal(hip_table_functions.MemImport(&memory, -1), HIPMM_HIP_ERROR_INVALID_VALUE);
  assert_int_equal(n_imports, sizeof versions / sizeof *versions);
}

static void remembers_the_peers_of_devices_that_there_may_be(void **state)
{
  (void)state;
  static const int none[] = {-1, 64, 127};
  peer_access_record(1, 0);
  peer_access_record(2, 63);
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    peer_access_record(none[i], 0);
    peer_access_record(0, none[i]);
    peer_access_forget(none[i]);
    assert_false(peer_access_is_recorded(none[i], 0));
    assert_false(peer_access_is_recorded(0, none[i]));
  }
  assert_true(peer_access_is_recorded(1, 0));
  assert_true(peer_access_is_recorded(2, 63));
  peer_access_forget(0);
  assert_false(peer_access_is_recorded(1, 0));
  peer_access_forget(2);
  assert_false(peer_access_is_recorded(2, 63));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names_what_a_library_lacks),
      cmocka_unit_test_setup(calls_a_runtime_without_captures, find),
      cmocka_unit_test_setup(takes_no_success_for_a_pool, find),
      cmocka_unit_test_setup(imports_nothing_from_a_closed_descriptor, find),
      cmocka_unit_test_setup(imports_memory_as_the_runtime_takes_it, find),
      cmocka_unit_test(remembers_the_peers_of_devices_that_there_may_be),
  };
  return cmocka_run_group_tests_name("hip table", tests, NULL, NULL);
}
