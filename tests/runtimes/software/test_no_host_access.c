/* SPDX-License-Identifier: MIT */
/* test_no_host_access.c: memory that the application cannot touch ("host_access": false): copies and fills work,
 * wherever the memory lies, and a program that touches it dies. */
#include "device.h"
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 3 << 20, GRANULE = 2 << 20 };

static int start_without_host_access(void **state)
{
  struct software_config config = small_config(*state ? SOFTWARE_STEPPED : SOFTWARE_THREADS);
  config.no_host_access = true;
  restart(&config);
  return 0;
}

static bool holds(const void *memory, int value, size_t bytes)
{
  char *copy = malloc(bytes);
  memset(copy, ~value, bytes);
  bool good = hipMemcpy(copy, memory, bytes, hipMemcpyDeviceToHost) == hipSuccess && is_filled(copy, value, bytes);
  free(copy);
  return good;
}

/* Fills, copies from and to the host, and copies between two ranges that overlap. */
static void check_work_on(char *memory, size_t bytes)
{
  size_t half = bytes / 2;
  char *host = malloc(bytes);
  hipStream_t stream;
  assert_ok(hipStreamCreate(&stream));
  assert_ok(hipMemsetAsync(memory, 0x31, bytes, stream));
  assert_ok(hipMemsetAsync(memory + 1, 0x32, half, stream));
  assert_ok(hipStreamSynchronize(stream));
  assert_true(holds(memory, 0x31, 1) && holds(memory + 1, 0x32, half) &&
              holds(memory + 1 + half, 0x31, bytes - half - 1));
  for (size_t i = 0; i < bytes; i++) host[i] = (char)(i * 7 + i / 1000);
  assert_ok(hipMemcpyAsync(memory, host, bytes, hipMemcpyHostToDevice, stream)); /* staged */
  assert_ok(hipMemcpyAsync(memory + 5, memory, bytes - 5, hipMemcpyDeviceToDevice, stream));
  memset(host, 0, bytes);
  assert_ok(hipMemcpyAsync(host, memory, bytes, hipMemcpyDeviceToHost, stream));
  assert_ok(hipStreamSynchronize(stream));
  for (size_t i = 5; i < bytes; i += 111) assert_int_equal(host[i], (char)((i - 5) * 7 + (i - 5) / 1000));
  assert_ok(hipMemset2DAsync(memory, bytes / 4, 0x33, 100, 4, stream));
  assert_ok(hipMemcpy2DAsync(host, 200, memory, bytes / 4, 200, 4, hipMemcpyDeviceToHost, stream));
  assert_ok(hipStreamSynchronize(stream));
  for (size_t i = 0; i < 4; i++) assert_true(is_filled(host + i * 200, 0x33, 100) && host[i * 200 + 199] != 0x33);
  assert_ok(hipMemsetD32((hipDeviceptr_t)memory, 0x01020304, bytes / 4));
  assert_ok(hipMemcpy(host, memory, bytes, hipMemcpyDeviceToHost));
  for (size_t i = 0; i < bytes / 4; i += 997) assert_int_equal(((int *)(void *)host)[i], 0x01020304);
  assert_ok(hipStreamDestroy(stream));
  free(host);
}

/* The signal that ends a process that reads the memory; 0 for none. */
static int signal_of_touching(const volatile char *memory)
{
  int status = 0;
  pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
    _exit(memory[0] ? 1 : 0);
  }
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void device_memory_is_worked_on_and_not_touched(void **state)
{
  (void)state;
  char *memory = allocate(BYTES);
  check_work_on(memory, BYTES);
  assert_int_equal(signal_of_touching(memory), SIGSEGV);
  assert_ok(hipFree(memory));
}

static void pooled_memory_too(void **state)
{
  (void)state;
  void *memory;
  assert_ok(hipMallocAsync(&memory, BYTES, NULL));
  check_work_on(memory, BYTES);
  assert_int_equal(signal_of_touching(memory), SIGSEGV);
  assert_ok(hipFreeAsync(memory, NULL));
  assert_ok(hipDeviceSynchronize());
}

/* One copy or fill spans several mappings. */
static void mapped_memory_too(void **state)
{
  (void)state;
  enum { PIECES = 3 };
  void *memory;
  hipMemGenericAllocationHandle_t pieces[PIECES];
  hipMemAllocationProp prop = {.type = hipMemAllocationTypePinned, .location = {hipMemLocationTypeDevice, 0}};
  hipMemAccessDesc access = {.location = {hipMemLocationTypeDevice, 0}, .flags = hipMemAccessFlagsProtReadWrite};
  assert_ok(hipMemAddressReserve(&memory, PIECES * GRANULE, 0, NULL, 0));
  for (int i = 0; i < PIECES; i++) assert_ok(hipMemCreate(&pieces[i], GRANULE, &prop, 0));
  for (int i = 0; i < PIECES; i++)
    assert_ok(hipMemMap((char *)memory + i * GRANULE, GRANULE, 0, pieces[PIECES - 1 - i], 0));
  assert_ok(hipMemSetAccess(memory, PIECES * GRANULE, &access, 1));
  check_work_on(memory, PIECES * GRANULE);
  assert_int_equal(signal_of_touching(memory), SIGSEGV);
  assert_ok(hipMemUnmap(memory, PIECES * GRANULE));
  for (int i = 0; i < PIECES; i++) assert_ok(hipMemRelease(pieces[i]));
  assert_ok(hipMemAddressFree(memory, PIECES * GRANULE));
}

static void pinned_and_managed_memory_stays_the_hosts(void **state)
{
  (void)state;
  void *pinned, *managed;
  char *memory = allocate(BYTES);
  assert_ok(hipHostMalloc(&pinned, BYTES, 0));
  assert_ok(hipMallocManaged(&managed, BYTES, hipMemAttachGlobal));
  memset(pinned, 1, BYTES);
  memset(managed, 2, BYTES);
  assert_ok(hipMemcpyAsync(memory, pinned, BYTES, hipMemcpyDefault, NULL));
  assert_ok(hipMemcpyAsync(managed, memory, BYTES, hipMemcpyDefault, NULL));
  assert_ok(hipDeviceSynchronize());
  assert_true(is_filled(managed, 1, BYTES));
  assert_ok(hipFree(memory));
  assert_ok(hipFree(managed));
  assert_ok(hipHostFree(pinned));
}

#define BOTH(test)                                                                            \
  {#test ": threads", test, start_without_host_access, finish, NULL},                         \
  {                                                                                           \
#test ": stepped", test, start_without_host_access, finish, (void *)(uintptr_t) "stepped" \
  }

int main(void)
{
  const struct CMUnitTest tests[] = {
      BOTH(device_memory_is_worked_on_and_not_touched),
      BOTH(pooled_memory_too),
      BOTH(mapped_memory_too),
      BOTH(pinned_and_managed_memory_stays_the_hosts),
  };
  return cmocka_run_group_tests_name("software: no host access", tests, NULL, NULL);
}
