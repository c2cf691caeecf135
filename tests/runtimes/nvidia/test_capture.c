/* SPDX-License-Identifier: MIT */
/* test_capture.c: the core's own calls of the driver do not end a capture that runs somewhere in the program: calls that a
 * capture forbids are made in the relaxed mode, and the thread has its own mode again afterwards. */
#include "../../../core/runtime/hip.h"
#include "runtime.h"

#include <dlfcn.h>
#include <hipmm/hipmm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct hipmm_hip *hip;

static int open_core(void **state)
{
  char setting[4200];
  (void)state;
  open_fake("fake_cuda");
  snprintf(setting, sizeof setting, "library=%s", fake_path("fake_cuda"));
  setenv("HIPMM_NVIDIA", setting, 1);
  setenv("HIPMM_RUNTIME", "nvidia", 1);
  enum hipmm_status status = hipmm_init_from_string("{\"stack\": [\"device\"]}");
  if (status) print_error("%s\n", hipmm_last_error_message());
  hip = hip_table();
  return status;
}

static int close_core(void **state)
{
  (void)state;
  return hipmm_finalize();
}

/* The driver was called for this function in that mode, and the thread is in the global mode again. */
static void check_made(const char *name, CUstreamCaptureMode mode)
{
  assert_string_equal(fake->last.name, name);
  assert_int_equal(fake->last.capture_mode, mode);
  memset(&fake->last, 0, sizeof fake->last);
  assert_ok(hip->EventRecord(POINTER(FAKE_EVENT), POINTER(FAKE_STREAM)));
  assert_int_equal(fake->last.capture_mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

static void makes_forbidden_calls_in_the_relaxed_mode(void **state)
{
  void *ptr = NULL;
  (void)state;
  set_current(POINTER(FAKE_CONTEXT(0)));
  assert_ok(hip->EventQuery(POINTER(FAKE_EVENT)));
  check_made("cuEventQuery", CU_STREAM_CAPTURE_MODE_RELAXED);
  assert_ok(hip->EventSynchronize(POINTER(FAKE_EVENT)));
  check_made("cuEventSynchronize", CU_STREAM_CAPTURE_MODE_RELAXED);
  assert_ok(hip->StreamQuery(NULL));
  check_made("cuStreamQuery", CU_STREAM_CAPTURE_MODE_RELAXED);
  assert_ok(hip->StreamSynchronize(NULL));
  check_made("cuStreamSynchronize", CU_STREAM_CAPTURE_MODE_RELAXED);
  assert_ok(hip->DeviceSynchronize());
  check_made("cuCtxSynchronize", CU_STREAM_CAPTURE_MODE_RELAXED);
  assert_ok(hip->Malloc(&ptr, 4096));
  check_made("cuMemAlloc", CU_STREAM_CAPTURE_MODE_RELAXED);
  assert_ok(hip->Free(ptr));
  check_made("cuMemFree", CU_STREAM_CAPTURE_MODE_RELAXED);
  assert_ok(hip->MallocAsync(&ptr, 4096, POINTER(FAKE_STREAM)));
  check_made("cuMemAllocAsync", CU_STREAM_CAPTURE_MODE_RELAXED);
  assert_ok(hip->FreeAsync(ptr, POINTER(FAKE_STREAM)));
  check_made("cuMemFreeAsync", CU_STREAM_CAPTURE_MODE_RELAXED);
  assert_ok(hip->MemPoolTrimTo(POINTER(FAKE_POOL), 0));
  check_made("cuMemPoolTrimTo", CU_STREAM_CAPTURE_MODE_RELAXED);
  assert_ok(hip->StreamWaitEvent(POINTER(FAKE_STREAM), POINTER(FAKE_EVENT), 0));
  check_made("cuStreamWaitEvent", CU_STREAM_CAPTURE_MODE_GLOBAL);
}

/* The driver says that this stream is captured. */
static void makes_no_call_that_ends_the_capture_of_its_stream(void **state)
{
  int (*const calls[])(hipmm_stream_t) = {hip->StreamQuery, hip->StreamSynchronize};
  (void)state;
  set_current(POINTER(FAKE_CONTEXT(0)));
  for (int i = 0; i < 2; i++) {
    assert_int_equal(calls[i](POINTER(FAKE_STREAM)), hipErrorStreamCaptureUnsupported);
    assert_string_equal(fake->last.name, "cuStreamIsCapturing");
  }
}

/* As a program that captures would. */
static CUstreamCaptureMode exchange_mode(CUstreamCaptureMode mode)
{
  CUresult (*find)(const char *name, void **address, int version, cuuint64_t flags);
  CUresult (*exchange)(CUstreamCaptureMode *);
  void *driver = dlopen(fake_path("fake_cuda"), RTLD_NOW | RTLD_NOLOAD), *symbol = dlsym(driver, "cuGetProcAddress");
  memcpy(&find, &symbol, sizeof symbol);
  assert_int_equal(find("cuThreadExchangeStreamCaptureMode", &symbol, 10010, CU_GET_PROC_ADDRESS_LEGACY_STREAM), 0);
  memcpy(&exchange, &symbol, sizeof symbol);
  assert_int_equal(exchange(&mode), 0);
  dlclose(driver);
  return mode;
}

static void keeps_a_mode_that_the_program_chose(void **state)
{
  (void)state;
  set_current(POINTER(FAKE_CONTEXT(0)));
  exchange_mode(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  fake->fails = "cuEventQuery";
  fake->failure = CUDA_ERROR_NOT_READY;
  assert_int_equal(hip->EventQuery(POINTER(FAKE_EVENT)), hipErrorNotReady);
  fake->fails = NULL;
  assert_int_equal(exchange_mode(CU_STREAM_CAPTURE_MODE_GLOBAL), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(makes_forbidden_calls_in_the_relaxed_mode),
      cmocka_unit_test(makes_no_call_that_ends_the_capture_of_its_stream),
      cmocka_unit_test(keeps_a_mode_that_the_program_chose),
  };
  return cmocka_run_group_tests(tests, open_core, close_core);
}
