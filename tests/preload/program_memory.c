/* SPDX-License-Identifier: MIT */
/* program_memory.c: what the HIP program does with device memory and streams. */
#include "program.h"

#include <stdlib.h>
#include <string.h>

enum { KIB = 1 << 10, MIB = 1 << 20 };

void scenario_nothing(void)
{
}

void scenario_memory(void)
{
  unsigned char *host = malloc(MIB);
  void *memory[10];
  for (int i = 0; i < 10; i++) GOOD(hipMalloc(&memory[i], MIB));
  for (int i = 0; i < 10; i++) GOOD(hipMemset(memory[i], i + 1, MIB));
  for (int i = 0; i < 10; i++) {
    CHECK((uintptr_t)memory[i] % 256 == 0);
    GOOD(hipMemcpy(host, memory[i], MIB, hipMemcpyDeviceToHost));
    CHECK(all_are(host, MIB, i + 1));
    GOOD(hipFree(memory[i]));
  }
  void *plain;
  GOOD(hipExtMallocWithFlags(&plain, 3 * KIB, hipDeviceMallocDefault));
  GOOD(hipFree(plain));
  GOOD(hipGetLastError());
  free(host);
}

/* Calls that hipmm does not serve keep HIP's answers. */
void scenario_arguments(void)
{
  void *memory = (void *)1, *special;
  GOOD(hipMalloc(&memory, 0));
  CHECK(!memory);
  GOOD(hipFree(NULL));
  EXPECT(hipErrorInvalidValue, hipMalloc(NULL, 4));
  EXPECT(hipErrorInvalidValue, hipPeekAtLastError());
  EXPECT(hipErrorInvalidValue, hipGetLastError());
  GOOD(hipGetLastError());
  EXPECT(hipErrorInvalidValue, hipFreeAsync(NULL, NULL));
  EXPECT(hipErrorInvalidValue, hipMemGetInfo(NULL, NULL));
  GOOD(hipExtMallocWithFlags(&special, 8, hipMallocSignalMemory));
  GOOD(hipFree(special));
  EXPECT(hipErrorInvalidValue, hipMallocFromPoolAsync(&memory, 4, NULL, NULL));
}

/* hipFree() waits for the work of every stream, so that no work writes to the next block in the same memory. */
void scenario_reuse(void)
{
  enum { ROUNDS = 20, BYTES = 256 * KIB };
  hipStream_t streams[3];
  unsigned char *host = malloc(BYTES);
  void *first, *second;
  for (int i = 0; i < 3; i++) GOOD(hipStreamCreateWithFlags(&streams[i], hipStreamNonBlocking));
  for (int round = 0; round < ROUNDS; round++) {
    bool ordered = round % 2;
    GOOD(hipMalloc(&first, BYTES));
    for (int i = 0; i < 8; i++) GOOD(hipMemsetAsync(first, 1, BYTES, streams[round % 3]));
    if (ordered)
      GOOD(hipFreeAsync(first, streams[round % 3]));
    else
      GOOD(hipFree(first));
    GOOD(hipMalloc(&second, BYTES));
    GOOD(hipMemsetAsync(second, 2, BYTES, streams[(round + 1) % 3]));
    GOOD(hipStreamSynchronize(streams[(round + 1) % 3]));
    GOOD(hipDeviceSynchronize());
    GOOD(hipMemcpy(host, second, BYTES, hipMemcpyDeviceToHost));
    CHECK(all_are(host, BYTES, 2));
    GOOD(hipFree(second));
  }
  for (int i = 0; i < 3; i++) GOOD(hipStreamDestroy(streams[i]));
  free(host);
}

static void fill_on(hipStream_t stream, int value)
{
  enum { BYTES = 100 * KIB };
  unsigned char host[BYTES];
  void *memory;
  GOOD(hipMallocAsync(&memory, BYTES, stream));
  GOOD(hipMemsetAsync(memory, value, BYTES, stream));
  GOOD(hipMemcpyAsync(host, memory, BYTES, hipMemcpyDeviceToHost, stream));
  GOOD(hipFreeAsync(memory, stream));
  GOOD(hipStreamSynchronize(stream));
  CHECK(all_are(host, BYTES, value));
}

void scenario_ordered(void)
{
  hipStream_t stream;
  fill_on(NULL, 1);
  GOOD(hipStreamCreate(&stream));
  for (int i = 0; i < 20; i++) fill_on(stream, i);
  for (int i = 0; i < 20; i++) fill_on(i % 2 ? NULL : stream, i);
  GOOD(hipStreamDestroy(stream));
}

/* Streams are created and destroyed, and a new stream may have the handle of an old one. */
void scenario_streams(void)
{
  enum { BYTES = 64 * KIB };
  unsigned char *host = malloc(BYTES);
  for (int round = 0; round < 30; round++) {
    hipStream_t stream, other;
    void *first, *second;
    GOOD(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    GOOD(hipStreamCreateWithPriority(&other, hipStreamNonBlocking, 0));
    GOOD(hipMallocAsync(&first, BYTES, stream));
    GOOD(hipMemsetAsync(first, 1, BYTES, stream));
    GOOD(hipFreeAsync(first, stream));
    if (round % 2) GOOD(hipStreamDestroy(stream));
    GOOD(hipMallocAsync(&second, BYTES, other));
    GOOD(hipMemsetAsync(second, 3, BYTES, other));
    GOOD(hipDeviceSynchronize());
    GOOD(hipMemcpy(host, second, BYTES, hipMemcpyDeviceToHost));
    CHECK(all_are(host, BYTES, 3));
    GOOD(hipFreeAsync(second, other));
    GOOD(hipStreamDestroy(other));
    if (round % 2 == 0) GOOD(hipStreamDestroy(stream));
  }
  free(host);
}

void scenario_leak(void)
{
  void *memory;
  GOOD(hipMalloc(&memory, 3 * KIB));
  GOOD(hipMalloc(&memory, MIB));
  GOOD(hipMalloc(&memory, 3 * MIB));
}

/* The settings of the software device hold from the first call of any kind. */
void scenario_first(void)
{
  int count = 0;
  size_t bytes = 0;
  hipStream_t stream;
  GOOD(hipGetDeviceCount(&count));
  CHECK(count == 3);
  GOOD(hipSetDevice(2));
  GOOD(hipStreamCreate(&stream));
  GOOD(hipDeviceTotalMem(&bytes, 2));
  CHECK(bytes == 64 * MIB);
  void *memory;
  GOOD(hipMalloc(&memory, MIB));
  hipPointerAttribute_t attributes;
  GOOD(hipPointerGetAttributes(&attributes, memory));
  CHECK(attributes.device == 2);
  GOOD(hipFree(memory));
  GOOD(hipStreamDestroy(stream));
}

static void check_settings(void)
{
  int count = 0;
  void *memory;
  GOOD(hipMalloc(&memory, MIB));
  GOOD(hipGetDeviceCount(&count));
  CHECK(count == 3);
  GOOD(hipFree(memory));
}

/* The first call is one that hipmm does not serve. Its effect lasts. */
void scenario_registered(void)
{
  static unsigned char host[64 * KIB];
  void *mapped = NULL;
  GOOD(hipHostRegister(host, sizeof host, 0));
  check_settings();
  GOOD(hipHostGetDevicePointer(&mapped, host, 0));
  CHECK(mapped == host);
  GOOD(hipHostUnregister(host));
}

void scenario_reserved(void)
{
  void *reserved;
  GOOD(hipMemAddressReserve(&reserved, 4 * MIB, 0, NULL, 0));
  check_settings();
  GOOD(hipMemAddressFree(reserved, 4 * MIB));
}

/* Where hipmm cannot serve, the program works as it does without hipmm. */
void scenario_unready(void)
{
  void *memory;
  unsigned char host[KIB];
  GOOD(hipMalloc(&memory, KIB));
  GOOD(hipMemset(memory, 7, KIB));
  GOOD(hipMemcpy(host, memory, KIB, hipMemcpyDeviceToHost));
  CHECK(all_are(host, KIB, 7));
  GOOD(hipFree(memory));
  GOOD(hipMallocAsync(&memory, KIB, NULL));
  GOOD(hipFreeAsync(memory, NULL));
  GOOD(hipHostMalloc(&memory, KIB, 0));
  GOOD(hipHostFree(memory));
}

/* Run with a pool of 1 MiB and a device that cannot be waited for at first, as while a stream is being captured. */
void scenario_deferred(void)
{
  void *first, *second;
  GOOD(hipMalloc(&first, MIB / 2));
  GOOD(hipFree(first)); /* not yet */
  GOOD(hipMalloc(&second, MIB / 2));
  CHECK(second != first);
  GOOD(hipMalloc(&first, MIB / 2)); /* now */
  GOOD(hipFree(second));
  GOOD(hipFree(first));
  GOOD(hipGetLastError());
}
