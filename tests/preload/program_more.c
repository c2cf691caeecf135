/* SPDX-License-Identifier: MIT */
/* program_more.c: what the HIP program does wrong, asks, and does with memory of other kinds. */
#include "program.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { KIB = 1 << 10, MIB = 1 << 20 };

/* Run with a limit of 4 MiB. */
void scenario_shortage(void)
{
  void *memory = (void *)8, *small;
  EXPECT(hipErrorOutOfMemory, hipMalloc(&memory, 5 * MIB));
  CHECK(memory == (void *)8);
  EXPECT(hipErrorOutOfMemory, hipPeekAtLastError());
  EXPECT(hipErrorOutOfMemory, hipGetLastError());
  GOOD(hipGetLastError());
  EXPECT(hipErrorOutOfMemory, hipMalloc(&memory, SIZE_MAX));
  EXPECT(hipErrorOutOfMemory, hipMallocAsync(&memory, SIZE_MAX / 2, NULL));
  EXPECT(hipErrorInvalidValue, hipMemset((void *)16, 0, 4)); /* a later error of the runtime's own is the last one */
  EXPECT(hipErrorInvalidValue, hipGetLastError());
  GOOD(hipGetLastError());
  GOOD(hipMalloc(&small, 3 * MIB));
  EXPECT(hipErrorOutOfMemory, hipMalloc(&memory, 2 * MIB));
  GOOD(hipFree(small));
  GOOD(hipMalloc(&memory, 2 * MIB));
  GOOD(hipFree(memory));
}

/* Run with a pool. */
void scenario_wrong(void)
{
  void *first, *second;
  unsigned char host[KIB];
  GOOD(hipMalloc(&first, KIB));
  GOOD(hipMalloc(&second, KIB));
  GOOD(hipMemset(second, 5, KIB));
  EXPECT(hipErrorInvalidValue, hipFree((char *)second + 256));
  EXPECT(hipErrorInvalidValue, hipFree(host));
  GOOD(hipFree(first));
  EXPECT(hipErrorInvalidValue, hipFree(first)); /* the pool's own memory may begin there */
  EXPECT(hipErrorInvalidValue, hipGetLastError());
  EXPECT(hipErrorInvalidValue, hipFreeAsync(first, NULL));
  GOOD(hipMemcpy(host, second, KIB, hipMemcpyDeviceToHost));
  CHECK(all_are(host, KIB, 5));
  GOOD(hipFreeAsync(second, NULL));
  EXPECT(hipErrorInvalidValue, hipFreeAsync(second, NULL));
  GOOD(hipMalloc(&first, KIB));
  GOOD(hipFree(first));
}

/* Run on a device of 64 MiB: with a `limiting` of 16 MiB on a pool, or a pool of at most 16 MiB. */
void scenario_info(void)
{
  size_t free_bytes, total_bytes;
  void *memory;
  GOOD(hipMemGetInfo(&free_bytes, &total_bytes));
  CHECK(total_bytes == 16 * MIB && free_bytes == 16 * MIB);
  GOOD(hipMalloc(&memory, 5 * MIB));
  GOOD(hipMemGetInfo(&free_bytes, &total_bytes));
  CHECK(total_bytes == 16 * MIB && free_bytes == 11 * MIB);
  GOOD(hipFree(memory));
  GOOD(hipMemGetInfo(&free_bytes, &total_bytes));
  CHECK(free_bytes == 16 * MIB);
}

/* Run with a pool that has much more than the program asks for. */
void scenario_ranges(void)
{
  void *memory, *base;
  size_t bytes, free_bytes, total_bytes;
  GOOD(hipMalloc(&memory, 5000));
  GOOD(hipMemGetAddressRange(&base, &bytes, (char *)memory + 4999));
  CHECK(base == memory && bytes == 5000);
  GOOD(hipMemGetAddressRange(NULL, &bytes, memory));
  EXPECT(hipErrorNotFound, hipMemGetAddressRange(&base, &bytes, &bytes));
  bytes = 0;
  GOOD(hipMemPtrGetInfo(memory, &bytes));
  CHECK(bytes == 5000);
  hipPointerAttribute_t attributes;
  GOOD(hipPointerGetAttributes(&attributes, memory));
  CHECK(attributes.device == 0);
  GOOD(hipMemGetInfo(&free_bytes, &total_bytes));
  CHECK(total_bytes - free_bytes == 5000); /* what the pool has idle is free */
  GOOD(hipFree(memory));
}

/* Through the runtime itself. */
void scenario_host(void)
{
  unsigned char *memory;
  GOOD(hipHostMalloc((void **)&memory, KIB, 0));
  memset(memory, 1, KIB);
  GOOD(hipHostFree(memory));
  GOOD(hipHostAlloc((void **)&memory, KIB, hipHostMallocPortable));
  GOOD(hipHostFree(memory));
  GOOD(hipMallocHost((void **)&memory, KIB));
  GOOD(hipFreeHost(memory));
  GOOD(hipMallocManaged((void **)&memory, KIB, hipMemAttachGlobal));
  memset(memory, 1, KIB);
  GOOD(hipFree(memory));
}

/* Run with resources called "managed" and "pinned". */
/* Not declared by the headers of HIP before 6.3. */
hipError_t hipExtHostAlloc(void **ptr, size_t bytes, unsigned flags);

/* Whatever the resource asks the runtime for, the flags are those that the program gave. */
void scenario_host_flags(void)
{
  static const unsigned given[] = {0, hipHostMallocPortable, hipHostMallocMapped, hipHostMallocWriteCombined};
  unsigned char host;
  unsigned char *pinned;
  unsigned flags;
  void *device;
  for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
    GOOD(hipExtHostAlloc((void **)&pinned, KIB, given[i]));
    memset(pinned, 5, KIB);
    flags = ~0U;
    GOOD(hipHostGetFlags(&flags, pinned));
    CHECK(flags == given[i]);
    flags = ~0U;
    GOOD(hipHostGetFlags(&flags, pinned + KIB - 1));
    CHECK(flags == given[i]);
    EXPECT(hipErrorInvalidValue, hipHostGetFlags(NULL, pinned));
    GOOD(hipHostFree(pinned));
  }
  GOOD(hipMalloc(&device, KIB));
  EXPECT(hipErrorInvalidValue, hipHostGetFlags(&flags, device));
  EXPECT(hipErrorInvalidValue, hipHostGetFlags(&flags, &host));
  EXPECT(hipErrorInvalidValue, hipHostGetFlags(&flags, NULL));
  GOOD(hipFree(device));
}

void scenario_kinds(void)
{
  unsigned char *pinned, *managed, *other;
  void *device;
  GOOD(hipHostMalloc((void **)&pinned, 64 * KIB, 0));
  memset(pinned, 9, 64 * KIB);
  GOOD(hipMalloc(&device, 64 * KIB));
  GOOD(hipMemcpy(device, pinned, 64 * KIB, hipMemcpyHostToDevice));
  GOOD(hipMallocManaged((void **)&managed, 64 * KIB, hipMemAttachGlobal));
  GOOD(hipMemcpy(managed, device, 64 * KIB, hipMemcpyDefault));
  GOOD(hipDeviceSynchronize());
  CHECK(all_are(managed, 64 * KIB, 9));
  EXPECT(hipErrorInvalidValue, hipFree(pinned));
  EXPECT(hipErrorInvalidValue, hipHostFree(managed));
  EXPECT(hipErrorInvalidValue, hipFreeAsync(managed, NULL));
  EXPECT(hipErrorInvalidValue, hipHostFree(device));
  GOOD(hipHostMalloc((void **)&other, KIB, hipHostMallocWriteCombined));
  GOOD(hipHostFree(other));
  GOOD(hipFree(managed));
  GOOD(hipHostFree(pinned));
  GOOD(hipFree(device));
}

/* Run with a pool, whose blocks are parts of allocations, and with `device`, which gives whole ones. */
void scenario_share(void)
{
  hipIpcMemHandle_t handle;
  void *first, *memory;
  GOOD(hipMalloc(&first, KIB));
  GOOD(hipMalloc(&memory, 4 * MIB));
  hipError_t code = hipIpcGetMemHandle(&handle, memory);
  CHECK(code == hipSuccess || code == hipErrorNotSupported);
  printf("%s\n", code ? "refused" : "shared");
  if (code) EXPECT(code, hipGetLastError());
  GOOD(hipFree(memory));
  GOOD(hipFree(first));
}

/* Memory of one device, in the order of a stream of another one. */
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
    GOOD(hipSetDevice(i / 2 % 2)); /* either is current */
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

/* Another device works on memory of a pool that gives it access, whether the memory is older than that or not. */
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

/* What a pool says of itself is true of what was asked of it, whoever gives it. */
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
  GOOD(hipMemPoolDestroy(pool)); /* with a block out of it, and current */
  GOOD(hipDeviceGetMemPool(&is, 0));
  CHECK(is == own);
  GOOD(hipMallocAsync(&first, 4 * KIB, NULL));
  USAGE(own, 4 * KIB, 64 * KIB);
  GOOD(hipFreeAsync(first, NULL));
  GOOD(hipFreeAsync(second, NULL));
  props.handleTypes = hipMemHandleTypePosixFileDescriptor;
  GOOD(hipMemPoolCreate(&pool, &props));
  GOOD(hipDeviceSetMemPool(0, pool));
  GOOD(hipMallocAsync(&first, 4 * KIB, NULL)); /* passed on: it is to be shared */
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

/* A function of the runtime that calls another one which it exports. */
void scenario_nested(void)
{
  void *memory;
  GOOD(hipMemAllocHost(&memory, KIB));
  memset(memory, 1, KIB);
  GOOD(hipHostFree(memory));
}
