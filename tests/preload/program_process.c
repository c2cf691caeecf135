/* SPDX-License-Identifier: MIT */
/* program_process.c: what the HIP program does with devices, threads and processes. */
#include "program.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KIB = 1 << 10, MIB = 1 << 20 };

void scenario_reset(void)
{
  void *memory;
  hipStream_t stream;
  for (int round = 0; round < 3; round++) {
    GOOD(hipStreamCreate(&stream));
    GOOD(hipMalloc(&memory, MIB));
    GOOD(hipMallocAsync(&memory, MIB, stream));
    GOOD(hipDeviceReset());
  }
  GOOD(hipMalloc(&memory, MIB));
  GOOD(hipFree(memory));
}

/* Run on two devices. */
void scenario_devices(void)
{
  hipStream_t stream;
  hipPointerAttribute_t attributes;
  void *memory[2], *ordered;
  for (int device = 0; device < 2; device++) {
    GOOD(hipSetDevice(device));
    GOOD(hipMalloc(&memory[device], MIB));
    GOOD(hipPointerGetAttributes(&attributes, memory[device]));
    CHECK(attributes.device == device);
  }
  GOOD(hipStreamCreate(&stream)); /* on device 1 */
  GOOD(hipSetDevice(0));
  GOOD(hipMallocAsync(&ordered, KIB, stream));
  GOOD(hipPointerGetAttributes(&attributes, ordered));
  CHECK(attributes.device == 1);
  GOOD(hipFreeAsync(ordered, NULL)); /* the null stream of device 0 */
  GOOD(hipFree(memory[1]));
  GOOD(hipFree(memory[0]));
  int device = 5;
  GOOD(hipGetDevice(&device));
  CHECK(device == 0);
  GOOD(hipStreamDestroy(stream));
  GOOD(hipDeviceReset());
}

/* ---- Peers, run on two devices ---- */

static void *allocate_on(int device)
{
  void *memory;
  GOOD(hipSetDevice(device));
  GOOD(hipMalloc(&memory, MIB));
  return memory;
}

static void expect_error(hipError_t wanted)
{
  CHECK(hipPeekAtLastError() == wanted);
  CHECK(hipGetLastError() == wanted);
  CHECK(hipGetLastError() == hipSuccess);
}

static void fill_and_look(void *memory, int value)
{
  unsigned char host[KIB] = {0};
  GOOD(hipMemset(memory, value, KIB));
  GOOD(hipMemcpy(host, memory, KIB, hipMemcpyDeviceToHost));
  CHECK(all_are(host, KIB, value));
}

/* Device 1 is current. The program finds the states that it finds without hipmm. */
static void switch_peer_access(void *memory)
{
  EXPECT(hipErrorPeerAccessNotEnabled, hipDeviceDisablePeerAccess(0));
  expect_error(hipErrorPeerAccessNotEnabled);
  EXPECT(hipErrorInvalidValue, hipDeviceEnablePeerAccess(0, 1));
  hipGetLastError();
  EXPECT(hipErrorInvalidDevice, hipDeviceEnablePeerAccess(1, 0));
  hipGetLastError();
  GOOD(hipDeviceEnablePeerAccess(0, 0));
  expect_error(hipSuccess);
  EXPECT(hipErrorPeerAccessAlreadyEnabled, hipDeviceEnablePeerAccess(0, 0));
  expect_error(hipErrorPeerAccessAlreadyEnabled);
  fill_and_look(memory, 7);
  GOOD(hipDeviceDisablePeerAccess(0));
  EXPECT(hipErrorPeerAccessNotEnabled, hipDeviceDisablePeerAccess(0));
  expect_error(hipErrorPeerAccessNotEnabled);
}

void scenario_peers(void)
{
  int can = 0;
  void *memory = allocate_on(0), *other;
  unsigned char host[KIB] = {3}, back[KIB];
  GOOD(hipDeviceCanAccessPeer(&can, 1, 0));
  CHECK(can == 1);
  other = allocate_on(1);
  GOOD(hipMemcpy(memory, host, KIB, hipMemcpyHostToDevice));
  GOOD(hipMemcpy(other, memory, KIB, hipMemcpyDeviceToDevice));
  GOOD(hipMemcpy(back, other, KIB, hipMemcpyDeviceToHost));
  CHECK(!memcmp(host, back, KIB));
  GOOD(hipMemcpyAsync(memory, other, KIB, hipMemcpyDefault, NULL));
  GOOD(hipMemcpy(back, memory, KIB, hipMemcpyDeviceToHost));
  CHECK(!memcmp(host, back, KIB));
  switch_peer_access(memory);
  GOOD(hipDeviceEnablePeerAccess(0, 0));
  fill_and_look(memory, 8);
  GOOD(hipFree(memory));
  GOOD(hipFree(other));
}

/* Run with a graph whose device resource names peers: their access stays, whatever the program enables and disables. */
void scenario_peers_given(void)
{
  void *memory = allocate_on(0);
  GOOD(hipSetDevice(1));
  switch_peer_access(memory);
  fill_and_look(memory, 9);
  GOOD(hipDeviceEnablePeerAccess(0, 0));
  GOOD(hipSetDevice(0));
  GOOD(hipDeviceReset());
  memory = allocate_on(0);
  GOOD(hipSetDevice(1));
  switch_peer_access(memory);
  fill_and_look(memory, 10);
  GOOD(hipFree(memory));
}

/* The same where the program enables access first. */
void scenario_peers_early(void)
{
  GOOD(hipSetDevice(1));
  GOOD(hipDeviceEnablePeerAccess(0, 0));
  void *memory = allocate_on(0);
  GOOD(hipSetDevice(1));
  EXPECT(hipErrorPeerAccessAlreadyEnabled, hipDeviceEnablePeerAccess(0, 0));
  hipGetLastError();
  GOOD(hipDeviceDisablePeerAccess(0));
  fill_and_look(memory, 11);
  switch_peer_access(memory);
  fill_and_look(memory, 12);
  GOOD(hipFree(memory));
}

/* hipmm serves both devices, so the device is not reset; the access that the program had enabled is gone nonetheless. */
void scenario_peers_reset(void)
{
  void *memory[2] = {allocate_on(0), allocate_on(1)};
  GOOD(hipDeviceEnablePeerAccess(0, 0));
  fill_and_look(memory[0], 13);
  GOOD(hipDeviceReset());
  switch_peer_access(memory[0]);
  GOOD(hipFree(memory[0]));
  GOOD(hipFree(memory[1]));
}

/* ---- Threads ---- */

static void *work(void *closure)
{
  enum { ROUNDS = 40, BYTES = 20 * KIB };
  int value = *(int *)closure;
  unsigned char *host = malloc(BYTES);
  hipStream_t stream;
  int wrong = hipStreamCreateWithFlags(&stream, hipStreamNonBlocking) != hipSuccess;
  for (int round = 0; round < ROUNDS; round++) {
    void *first, *second;
    wrong += hipMalloc(&first, BYTES) || hipMallocAsync(&second, BYTES, stream);
    wrong += hipMemsetAsync(first, value, BYTES, stream) || hipMemsetAsync(second, value + 1, BYTES, stream);
    wrong += hipMemcpyAsync(host, first, BYTES, hipMemcpyDeviceToHost, stream) || hipStreamSynchronize(stream);
    wrong += !all_are(host, BYTES, value);
    wrong += hipMemcpyAsync(host, second, BYTES, hipMemcpyDeviceToHost, stream) || hipStreamSynchronize(stream);
    wrong += !all_are(host, BYTES, value + 1);
    wrong += hipFree(first) || hipFreeAsync(second, stream);
  }
  wrong += hipStreamDestroy(stream) != hipSuccess;
  free(host);
  *(int *)closure = wrong;
  return NULL;
}

void scenario_threads(void)
{
  enum { THREADS = 4 };
  pthread_t threads[THREADS];
  int closures[THREADS];
  for (int i = 0; i < THREADS; i++) {
    closures[i] = 10 * i + 1;
    CHECK(!pthread_create(&threads[i], NULL, work, &closures[i]));
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    CHECK(closures[i] == 0);
  }
}

/* ---- Forks ---- */

static int in_child(void (*body)(void))
{
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    body();
    exit(7);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

/* The child cannot use the device: calls fail, and nothing else happens. */
static void use_in_vain(void)
{
  void *memory;
  CHECK(hipMalloc(&memory, KIB) != hipSuccess);
  CHECK(hipFree((void *)256) != hipSuccess);
}

void scenario_fork(void)
{
  void *memory;
  GOOD(hipMalloc(&memory, KIB));
  int status = in_child(use_in_vain);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  GOOD(hipFree(memory));
}

static void use(void)
{
  void *memory;
  GOOD(hipMalloc(&memory, KIB));
  GOOD(hipFree(memory));
}

void scenario_early_fork(void)
{
  int status = in_child(use);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  use();
}
