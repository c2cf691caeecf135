/* SPDX-License-Identifier: MIT */
/* test_calls.c: one valid call of each function of HIP: without a driver, and over a driver that lacks the function which
 * the call needs; and the calls that need host memory, without it. The first tests are without a driver, since a process
 * never unloads one. */
#include "calls.h"
#include <stdlib.h>
#include <string.h>

/* The linker sends the calls of the runtime and of this file here, so that the next one can fail. */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);

static bool next_allocation_fails;

static bool allocation_fails(void)
{
  bool fails = next_allocation_fails;
  next_allocation_fails = false;
  return fails;
}

void *__wrap_malloc(size_t bytes)
{
  return allocation_fails() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t bytes)
{
  return allocation_fails() ? NULL : __real_calloc(n, bytes);
}

static const struct call *call_of(const char *function)
{
  for (size_t i = 0; i < n_calls; i++)
    if (!strcmp(calls[i].function, function)) return &calls[i];
  fail_msg("no call of %s", function);
  return NULL;
}

static void assert_call(const struct call *call, hipError_t expected)
{
  hipError_t error = call->make();
  if (error != expected) fail_msg("%s: %d instead of %d", call->function, (int)error, (int)expected);
  assert_error(hipGetLastError(), expected);
}

/* The call of hipStreamAddCallback() reads it, also before the runtime has a driver. */
static int open_first(void **state)
{
  (void)state;
  open_fake("fake_cuda");
  return 0;
}

static void without_a_driver_every_function_says_so(void **state)
{
  (void)state;
  assert_error(nvidia_translate(CUDA_ERROR_NOT_PERMITTED), hipErrorUnknown); /* told to nobody: there is no log yet */
  assert_int_equal(create_runtime("libcuda-that-is-not-there.so.1"), HIPMM_E_NO_DEVICE);
  for (size_t i = 0; i < n_calls; i++) assert_call(&calls[i], hipErrorNoDevice);
}

/* The next test loads the driver, so nothing of the failure stays. */
static void without_host_memory_the_driver_is_not_loaded(void **state)
{
  (void)state;
  next_allocation_fails = true;
  assert_int_equal(create_runtime(fake_path("fake_cuda")), HIPMM_E_NO_DEVICE);
  assert_false(next_allocation_fails);
  assert_string_equal(failed_text, "out of host memory");
}

static void without_host_memory_no_callback_is_added(void **state)
{
  (void)state;
  next_allocation_fails = true;
  assert_call(call_of("hipStreamAddCallback"), hipErrorOutOfMemory);
  assert_false(next_allocation_fails);
  assert_not_called();
}

/* Whether it is the symbol's name; with "_v2", of the second symbol of that name. */
static bool is_name_of(const char *name, const struct nvidia_symbol *symbol)
{
  size_t length = strlen(symbol->name);
  bool is_second = false;
  for (const struct nvidia_symbol *before = nvidia_symbols; before < symbol; before++)
    is_second |= !strcmp(before->name, symbol->name);
  return !strncmp(name, symbol->name, length) && !strcmp(name + length, is_second ? "_v2" : "");
}

static const struct nvidia_symbol *symbol_of(const char *name)
{
  for (size_t i = 0; i < nvidia_n_symbols; i++)
    if (is_name_of(name, &nvidia_symbols[i])) return &nvidia_symbols[i];
  fail_msg("%s is no symbol", name);
  return NULL;
}

/* The function is missing as in a driver that never had it: its place in the table is empty. */
static void assert_call_without(const struct call *call, const char *missing, hipError_t expected)
{
  const struct nvidia_symbol *symbol = symbol_of(missing);
  void *kept;
  assert_true(symbol->optional);
  memcpy(&kept, symbol->slot, sizeof kept);
  memset(symbol->slot, 0, sizeof kept);
  fake->calls = 0;
  assert_call(call, expected);
  memcpy(symbol->slot, &kept, sizeof kept);
}

static void a_function_that_the_driver_lacks_is_not_supported(void **state)
{
  (void)state;
  for (size_t i = 0; i < n_calls; i++) {
    if (!calls[i].needed) continue;
    assert_call_without(&calls[i], calls[i].needed, hipErrorNotSupported);
    assert_not_called();
    assert_call(&calls[i], hipSuccess);
  }
}

/* These two are used where the driver has them, for copies that it refuses otherwise. */
static void a_copy_between_devices_that_the_driver_lacks_is_refused(void **state)
{
  (void)state;
  const struct call *now = call_of("hipMemcpyPeer"), *later = call_of("hipMemcpyPeerAsync");
  fake->failure = CUDA_ERROR_INVALID_VALUE;
  fake->fails = "cuMemcpy";
  assert_call_without(now, "cuMemcpyPeer", hipErrorInvalidValue);
  assert_call(now, hipSuccess);
  fake->fails = "cuMemcpyAsync";
  assert_call_without(later, "cuMemcpyPeerAsync", hipErrorInvalidValue);
  assert_call_without(later, "cuStreamGetCtx", hipSuccess);
}

static void the_device_of_a_stream_needs_three_functions(void **state)
{
  (void)state;
  const struct call *ask = call_of("hipStreamGetDevice");
  assert_call_without(ask, "cuCtxPushCurrent", hipErrorNotSupported);
  assert_call_without(ask, "cuCtxPopCurrent", hipErrorNotSupported);
  assert_call(ask, hipSuccess);
}

static bool is_needed(const struct nvidia_symbol *symbol)
{
  static const char *const elsewhere[] = {"cuMemcpyPeer", "cuMemcpyPeerAsync", "cuCtxPushCurrent", "cuCtxPopCurrent"};
  for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
    if (is_name_of(elsewhere[i], symbol)) return true;
  for (size_t i = 0; i < n_calls; i++)
    if (calls[i].needed && is_name_of(calls[i].needed, symbol)) return true;
  return false;
}

static void each_function_that_a_driver_may_lack_is_tested(void **state)
{
  (void)state;
  for (size_t i = 0; i < nvidia_n_symbols; i++)
    if (nvidia_symbols[i].optional && !is_needed(&nvidia_symbols[i]))
      fail_msg("no call needs %s", nvidia_symbols[i].name);
}

static int start(void **state)
{
  static bool is_started;
  if (!is_started && start_runtime(state)) return -1;
  is_started = true;
  return start_test(state);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_a_driver_every_function_says_so),
      cmocka_unit_test(without_host_memory_the_driver_is_not_loaded),
      cmocka_unit_test_setup(without_host_memory_no_callback_is_added, start),
      cmocka_unit_test_setup(a_function_that_the_driver_lacks_is_not_supported, start),
      cmocka_unit_test_setup(a_copy_between_devices_that_the_driver_lacks_is_refused, start),
      cmocka_unit_test_setup(the_device_of_a_stream_needs_three_functions, start),
      cmocka_unit_test_setup(each_function_that_a_driver_may_lack_is_tested, start),
  };
  return cmocka_run_group_tests_name("nvidia: every call", tests, open_first, NULL);
}
