/* SPDX-License-Identifier: MIT */
/* program_pools.c: what the HIP program does with pools of the driver. */
#include "program.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

enum { KIB = 1 << 10, MIB = 1 << 20 };

/* Memory of one device is allocated in the order of a stream of another device. */
void scenario_pool_streams(void)
{
  static unsigned char host[64 * KIB];
  hipMemPool_t pool;
  hipStream_t streams[2];
  hipPointerAttribute_t attributes;
  unsigned char *memory;
  for (int device = 0; device < 2; device++) {
    GOOD(hipSetDevice(device));
    GOOD(hipStreamCreate(&streams[device]));
  }
  for (int i = 0; i < 8; i++) {
    int owner = i % 2, other = !owner;
    GOOD(hipDeviceGetDefaultMemPool(&pool, owner));
    GOOD(hipSetDevice(i / 2 % 2)); /* each of the two in turn */
    GOOD(hipMallocFromPoolAsync((void **)&memory, sizeof host, pool, streams[other]));
    GOOD(hipPointerGetAttributes(&attributes, memory));
    CHECK(attributes.device == owner);
    GOOD(hipSetDevice(owner));
    GOOD(hipMemset(memory, i, sizeof host));
    GOOD(hipMemcpy(host, memory, sizeof host, hipMemcpyDeviceToHost));
    CHECK(all_are(host, sizeof host, i));
    GOOD(hipFreeAsync(memory, streams[other]));
  }
  for (int device = 0; device < 2; device++) GOOD(hipStreamDestroy(streams[device]));
}

/* A device uses memory of a pool that gives it access, allocated before and after the access was given. */
void scenario_pool_access(void)
{
  static unsigned char host[64 * KIB];
  hipMemPool_t pools[2];
  hipMemPoolProps props = {.allocType = hipMemAllocationTypePinned,
                           .location = {.type = hipMemLocationTypeDevice, .id = 0}};
  hipMemAccessDesc access = {.location = {.type = hipMemLocationTypeDevice, .id = 1},
                             .flags = hipMemAccessFlagsProtReadWrite};
  GOOD(hipDeviceGetDefaultMemPool(&pools[0], 0));
  GOOD(hipMemPoolCreate(&pools[1], &props));
  for (int i = 0; i < 2; i++) {
    void *memory[2];
    hipMemAccessFlags flags = hipMemAccessFlagsProtNone;
    GOOD(hipSetDevice(0));
    GOOD(hipMallocFromPoolAsync(&memory[0], sizeof host, pools[i], NULL));
    GOOD(hipMemPoolSetAccess(pools[i], &access, 1));
    GOOD(hipMemPoolGetAccess(&flags, pools[i], &access.location));
    CHECK(flags == hipMemAccessFlagsProtReadWrite);
    GOOD(hipMallocFromPoolAsync(&memory[1], sizeof host, pools[i], NULL));
    GOOD(hipStreamSynchronize(NULL));
    GOOD(hipSetDevice(1));
    for (int block = 0; block < 2; block++) {
      GOOD(hipMemset(memory[block], 10 * i + block + 1, sizeof host));
      GOOD(hipMemcpy(host, memory[block], sizeof host, hipMemcpyDeviceToHost));
      CHECK(all_are(host, sizeof host, 10 * i + block + 1));
    }
    for (int block = 0; block < 2; block++) GOOD(hipFree(memory[block]));
  }
  GOOD(hipMemPoolDestroy(pools[1]));
}

static uint64_t ask(hipMemPool_t pool, hipMemPoolAttr attribute)
{
  uint64_t value = 0;
  GOOD(hipMemPoolGetAttribute(pool, attribute, &value));
  return value;
}

static void check_usage(int line, hipMemPool_t pool, uint64_t bytes, uint64_t peak)
{
  uint64_t used = ask(pool, hipMemPoolAttrUsedMemCurrent), most = ask(pool, hipMemPoolAttrUsedMemHigh);
  if (used == bytes && most == peak) return;
  complain(__FILE__, line, "used are %llu and at most %llu instead of %llu and %llu", (unsigned long long)used,
           (unsigned long long)most, (unsigned long long)bytes, (unsigned long long)peak);
}

#define USAGE(pool, bytes, peak) check_usage(__LINE__, pool, bytes, peak)

/* A pool's attributes count all memory allocated from it, be it from hipmm or from the runtime. */
void scenario_pool_usage(void)
{
  hipMemPool_t pool, own, is;
  hipMemPoolProps props = {.allocType = hipMemAllocationTypePinned,
                           .location = {.type = hipMemLocationTypeDevice, .id = 0}};
  void *first, *second, *third;
  uint64_t zero = 0;
  GOOD(hipMallocAsync(&first, 64 * KIB, NULL));
  GOOD(hipDeviceGetMemPool(&own, 0));
  USAGE(own, 64 * KIB, 64 * KIB);
  GOOD(hipMemPoolCreate(&pool, &props));
  GOOD(hipMallocFromPoolAsync(&second, 128 * KIB, pool, NULL));
  GOOD(hipMallocFromPoolAsync(&third, 4 * KIB, pool, NULL));
  USAGE(pool, 132 * KIB, 132 * KIB);
  CHECK(ask(pool, hipMemPoolAttrReservedMemCurrent) >= 132 * KIB);
  GOOD(hipFreeAsync(third, NULL));
  USAGE(pool, 128 * KIB, 132 * KIB);
  GOOD(hipMemPoolSetAttribute(pool, hipMemPoolAttrUsedMemHigh, &zero));
  USAGE(pool, 128 * KIB, 128 * KIB);
  CHECK(ask(pool, hipMemPoolAttrReservedMemHigh) >= 132 * KIB);
  USAGE(own, 64 * KIB, 64 * KIB);
  GOOD(hipDeviceSetMemPool(0, pool));
  GOOD(hipMallocAsync(&third, 4 * KIB, NULL));
  USAGE(pool, 132 * KIB, 132 * KIB);
  USAGE(own, 64 * KIB, 64 * KIB);
  GOOD(hipFree(third));
  GOOD(hipFree(first));
  USAGE(pool, 128 * KIB, 132 * KIB);
  USAGE(own, 0, 64 * KIB);
  GOOD(hipMemPoolDestroy(pool)); /* which is current, and has a live block */
  GOOD(hipDeviceGetMemPool(&is, 0));
  CHECK(is == own);
  GOOD(hipMallocAsync(&first, 4 * KIB, NULL));
  USAGE(own, 4 * KIB, 64 * KIB);
  GOOD(hipFreeAsync(first, NULL));
  GOOD(hipFreeAsync(second, NULL));
  props.handleTypes = hipMemHandleTypePosixFileDescriptor;
  GOOD(hipMemPoolCreate(&pool, &props));
  GOOD(hipDeviceSetMemPool(0, pool));
  GOOD(hipMallocAsync(&first, 4 * KIB, NULL)); /* passed on: the pool can be shared */
  hipMemPoolPtrExportData data;
  GOOD(hipMemPoolExportPointer(&data, first));
  USAGE(pool, 4 * KIB, 4 * KIB);
  GOOD(hipFreeAsync(first, NULL));
  GOOD(hipStreamSynchronize(NULL));
  GOOD(hipDeviceSetMemPool(0, own));
  GOOD(hipMemPoolDestroy(pool));
  GOOD(hipMallocAsync(&first, 4 * KIB, NULL));
  USAGE(own, 4 * KIB, 64 * KIB);
  GOOD(hipFreeAsync(first, NULL));
}

/* Of HIP 7.2 and later. */
hipError_t hipMemGetDefaultMemPool(hipMemPool_t *pool, hipMemLocation *location, hipMemAllocationType type);
hipError_t hipMemGetMemPool(hipMemPool_t *pool, hipMemLocation *location, hipMemAllocationType type);
hipError_t hipMemSetMemPool(hipMemLocation *location, hipMemAllocationType type, hipMemPool_t pool);

/* The pools that a program gets by location are those that it gets by device. */
void scenario_pool_locations(void)
{
  const hipMemAllocationType pinned = hipMemAllocationTypePinned, managed = (hipMemAllocationType)2;
  hipMemPool_t pools[3], own;
  hipMemPoolProps props = {.allocType = pinned, .location = {.type = hipMemLocationTypeDevice, .id = 0}};
  hipMemLocation device = props.location, host = {.type = (hipMemLocationType)2};
  void *memory[4];
  GOOD(hipMemGetDefaultMemPool(&pools[0], &device, pinned));
  GOOD(hipMallocFromPoolAsync(&memory[0], 64 * KIB, pools[0], NULL));
  USAGE(pools[0], 64 * KIB, 64 * KIB);
  GOOD(hipMallocAsync(&memory[1], 64 * KIB, NULL));
  USAGE(pools[0], 128 * KIB, 128 * KIB);
  GOOD(hipMemPoolCreate(&own, &props));
  GOOD(hipMemSetMemPool(&device, pinned, own));
  GOOD(hipMemGetMemPool(&pools[1], &device, pinned));
  GOOD(hipDeviceGetMemPool(&pools[2], 0));
  CHECK(pools[1] == own && pools[2] == own);
  GOOD(hipMallocAsync(&memory[2], 4 * KIB, NULL));
  USAGE(own, 4 * KIB, 4 * KIB);
  USAGE(pools[0], 128 * KIB, 128 * KIB);
  GOOD(hipDeviceGetDefaultMemPool(&pools[1], 0));
  CHECK(pools[1] == pools[0]);
  GOOD(hipMemGetMemPool(&pools[1], &device, managed)); /* the runtime's */
  CHECK(pools[1] != pools[0]);
  GOOD(hipMallocFromPoolAsync(&memory[3], 4 * KIB, pools[1], NULL));
  USAGE(pools[1], 4 * KIB, 4 * KIB);
  EXPECT(hipErrorInvalidValue, hipMemGetMemPool(&pools[1], &host, pinned));
  EXPECT(hipErrorInvalidValue, hipMemSetMemPool(&device, managed, own));
  hipGetLastError();
  for (int i = 0; i < 4; i++) GOOD(hipFreeAsync(memory[i], NULL));
  GOOD(hipStreamSynchronize(NULL));
  GOOD(hipMemPoolDestroy(own));
  GOOD(hipMemGetMemPool(&pools[1], &device, pinned));
  CHECK(pools[1] == pools[0]);
}

static void check_reserved(int line, hipMemPool_t pool, uint64_t bytes, uint64_t peak)
{
  uint64_t reserved = ask(pool, hipMemPoolAttrReservedMemCurrent), most = ask(pool, hipMemPoolAttrReservedMemHigh);
  if (reserved == bytes && most == peak) return;
  complain(__FILE__, line, "reserved are %llu and at most %llu instead of %llu and %llu", (unsigned long long)reserved,
           (unsigned long long)most, (unsigned long long)bytes, (unsigned long long)peak);
}

#define RESERVED(pool, bytes, peak) check_reserved(__LINE__, pool, bytes, peak)

/* What a pool has reserved is its own: hipMalloc() does not change it. Freed memory is reserved up to the threshold. What was
 * above the threshold is not reserved again when the threshold rises. */
void scenario_pool_reserved(void)
{
  hipMemPool_t pool;
  void *other, *memory;
  uint64_t zero = 0, threshold = MIB;
  GOOD(hipDeviceGetDefaultMemPool(&pool, 0));
  RESERVED(pool, 0, 0);
  GOOD(hipMalloc(&other, MIB));
  RESERVED(pool, 0, 0);
  GOOD(hipFree(other));
  RESERVED(pool, 0, 0);
  GOOD(hipMallocAsync(&memory, 64 * KIB, NULL));
  RESERVED(pool, 64 * KIB, 64 * KIB);
  GOOD(hipFreeAsync(memory, NULL));
  GOOD(hipStreamSynchronize(NULL));
  RESERVED(pool, 0, 64 * KIB);
  GOOD(hipMemPoolSetAttribute(pool, hipMemPoolAttrReservedMemHigh, &zero));
  RESERVED(pool, 0, 0);
  GOOD(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &threshold));
  RESERVED(pool, 0, 0);
  GOOD(hipMallocAsync(&memory, 64 * KIB, NULL));
  GOOD(hipFreeAsync(memory, NULL));
  GOOD(hipStreamSynchronize(NULL));
  RESERVED(pool, 64 * KIB, 64 * KIB);
  GOOD(hipMallocAsync(&memory, 16 * KIB, NULL));
  RESERVED(pool, 64 * KIB, 64 * KIB);
  GOOD(hipFreeAsync(memory, NULL));
  GOOD(hipStreamSynchronize(NULL));
  threshold = 16 * KIB;
  GOOD(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &threshold));
  RESERVED(pool, 16 * KIB, 64 * KIB);
  threshold = MIB;
  GOOD(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &threshold));
  RESERVED(pool, 16 * KIB, 64 * KIB);
  GOOD(hipMemPoolTrimTo(pool, 0));
  RESERVED(pool, 0, 64 * KIB);
}

void scenario_pools(void)
{
  hipMemPool_t pool;
  hipMemPoolProps props = {.allocType = hipMemAllocationTypePinned,
                           .location = {.type = hipMemLocationTypeDevice, .id = 0}};
  void *memory;
  GOOD(hipMemPoolCreate(&pool, &props));
  GOOD(hipMallocFromPoolAsync(&memory, KIB, pool, NULL)); /* served */
  GOOD(hipFreeAsync(memory, NULL));
  GOOD(hipMemPoolDestroy(pool));
  props.handleTypes = hipMemHandleTypePosixFileDescriptor;
  GOOD(hipMemPoolCreate(&pool, &props));
  GOOD(hipMallocFromPoolAsync(&memory, KIB, pool, NULL)); /* passed on: it is to be shared */
  hipMemPoolPtrExportData data;
  GOOD(hipMemPoolExportPointer(&data, memory));
  GOOD(hipFreeAsync(memory, NULL));
  GOOD(hipStreamSynchronize(NULL));
  GOOD(hipMemPoolDestroy(pool));
  GOOD(hipDeviceGetDefaultMemPool(&pool, 0));
  GOOD(hipMallocFromPoolAsync(&memory, KIB, pool, NULL)); /* served */
  EXPECT(hipErrorNotSupported, hipMemPoolExportPointer(&data, memory));
  GOOD(hipFreeAsync(memory, NULL));
}

/* ---- Limits, reuse, trimming ---- */

/* A pool with a limit of its own keeps it. HIP 5.2 has no name for the member, which comes after the pointer. */
void scenario_pool_limits(void)
{
  hipMemPool_t pool;
  hipMemPoolProps props = {.allocType = hipMemAllocationTypePinned,
                           .location = {.type = hipMemLocationTypeDevice, .id = 0}};
  size_t most = 4 * MIB;
  void *first, *second;
  memcpy((char *)&props + offsetof(hipMemPoolProps, win32SecurityAttributes) + sizeof(void *), &most, sizeof most);
  GOOD(hipMemPoolCreate(&pool, &props));
  GOOD(hipMallocFromPoolAsync(&first, 3 * MIB, pool, NULL));
  EXPECT(hipErrorOutOfMemory, hipMallocFromPoolAsync(&second, 3 * MIB, pool, NULL));
  GOOD(hipFreeAsync(first, NULL));
  GOOD(hipStreamSynchronize(NULL));
  GOOD(hipMemPoolDestroy(pool));
}

static void set_reuse(hipMemPool_t pool, int is_allowed)
{
  GOOD(hipMemPoolSetAttribute(pool, hipMemPoolReuseAllowOpportunistic, &is_allowed));
}

/* While a way of reuse is forbidden, allocations from the pool go to the runtime. */
void scenario_pool_reuse(void)
{
  hipMemPool_t pool;
  void *first, *second, *third;
  GOOD(hipDeviceGetDefaultMemPool(&pool, 0));
  GOOD(hipMallocAsync(&first, KIB, NULL)); /* served */
  set_reuse(pool, 0);
  USAGE(pool, KIB, KIB);
  GOOD(hipMallocAsync(&second, KIB, NULL));              /* passed on */
  GOOD(hipMallocFromPoolAsync(&third, KIB, pool, NULL)); /* passed on */
  CHECK(ask(pool, hipMemPoolAttrUsedMemCurrent) >= 3 * KIB);
  GOOD(hipFreeAsync(first, NULL));
  GOOD(hipFreeAsync(second, NULL));
  GOOD(hipFreeAsync(third, NULL));
  set_reuse(pool, 1);
  GOOD(hipMallocAsync(&first, KIB, NULL)); /* served */
  GOOD(hipFreeAsync(first, NULL));
}

static void wait_for(void *closure)
{
  while (!atomic_load((atomic_int *)closure)) continue;
}

/* Run with a pool. Memory that the program has freed is reserved until it is trimmed; while a stream has work, trimming
 * does nothing, and does not wait. */
void scenario_pool_trim(void)
{
  hipMemPool_t pool;
  hipMemPoolProps props = {.allocType = hipMemAllocationTypePinned,
                           .location = {.type = hipMemLocationTypeDevice, .id = 0}};
  atomic_int go = 0;
  hipStream_t stream;
  void *large, *small, *other;
  uint64_t held = 128 * MIB;
  GOOD(hipStreamCreate(&stream));
  GOOD(hipMemPoolCreate(&pool, &props));
  GOOD(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &held));
  GOOD(hipMalloc(&other, 8 * MIB));
  GOOD(hipMallocFromPoolAsync(&large, 32 * MIB, pool, stream));
  GOOD(hipMallocFromPoolAsync(&small, 4 * KIB, pool, stream));
  GOOD(hipLaunchHostFunc(stream, wait_for, &go));
  GOOD(hipFreeAsync(large, stream));
  uint64_t before = ask(pool, hipMemPoolAttrReservedMemCurrent);
  CHECK(before >= 32 * MIB + 4 * KIB);
  GOOD(hipMemPoolTrimTo(pool, 4 * KIB));
  CHECK(ask(pool, hipMemPoolAttrReservedMemCurrent) == before);
  atomic_store(&go, 1);
  GOOD(hipStreamSynchronize(stream));
  CHECK(ask(pool, hipMemPoolAttrReservedMemCurrent) == before);
  GOOD(hipMemPoolTrimTo(pool, 128 * MIB));
  CHECK(ask(pool, hipMemPoolAttrReservedMemCurrent) == before);
  GOOD(hipMemPoolTrimTo(pool, 4 * KIB));
  uint64_t after = ask(pool, hipMemPoolAttrReservedMemCurrent);
  CHECK(after >= 4 * KIB && after <= before - 32 * MIB);
  CHECK(ask(pool, hipMemPoolAttrReservedMemHigh) >= before);
  USAGE(pool, 4 * KIB, 32 * MIB + 4 * KIB);
  GOOD(hipMemset(small, 3, 4 * KIB));
  GOOD(hipMemset(other, 3, 8 * MIB));
  GOOD(hipFree(other));
  GOOD(hipFreeAsync(small, stream));
  GOOD(hipMemPoolDestroy(pool));
  GOOD(hipStreamDestroy(stream));
  EXPECT(hipErrorInvalidValue, hipMemPoolTrimTo(NULL, 0));
}
