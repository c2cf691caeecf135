/* SPDX-License-Identifier: MIT */
/* program.c: a program of the runtime in cudart.c, which is linked to it as a shared library or is in it. */
#include "../scenario.h"
#include "cudart.h"

#include <string.h>

enum { KIB = 1 << 10, PITCH = 512, ROWS = 20 };

#define GOOD(call) CHECK((call) == 0)

static void verify(void *memory, int value, size_t bytes)
{
  static unsigned char host[64 * KIB];
  memset(host, ~value, bytes);
  GOOD(cudaMemset(memory, (unsigned char)value, bytes));
  GOOD(cudaMemcpy(host, memory, bytes));
  CHECK(host[0] == value && !memcmp(host, host + 1, bytes - 1));
}

static void use_memory(void)
{
  void *memory, *ordered, *rows, *stream;
  size_t pitch = 0, free_bytes = 0, total = 0;
  GOOD(cudaFree(NULL)); /* the runtime starts within a call that hipmm passes on */
  GOOD(cudaStreamCreateWithFlags(&stream, 1));
  for (int i = 1; i < 6; i++) {
    GOOD(cudaMalloc(&memory, 64 * KIB));
    GOOD(cudaMallocAsync(&ordered, 4 * KIB, stream));
    GOOD(cudaMallocPitch(&rows, &pitch, 100, ROWS));
    CHECK(pitch == PITCH);
    verify(memory, i, 64 * KIB);
    verify(ordered, i + 1, 4 * KIB);
    verify(rows, i + 2, PITCH * ROWS);
    GOOD(cudaFree(rows));
    GOOD(cudaFree(memory));
    GOOD(cudaFreeAsync(ordered, stream));
    GOOD(cudaMallocAsync_ptsz(&ordered, KIB, NULL));
    GOOD(cudaFree(ordered));
  }
  GOOD(cudaMemGetInfo(&free_bytes, &total));
  CHECK(free_bytes && free_bytes <= total);
  GOOD(cudaStreamDestroy(stream));
}

static void reset(void)
{
  void *memory;
  for (int round = 0; round < 2; round++) {
    GOOD(cudaMalloc(&memory, 64 * KIB));
    GOOD(cudaDeviceReset());
  }
}

int main(int argc, char **argv)
{
  static const struct scenario scenarios[] = {{"memory", use_memory}, {"reset", reset}};
  return scenario_main(scenarios, sizeof scenarios / sizeof *scenarios, argc, argv);
}
