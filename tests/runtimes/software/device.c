/* SPDX-License-Identifier: MIT */
/* device.c: the helpers of device.h. */
#include "device.h"
#include <sched.h>
#include <stdlib.h>

void assert_error(hipError_t error, hipError_t wanted, const char *call, const char *file, int line)
{
  if (error == wanted) return;
  print_error("%s: %s (%d), not %s (%d)\n", call, hipGetErrorName(error), (int)error, hipGetErrorName(wanted),
              (int)wanted);
  _fail(file, line);
}

struct software_config small_config(enum software_scheduler scheduler)
{
  struct software_config config = software_defaults;
  const char *seed = getenv("HIPMM_TEST_SEED");
  config.devices = 2;
  config.memory_bytes = 64 * MIB;
  config.scheduler = scheduler;
  config.seed = seed ? strtoull(seed, NULL, 10) : 1;
  return config;
}

void restart(const struct software_config *config)
{
  hipmm_software_reset();
  assert_true(software_configure(config));
  assert_ok(hipSetDevice(0));
  hipGetLastError();
  hipmm_software_reset_calls();
}

int start_threads(void **state)
{
  (void)state;
  struct software_config config = small_config(SOFTWARE_THREADS);
  restart(&config);
  return 0;
}

int start_stepped(void **state)
{
  (void)state;
  struct software_config config = small_config(SOFTWARE_STEPPED);
  restart(&config);
  return 0;
}

int finish(void **state)
{
  uint64_t lost = 0, faults = 0;
  for (int device = 0; device < software.config.devices; device++) {
    uint64_t count;
    hipmm_software_live(device, &count, NULL);
    lost += count;
    faults += hipmm_software_faults(device);
  }
  finish_untidy(state);
  if (lost || faults)
    print_error("%llu blocks lost, %llu faults\n", (unsigned long long)lost, (unsigned long long)faults);
  return lost || faults ? -1 : 0;
}

int finish_untidy(void **state)
{
  (void)state;
  hipmm_software_reset();
  return 0;
}

char *allocate(size_t bytes)
{
  void *memory = NULL;
  assert_ok(hipMalloc(&memory, bytes));
  assert_non_null(memory);
  return memory;
}

void *allocate_on(hipStream_t stream, size_t bytes)
{
  void *memory = NULL;
  assert_ok(hipMallocAsync(&memory, bytes, stream));
  assert_non_null(memory);
  return memory;
}

size_t free_bytes(void)
{
  size_t available, total;
  assert_ok(hipMemGetInfo(&available, &total));
  assert_int_equal(total, software.config.memory_bytes);
  return available;
}

hipStream_t create_stream(void)
{
  hipStream_t stream;
  assert_ok(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  return stream;
}

hipMemPool_t default_pool(void)
{
  hipMemPool_t pool;
  assert_ok(hipDeviceGetDefaultMemPool(&pool, 0));
  return pool;
}

uint64_t pool_amount(hipMemPool_t pool, hipMemPoolAttr attribute)
{
  uint64_t value = UINT64_MAX;
  assert_ok(hipMemPoolGetAttribute(pool, attribute, &value));
  return value;
}

void set_pool_amount(hipMemPool_t pool, hipMemPoolAttr attribute, uint64_t value)
{
  assert_ok(hipMemPoolSetAttribute(pool, attribute, &value));
}

bool is_filled(const char *memory, int value, size_t bytes)
{
  for (size_t i = 0; i < bytes; i++)
    if (memory[i] != (char)value) return false;
  return true;
}

int memory_type(const hipPointerAttribute_t *attributes)
{
#if HIP_VERSION_MAJOR < 6
  return (int)attributes->memoryType;
#else
  return (int)attributes->type;
#endif
}

void count_up(void *counter)
{
  __atomic_fetch_add((int *)counter, 1, __ATOMIC_SEQ_CST);
}

void wait_until_set(void *flag)
{
  while (!__atomic_load_n((int *)flag, __ATOMIC_SEQ_CST)) sched_yield();
}
